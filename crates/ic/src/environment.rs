//! The one place that reads the environment.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use ic_base::{Context, FixedClock, RandomIds, SeededIds, SystemClock, TEST_HOOKS, Timestamp};
use ic_ledger::Actor;
use ic_ledger::faults::{FaultMode, turn_on};
use ic_session::clients::Client;

/// The settings that the environment holds.
#[derive(Debug, Default, Clone)]
pub(crate) struct CliEnvironment {
    /// `IC_DB`: the ledger's file, or the URL of one on a server.
    pub(crate) db: Option<PathBuf>,
    /// `IC_CONFIG`: the project's configuration file.
    pub(crate) config: Option<PathBuf>,
    /// `IC_FORMAT`: the default of `--format`.
    pub(crate) format: Option<OsString>,
    /// `HOME`: the home directory, which is no project.
    pub(crate) home: Option<PathBuf>,
    /// `IC_DISPATCH`: the dispatch on whose behalf writes are made.
    pub(crate) dispatch: Option<OsString>,
    /// `IC_RUN`: the open run that the work of a coding agent's session belongs to.
    pub(crate) run: Option<OsString>,
    /// The session of a coding agent in whose shell this process runs: the client, and the client's id of the session.
    pub(crate) session: Option<(&'static str, String)>,
    /// Whether an agent calls over MCP: set by the server, not read.
    pub(crate) is_mcp: bool,
    /// `IC_HOOK_LIMIT`: how long a capture of a hook may take, in seconds; a fraction is understood.
    pub(crate) hook_limit: Option<Duration>,
    /// `IC_COMPLETE`: the shell that asks what can stand at its cursor.
    pub(crate) complete: Option<OsString>,
}

impl CliEnvironment {
    /// Reads the environment, once, at the start of the process.
    pub(crate) fn read() -> Self {
        if TEST_HOOKS {
            arm_test_hooks();
        }
        Self {
            // An empty IC_DB counts, unlike the others: it is refused with a hint. If it were ignored, the search would
            // find another ledger than the one that was meant.
            db: env::var_os("IC_DB").map(PathBuf::from),
            config: env::var_os("IC_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from),
            format: env::var_os("IC_FORMAT").filter(|v| !v.is_empty()),
            home: env::var_os("HOME").filter(|v| !v.is_empty()).map(PathBuf::from),
            dispatch: env::var_os("IC_DISPATCH").filter(|v| !v.is_empty()),
            run: env::var_os("IC_RUN").filter(|v| !v.is_empty()),
            session: Client::ALL.into_iter().find_map(|client| {
                let named = client.shell_variable.and_then(|name| env::var(name).ok());
                named.filter(|id| !id.is_empty()).map(|id| (client.name, id))
            }),
            is_mcp: false,
            // A value that is no number is ignored: a hook must not fail because of it.
            hook_limit: env::var("IC_HOOK_LIMIT")
                .ok()
                .and_then(|seconds| seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())),
            complete: env::var_os("IC_COMPLETE"),
        }
    }

    /// The paths at which all clients keep records of themselves, in their directories.
    pub(crate) fn records(&self) -> Vec<PathBuf> {
        let of_client = |client: &'static Client| {
            directories_of(client, self.home.as_deref())
                .flat_map(|directory| client.records.iter().map(move |record| directory.join(record)))
        };
        Client::ALL.into_iter().flat_map(of_client).collect()
    }

    /// The clock and ids; tests' own builds can fix them.
    pub(crate) fn context() -> Context {
        /// One for the process: a hook opens the ledger again for each event that waited.
        static IDS: OnceLock<SeededIds> = OnceLock::new();
        if !TEST_HOOKS {
            return Context::system();
        }
        Context {
            clock: match number("IC_TEST_CLOCK") {
                Some(millis) => Box::new(FixedClock(Timestamp(millis))),
                None => Box::new(SystemClock),
            },
            ids: match number("IC_TEST_IDS") {
                Some(seed) => Box::new(IDS.get_or_init(|| SeededIds::new(seed.unsigned_abs()))),
                None => Box::new(RandomIds),
            },
        }
    }
}

impl CliEnvironment {
    /// Who calls, as tests fix it (`IC_TEST_ACTOR=USER@SEAT`): the machine's own answer differs between machines.
    pub(crate) fn fixed_actor() -> Option<Actor> {
        let fixed = env::var("IC_TEST_ACTOR").ok().filter(|_| TEST_HOOKS)?;
        let (user, seat) = fixed.split_once('@')?;
        Some(Actor { user: user.to_owned(), seat: seat.to_owned(), ..Actor::default() })
    }

    /// Whether a hook stops waiting early for a server that does not answer. Tests of other things turn it off, because their machine is
    /// slow.
    pub(crate) fn has_little_patience() -> bool {
        !TEST_HOOKS || env::var_os("IC_TEST_PATIENT").is_none()
    }
}

/// The directories in which a client keeps its own files: the one that its variable names, then that of the home directory.
pub(crate) fn directories_of(client: &Client, home: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let named = client.directory_variable.and_then(env::var_os).filter(|value| !value.is_empty()).map(PathBuf::from);
    named.into_iter().chain(home.map(|home| home.join(client.directory)))
}

fn number(name: &str) -> Option<i64> {
    env::var(name).ok()?.parse().ok()
}

/// `IC_TEST_ABORT_BEFORE=n` and `IC_TEST_SQL_LOG=path` for the ledger, `IC_TEST_RERUN` to run its write
/// transactions twice, `IC_TEST_ONE_HOST`, `IC_TEST_CONFLICT=n` and `IC_TEST_SERIALIZABLE` for one on a server,
/// `IC_TEST_REWIND_ABORT_BEFORE=n` for an application's database.
fn arm_test_hooks() {
    if let Some(n) = number("IC_TEST_REWIND_ABORT_BEFORE") {
        ic_rewind::faults::abort_before(n.unsigned_abs());
    }
    if let Some(n) = number("IC_TEST_ABORT_BEFORE") {
        ic_ledger::faults::abort_before(n);
    }
    if let Some(n) = number("IC_TEST_CONFLICT") {
        ic_ledger::faults::conflict_before(n);
    }
    if env::var_os("IC_TEST_RERUN").is_some() {
        turn_on(FaultMode::Rerun);
    }
    if env::var_os("IC_TEST_SERIALIZABLE").is_some() {
        turn_on(FaultMode::Serializable);
    }
    if env::var_os("IC_TEST_ONE_HOST").is_some() {
        turn_on(FaultMode::OneHost);
    }
    if let Some(path) = env::var_os("IC_TEST_SQL_LOG")
        && let Ok(file) = std::fs::File::options().create(true).append(true).open(path)
    {
        ic_ledger::faults::log_to(file);
    }
}
