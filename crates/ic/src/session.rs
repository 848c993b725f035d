//! Opens the ledger as the global flags and the environment say.

mod caller;
pub(crate) mod confirmation;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result, Timestamp};
use ic_dispatch::process::ProcessIdentity;
use ic_kernel::config::{self, Config, Loaded};
use ic_kernel::{Above, Caller, Kernel};
use ic_ledger::{LedgerLocation, Lookup, OpenOptions, Patience};
use ic_phase::run_reference::ProjectScope;
use ic_worktree::{CaptureSettings, Workspace};

use crate::environment::CliEnvironment;
use crate::flags::Global;
use crate::format::{FormatChoice, OutputFormat};
use crate::output::CliOutput;
use crate::text::path_text;

/// One command: its flags, its output, and the ledger when the command asks for it.
pub(crate) struct CliSession {
    /// The working directory after `-C`, absolute and without links.
    pub(crate) directory: PathBuf,
    /// Where the answer of the command is printed.
    pub(crate) output: CliOutput,
    db: Option<PathBuf>,
    environment: CliEnvironment,
    /// In a hook: the dispatch in whose environment the client was started.
    began_by: Option<std::ffi::OsString>,
    options: OpenOptions,
    verbose: bool,
    started: Instant,
    began: Timestamp,
}

impl CliSession {
    pub(crate) fn new(global: Global, environment: CliEnvironment) -> Result<Self> {
        let choice = FormatChoice::of(&global, &environment);
        let output = CliOutput::new(&choice, global.pretty, global.quiet);
        Self::saying_to(output, global, environment)
    }

    /// As [`Self::new`], printing to `output`.
    pub(crate) fn saying_to(output: CliOutput, global: Global, environment: CliEnvironment) -> Result<Self> {
        let named = global.directory.as_deref().unwrap_or(Path::new("."));
        // Links are resolved: the root is found among its ancestors, and paths are compared with the root by their text.
        let directory = match std::fs::canonicalize(named) {
            Ok(directory) if directory.is_dir() => directory,
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(e).while_doing(|| format!("entering the directory {}", named.display()));
            }
            Err(_) if global.directory.is_none() => {
                return Err(Diagnosis::new(Code::InvalidValue, "The working directory was removed.")
                    .hint("change to a directory that is there, or name one: ic -C DIR"));
            }
            _ => return Err(not_a_directory(named)),
        };
        Ok(Self {
            output,
            // The path is relative to `-C DIR`, whichever of the two flags comes first on the line.
            db: global.db.map(|db| ic_ledger::named_from(&db, &directory)),
            options: OpenOptions { busy_timeout: global.busy_timeout, ..OpenOptions::default() },
            verbose: global.verbose,
            // There are two clocks: the first is never set back, and measures how long opening takes (-v); the second
            // dates the call.
            started: Instant::now(),
            began: CliEnvironment::context().now(),
            began_by: None,
            directory,
            environment,
        })
    }

    /// The flags, variables and directory that decide which ledger is used.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup { db: self.db.as_deref(), env_db: self.environment.db.as_deref(), directory: &self.directory }
    }

    /// How the ledger is opened.
    pub(crate) fn options(&self) -> OpenOptions {
        self.options
    }

    /// How long a call waits for a lock of another process.
    pub(crate) fn busy_timeout(&self) -> Duration {
        self.options.busy_timeout
    }

    /// The configuration file that `IC_CONFIG` names, from the working directory; `None` if it is unset.
    pub(crate) fn named_config(&self) -> Option<PathBuf> {
        self.environment.config.as_ref().map(|path| self.directory.join(path))
    }

    /// Stands in another directory for a while, with the same ledger: where that lies in the work tree, it is not found from another one.
    ///
    /// Errors: those of the deed; `no_ledger`.
    pub(crate) fn within<T>(&mut self, directory: &Path, deed: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // The ledger is found before the directory changes. It then takes the place of `--db`, which comes first in
        // every search.
        let ledger = self.place()?.name();
        let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let before = (std::mem::replace(&mut self.directory, directory), self.db.replace(ledger));
        let done = deed(self);
        // Also after an error: what is reported then is about the caller's own place.
        (self.directory, self.db) = before;
        done
    }

    /// Finds the ledger without opening it. Errors: `no_ledger`.
    pub(crate) fn place(&self) -> Result<LedgerLocation> {
        ic_ledger::locate(&self.lookup())
    }

    /// Opens the ledger repeatedly, with no calling dispatch and no session. Errors: `no_ledger`.
    #[cfg(feature = "ui")]
    pub(crate) fn opening(&self) -> Result<Opening> {
        Ok(Opening {
            place: self.place()?,
            directory: self.directory.clone(),
            options: self.options,
            named_config: self.named_config(),
            environment: self.environment.clone(),
        })
    }

    /// When the call was made. On a busy machine a process waits before it can first read the clock, so the age that the system knows is
    /// used, too. That age is exact to 10 ms, so the result may be up to 20 ms late.
    pub(crate) fn asked_at(&self, kernel: &Kernel) -> Timestamp {
        const INACCURACY: i64 = 20;
        let age = ProcessIdentity::of(std::process::id()).ok().flatten().and_then(|own| own.age());
        let age = age.and_then(|age| i64::try_from(age.as_millis()).ok());
        // Too late is safer than too early: a rollback that is older than this call must not count as made at the
        // same time.
        let forked = age.map(|age| kernel.context.now().millis() - age + INACCURACY);
        Timestamp(forked.map_or(self.began.millis(), |forked| forked.min(self.began.millis())))
    }

    /// The open ledger, writing on behalf of the environment's dispatch.
    pub(crate) fn kernel(&self) -> Result<Kernel> {
        self.kernel_for(None)
    }

    /// The open ledger, writing on behalf of `dispatch`, else of the environment's.
    pub(crate) fn kernel_for(&self, dispatch: Option<&str>) -> Result<Kernel> {
        let place = self.place()?;
        let context = CliEnvironment::context();
        let ledger = place.open(self.options, &context)?;
        if self.verbose {
            let found = place.found_by.as_str();
            eprintln!(
                "ledger: {} (found by {found}, open after {:.1?})",
                path_text(&place.name()),
                self.started.elapsed()
            );
        }
        // This is only a warning: an older ledger can be read. `kernel_to_change` refuses it.
        if let Some(words) = ledger.behind_in_words() {
            self.output.warn_after(Code::LedgerBehind, words);
        }
        let project = ProjectScope { directory: self.directory.clone(), root: place.root };
        let mut kernel = with_floors_above(Kernel::new(ledger, context, project));
        kernel.caller = self.caller(dispatch)?;
        // After the caller is known, because a named dispatch has precedence over the session's prompt.
        self.join_session(&mut kernel)?;
        Ok(kernel)
    }

    /// Opens the ledger for a call that changes something, or that shows what it would change: a preview is refused where the real call is.
    ///
    /// Errors: `ledger_behind`.
    pub(crate) fn kernel_to_change(&self, dispatch: Option<&str>) -> Result<Kernel> {
        let kernel = self.kernel_for(dispatch)?;
        kernel.ledger.require_newest()?;
        Ok(kernel)
    }

    /// Makes this session act as if it were called in `directory`, with no calling dispatch and no session: the payload of a hook says
    /// whose work it is. `busy_timeout`: how long it waits for locks; `patience`: for a server.
    pub(crate) fn for_hook(&mut self, directory: PathBuf, busy_timeout: Duration, patience: Option<Patience>) {
        self.directory = directory;
        self.options = OpenOptions { busy_timeout, patience };
        // A repository can set variables for the client. They may not decide where its work is recorded, nor what is captured and guarded.
        self.environment.db = None;
        self.environment.config = None;
        // The dispatch is kept apart: a prompt becomes a part of it, and the hook itself writes on behalf of none.
        // IC_RUN stays, because it is accepted only for an active run of this project.
        self.began_by = self.environment.dispatch.take();
        self.environment.session = None;
    }

    /// How long a capture of a hook may take (`IC_HOOK_LIMIT`); `None` if that is unset.
    pub(crate) fn hook_limit(&self) -> Option<Duration> {
        self.environment.hook_limit
    }

    /// The dispatch in whose environment the client of this hook was started, as `IC_DISPATCH` named it; `None` outside of a hook.
    pub(crate) fn began_by(&self) -> Option<&str> {
        self.began_by.as_deref().and_then(std::ffi::OsStr::to_str)
    }

    /// The session of a coding agent in whose shell this command runs: the client, and the client's id of the session.
    pub(crate) fn called_by(&self) -> Option<(&str, &str)> {
        self.environment.session.as_ref().map(|(client, id)| (*client, id.as_str()))
    }

    /// The run that `IC_RUN` names; `None` if it is unset, or is no UTF-8.
    pub(crate) fn named_run(&self) -> Option<&str> {
        self.environment.run.as_deref().and_then(std::ffi::OsStr::to_str)
    }

    /// The directory that `HOME` names; `None` if it is unset or empty.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.environment.home.as_deref()
    }

    /// The home directory whose settings of hooks count. `None` if `HOME` is unset. A repository may set `HOME` for its client.
    ///
    /// Errors: `invalid_value` if it is relative, or lies in the project.
    pub(crate) fn believed_home(&self, root: &Path) -> Result<Option<&Path>> {
        let Some(home) = self.home() else { return Ok(None) };
        // Without links, so that a link elsewhere to a directory in the project is found, too.
        let real = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        // A relative HOME leads into the directory that the hook happens to run in.
        if home.is_absolute() && !real.starts_with(root) {
            return Ok(Some(home));
        }
        let home = home.display();
        Err(Diagnosis::new(
            Code::InvalidValue,
            format!("HOME is {home}, in the project: what its settings say of hooks is not believed."),
        ))
    }

    /// The configuration of the project whose root this is. Errors: `invalid_config`.
    pub(crate) fn config(&self, root: &Path) -> Result<Loaded> {
        config::load(root, self.named_config().as_deref())
    }

    /// How checkpoints are taken in this project. Errors: `invalid_config`.
    pub(crate) fn checkpoint_settings(&self, kernel: &Kernel) -> Result<CaptureSettings> {
        Ok(self.settings(self.config(&kernel.project.root)?.config, kernel))
    }

    /// The settings of a project without a configuration.
    pub(crate) fn default_settings(&self, kernel: &Kernel) -> CaptureSettings {
        self.settings(Config::default(), kernel)
    }

    /// The settings for what a command captures by itself: the tree, if it is `wanted` and the project's configuration allows it, and the
    /// state of its database. `None` if neither is captured. Errors: `invalid_config`.
    pub(crate) fn kept_along_the_way(
        &self,
        kernel: &Kernel,
        project_dir: &Path,
        wanted: bool,
    ) -> Result<Option<CaptureSettings>> {
        let root = config::root_of(kernel, project_dir);
        let config = self.config(&root)?.config;
        let wanted = wanted && config.enabled;
        let settings = self.settings_in(&root, config, kernel).capturing(wanted);
        // The state database is also recorded where the tree is not, so `wanted` alone does not decide.
        let is_any = settings.checkpointing.auto || settings.state.is_some();
        Ok(is_any.then_some(settings))
    }

    /// The settings of a project, which need not be the caller's: how checkpoints are taken, and where its state database is. Errors:
    /// `invalid_config`.
    pub(crate) fn settings_of_project(&self, kernel: &Kernel, project_dir: &Path) -> Result<CaptureSettings> {
        let root = config::root_of(kernel, project_dir);
        Ok(self.settings_in(&root, self.config(&root)?.config, kernel))
    }

    /// The project of the run that a reference names: its configuration counts for the run, not the caller's. Errors: those of the lookup.
    pub(crate) fn project_of(kernel: &Kernel, run: &str) -> Result<PathBuf> {
        kernel.read(|snapshot| kernel.run(snapshot, run)).map(|run| run.project_dir)
    }

    /// The settings for keeping the content of artifacts; `None` if it is not kept. Errors: `invalid_config`.
    pub(crate) fn kept_content(&self, kernel: &Kernel) -> Result<Option<CaptureSettings>> {
        let config = self.config(&kernel.project.root)?.config;
        // The rows of a ledger on a server are read on many machines, and the content would be on this one alone.
        let is_kept = config.enabled && kernel.ledger.is_of_one_host();
        Ok(is_kept.then(|| self.settings(config, kernel)))
    }

    fn settings(&self, config: Config, kernel: &Kernel) -> CaptureSettings {
        self.settings_in(&kernel.project.root, config, kernel)
    }

    fn settings_in(&self, root: &Path, config: Config, kernel: &Kernel) -> CaptureSettings {
        settings_in(root, config, kernel, &self.environment, self.options)
    }

    /// Warns if a restore of this tree was interrupted.
    pub(crate) fn warn_of_interruption(&self, workspace: &Workspace<'_>) -> Result<()> {
        if let Some(warning) = ic_worktree::settle_note(workspace)? {
            self.output.warn(&warning.message);
        }
        Ok(())
    }

    /// Whether progress is shown: in the text form, unless `--quiet` was given.
    pub(crate) fn shows_progress(&self) -> bool {
        self.output.format == OutputFormat::Text && !self.output.is_quiet()
    }

    fn caller(&self, flag: Option<&str>) -> Result<Option<Caller>> {
        if let Some(reference) = flag {
            return Ok(Some(Caller { reference: reference.to_owned(), explicit: true }));
        }
        match &self.environment.dispatch {
            None => Ok(None),
            Some(value) => match value.to_str() {
                // The caller is not explicit: the prompt of this shell takes its place if the dispatch began that
                // prompt, see `join_session`.
                Some(text) => Ok(Some(Caller { reference: text.to_owned(), explicit: false })),
                // This is not ignored: without its caller, a write of work that was rolled back would be accepted.
                None => Err(Diagnosis::new(Code::InvalidReference, "IC_DISPATCH is not a dispatch's id.")),
            },
        }
    }
}

/// The settings that a configuration means in this environment.
fn settings_in(
    root: &Path,
    config: Config,
    kernel: &Kernel,
    environment: &CliEnvironment,
    options: OpenOptions,
) -> CaptureSettings {
    let home = environment.home.clone();
    let settings = CaptureSettings::of(config, root, kernel.store(), home, options.busy_timeout);
    CaptureSettings { records: environment.records(), ..settings }.with(&kernel.ledger)
}

/// Gives the kernel the functions of crates above it, for questions about workflows and sessions.
fn with_floors_above(mut kernel: Kernel) -> Kernel {
    kernel.above = Above { is_of_session: ic_session::is_own_run, ..ic_workflow::ABOVE };
    if ic_base::TEST_HOOKS
        && let Some(actor) = CliEnvironment::fixed_actor()
    {
        kernel.own_actor = actor.into();
    }
    kernel
}

/// Opens one ledger repeatedly, from any thread.
#[cfg(feature = "ui")]
pub(crate) struct Opening {
    place: LedgerLocation,
    directory: PathBuf,
    options: OpenOptions,
    named_config: Option<PathBuf>,
    environment: CliEnvironment,
}

#[cfg(feature = "ui")]
impl Opening {
    /// Opens the ledger once more.
    pub(crate) fn kernel(&self) -> Result<Kernel> {
        let context = CliEnvironment::context();
        let ledger = self.place.open(self.options, &context)?;
        let project = ProjectScope { directory: self.directory.clone(), root: self.place.root.clone() };
        Ok(with_floors_above(Kernel::new(ledger, context, project)))
    }

    /// As [`CliSession::settings_of_project`], which reads the configuration anew at every call.
    pub(crate) fn settings_of_project(&self, kernel: &Kernel, project_dir: &Path) -> Result<CaptureSettings> {
        let root = config::root_of(kernel, project_dir);
        let config = config::load(&root, self.named_config.as_deref())?.config;
        Ok(settings_in(&root, config, kernel, &self.environment, self.options))
    }

    /// The options with which every ledger is opened.
    pub(crate) fn options(&self) -> OpenOptions {
        self.options
    }

    /// The directory that contains the ledger, and everything that is kept beside it.
    pub(crate) fn store(&self) -> &Path {
        &self.place.store
    }
}

fn not_a_directory(path: &Path) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{} is not a directory.", path.display()))
}
