//! From the global flags to an open ledger.

pub(crate) mod ask;
mod calling;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result, Timestamp};
use ic_kernel::config::{self, Config, Loaded};
use ic_kernel::{Above, Caller, Kernel};
use ic_phase::resolve::Project;
use ic_saga::process::ProcessIdentity;
use ic_store::{Lookup, OpenOptions, Patience, Place};
use ic_worktree::{Settings, Workspace};

use crate::environment::Environment;
use crate::flags::{FormatFlag, Global};
use crate::format::{Format, FormatChoice};
use crate::output::Output;
use crate::text::path_text;

/// One command: its flags, its output, and the ledger when it asks for it.
pub(crate) struct Session {
    /// The working directory after `-C`, absolute and without links.
    pub(crate) directory: PathBuf,
    /// Standard output.
    pub(crate) output: Output,
    /// Whether a diagram was asked for.
    pub(crate) mermaid: bool,
    db: Option<PathBuf>,
    environment: Environment,
    /// The dispatch in whose environment a client was started whose hook this is.
    began_by: Option<std::ffi::OsString>,
    options: OpenOptions,
    verbose: bool,
    started: Instant,
    began: Timestamp,
}

impl Session {
    pub(crate) fn new(global: Global, environment: Environment) -> Result<Self> {
        let choice = FormatChoice::of(&global, &environment);
        let output = Output::new(&choice, global.pretty, global.quiet);
        Self::saying_to(output, global, environment)
    }

    /// As [`Self::new`], with what it prints going there.
    pub(crate) fn saying_to(output: Output, global: Global, environment: Environment) -> Result<Self> {
        let named = global.directory.as_deref().unwrap_or(Path::new("."));
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
            mermaid: global.format == Some(FormatFlag::Mermaid),
            db: global.db.map(|db| ic_store::named_from(&db, &directory)),
            options: OpenOptions { busy_timeout: global.busy_timeout, ..OpenOptions::default() },
            verbose: global.verbose,
            started: Instant::now(),
            began: Environment::context().now(),
            began_by: None,
            directory,
            environment,
        })
    }

    /// What says where the ledger is.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup { db: self.db.as_deref(), env_db: self.environment.db.as_deref(), directory: &self.directory }
    }

    /// How the ledger is opened.
    pub(crate) fn options(&self) -> OpenOptions {
        self.options
    }

    /// How long what another process holds is waited for.
    pub(crate) fn busy_timeout(&self) -> Duration {
        self.options.busy_timeout
    }

    /// The configuration file that the environment names, from the working directory.
    pub(crate) fn named_config(&self) -> Option<PathBuf> {
        self.environment.config.as_ref().map(|path| self.directory.join(path))
    }

    /// Where the ledger is. Errors: `no_ledger`.
    pub(crate) fn place(&self) -> Result<Place> {
        ic_store::locate(&self.lookup())
    }

    /// What opens the ledger again and again, on behalf of no dispatch and of no session. Errors: `no_ledger`.
    #[cfg(feature = "ui")]
    pub(crate) fn opening(&self) -> Result<Opening> {
        Ok(Opening {
            place: self.place()?,
            directory: self.directory.clone(),
            options: self.options,
            named_config: self.named_config(),
            home: self.environment.home.clone(),
        })
    }

    /// When the call was made, or a little later. On a busy machine a process waits for its turn before it can look at the clock, so the system
    /// is asked, too; what it says is exact to a hundredth of a second.
    pub(crate) fn asked_at(&self, kernel: &Kernel) -> Timestamp {
        const INACCURACY: i64 = 20;
        let age = ProcessIdentity::of(std::process::id()).ok().flatten().and_then(|own| own.age());
        let age = age.and_then(|age| i64::try_from(age.as_millis()).ok());
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
        let context = Environment::context();
        let ledger = place.open(self.options, &context)?;
        if self.verbose {
            let found = place.found_by.as_str();
            eprintln!(
                "ledger: {} (found by {found}, open after {:.1?})",
                path_text(&place.name()),
                self.started.elapsed()
            );
        }
        if let Some(words) = ledger.behind_in_words() {
            self.output.warn_after(Code::LedgerBehind, words);
        }
        let project = Project { directory: self.directory.clone(), root: place.root };
        let mut kernel = with_floors_above(Kernel::new(ledger, context, project));
        kernel.caller = self.caller(dispatch)?;
        self.join_session(&mut kernel)?;
        Ok(kernel)
    }

    /// The open ledger, for a call that changes something or says what it would change: the one is refused where the other is.
    ///
    /// Errors: `ledger_behind`.
    pub(crate) fn kernel_to_change(&self, dispatch: Option<&str>) -> Result<Kernel> {
        let kernel = self.kernel_for(dispatch)?;
        kernel.ledger.require_newest()?;
        Ok(kernel)
    }

    /// The same command as if it had been called in `directory`, on behalf of no dispatch and of no session: what a hook says tells whose
    /// it is. It waits for what another process holds no longer than a person would.
    pub(crate) fn for_hook(
        &mut self,
        directory: PathBuf,
        busy_timeout: Duration,
        patience: Option<Patience>,
    ) {
        self.directory = directory;
        self.options = OpenOptions { busy_timeout, patience };
        // What a repository may set for the client says nothing of where its own work is recorded, nor of what is captured and guarded.
        self.environment.db = None;
        self.environment.config = None;
        self.began_by = self.environment.dispatch.take();
        self.environment.session = None;
    }

    /// How long a capture of a hook may take, where the environment says so.
    pub(crate) fn hook_limit(&self) -> Option<Duration> {
        self.environment.hook_limit
    }

    /// The dispatch in whose environment the client of a hook was started.
    pub(crate) fn began_by(&self) -> Option<&str> {
        self.began_by.as_deref().and_then(std::ffi::OsStr::to_str)
    }

    /// The session of a coding agent in whose shell this is called: its client, and what that calls it.
    pub(crate) fn called_by(&self) -> Option<(&str, &str)> {
        self.environment.session.as_ref().map(|(client, id)| (*client, id.as_str()))
    }

    /// The run that `IC_RUN` names.
    pub(crate) fn named_run(&self) -> Option<&str> {
        self.environment.run.as_deref().and_then(std::ffi::OsStr::to_str)
    }

    /// The home directory.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.environment.home.as_deref()
    }

    /// The home directory if what it says may be believed in a project: a repository may set `HOME` for its client.
    ///
    /// Errors: `invalid_value` for one that lies in the project.
    pub(crate) fn believed_home(&self, root: &Path) -> Result<Option<&Path>> {
        let Some(home) = self.home() else { return Ok(None) };
        let real = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
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
    pub(crate) fn checkpoint_settings(&self, kernel: &Kernel) -> Result<Settings> {
        Ok(self.settings(self.config(&kernel.project.root)?.config, kernel))
    }

    /// The same where no configuration says anything.
    pub(crate) fn default_settings(&self, kernel: &Kernel) -> Settings {
        self.settings(Config::default(), kernel)
    }

    /// What is kept of a project along the way: the tree if it is `wanted` and the project's configuration says so, and where its
    /// state database is; `None` if that is nothing. Errors: `invalid_config`.
    pub(crate) fn kept_along_the_way(
        &self,
        kernel: &Kernel,
        project_dir: &Path,
        wanted: bool,
    ) -> Result<Option<Settings>> {
        let root = config::root_of(kernel, project_dir);
        let config = self.config(&root)?.config;
        let wanted = wanted && config.enabled;
        let settings = self.settings_in(&root, config, kernel).capturing(wanted);
        let is_any = settings.checkpointing.auto || settings.state.is_some();
        Ok(is_any.then_some(settings))
    }

    /// How checkpoints are taken in a project, which need not be the caller's, and where its state database is. Errors:
    /// `invalid_config`.
    pub(crate) fn settings_of_project(&self, kernel: &Kernel, project_dir: &Path) -> Result<Settings> {
        let root = config::root_of(kernel, project_dir);
        Ok(self.settings_in(&root, self.config(&root)?.config, kernel))
    }

    /// The project of the run that a reference names. Errors: whatever the lookup says; another project's configuration would not be
    /// the run's.
    pub(crate) fn project_of(kernel: &Kernel, run: &str) -> Result<PathBuf> {
        kernel.read(|snapshot| kernel.run(snapshot, run)).map(|run| run.project_dir)
    }

    /// How the content of artifacts is kept; `None` if nothing is to be kept. Errors: `invalid_config`.
    pub(crate) fn kept_content(&self, kernel: &Kernel) -> Result<Option<Settings>> {
        let config = self.config(&kernel.project.root)?.config;
        let is_kept = config.enabled && kernel.ledger.is_of_one_host();
        Ok(is_kept.then(|| self.settings(config, kernel)))
    }

    fn settings(&self, config: Config, kernel: &Kernel) -> Settings {
        self.settings_in(&kernel.project.root, config, kernel)
    }

    fn settings_in(&self, root: &Path, config: Config, kernel: &Kernel) -> Settings {
        Settings::of(config, root, kernel.store(), self.environment.home.clone(), self.options.busy_timeout)
            .with(&kernel.ledger)
    }

    /// Says on stderr that a restore of this tree was interrupted, if one was.
    pub(crate) fn warn_of_interruption(&self, workspace: &Workspace<'_>) -> Result<()> {
        if let Some(warning) = ic_worktree::settle_note(workspace)? {
            self.output.warn(&warning.message);
        }
        Ok(())
    }

    /// Whether progress is shown: to a person, who did not ask for quiet.
    pub(crate) fn shows_progress(&self) -> bool {
        self.output.format == Format::Text && !self.output.is_quiet()
    }

    fn caller(&self, flag: Option<&str>) -> Result<Option<Caller>> {
        if let Some(reference) = flag {
            return Ok(Some(Caller { reference: reference.to_owned(), explicit: true }));
        }
        match &self.environment.dispatch {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Some(text) => Ok(Some(Caller { reference: text.to_owned(), explicit: false })),
                None => Err(Diagnosis::new(Code::InvalidReference, "IC_DISPATCH is not a dispatch's id.")),
            },
        }
    }
}

/// The same kernel, which can ask of workflows and sessions.
fn with_floors_above(mut kernel: Kernel) -> Kernel {
    kernel.above = Above { is_of_session: ic_session::is_own_run, ..ic_workflow::ABOVE };
    kernel
}

/// What opens one ledger again and again, from any thread.
#[cfg(feature = "ui")]
pub(crate) struct Opening {
    place: Place,
    directory: PathBuf,
    options: OpenOptions,
    named_config: Option<PathBuf>,
    home: Option<PathBuf>,
}

#[cfg(feature = "ui")]
impl Opening {
    /// The ledger, opened once more.
    pub(crate) fn kernel(&self) -> Result<Kernel> {
        let context = Environment::context();
        let ledger = self.place.open(self.options, &context)?;
        let project = Project { directory: self.directory.clone(), root: self.place.root.clone() };
        Ok(with_floors_above(Kernel::new(ledger, context, project)))
    }

    /// As [`Session::settings_of_project`].
    pub(crate) fn settings_of_project(&self, kernel: &Kernel, project_dir: &Path) -> Result<Settings> {
        let root = config::root_of(kernel, project_dir);
        let config = config::load(&root, self.named_config.as_deref())?.config;
        let settings =
            Settings::of(config, &root, kernel.store(), self.home.clone(), self.options.busy_timeout);
        Ok(settings.with(&kernel.ledger))
    }

    /// How the ledger is opened.
    pub(crate) fn options(&self) -> OpenOptions {
        self.options
    }

    /// The directory of the ledger.
    pub(crate) fn store(&self) -> &Path {
        &self.place.store
    }
}

fn not_a_directory(path: &Path) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("{} is not a directory.", path.display()))
}
