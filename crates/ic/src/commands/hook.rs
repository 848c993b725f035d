//! `ic hook`

mod delivery;
mod guard;
mod lenient;
mod payload;
mod places;
mod server_deadline;
mod tools;

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delivery::Hearing;
use ic_checkpoint::capture::Limit;
use ic_ops::hooks::{self, Teller};
use ic_phase::run_reference::ProjectScope;
use ic_session::clients::{Client, HookOccasion, may_write};
use ic_worktree::{CaptureSettings, Warning};
use payload::{Payload, is_id};
use serde_json::Value;

use crate::commands::hooks::client_help;
use crate::commands::prelude::*;
use crate::environment::CliEnvironment;
use crate::flags::Global;
use crate::hook_log::{self, HookLogLine};
use crate::hook_runs::HookRun;

/// The most bytes of a payload that are read; a longer one is cut there, and then is no JSON.
const LONGEST_PAYLOAD: u64 = 64 * 1024 * 1024;

/// How long a capture waits for the lock of the tree. The agent waits with us, and the next capture shows what this one missed.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a hook waits for a ledger that others write to: what it does not record now is lost.
const PATIENCE_TO_WRITE: Duration = Duration::from_secs(10);

/// Record what a coding agent does. Its hooks call this, with the event's JSON on standard input.
///
/// Called so, it always exits with 0, prints nothing but the JSON that the client expects, and creates no ledger: a
/// fault of ic never stops the agent. Errors go to hooks.log beside the ledger, and ic hooks doctor shows them. Typed on
/// a terminal, it is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hook claude-code UserPromptSubmit <payload.json
  ic hooks install claude-code        # makes the client call it")]
pub(crate) struct Hook {
    #[arg(help = format!("{}; others are ignored", client_help()))]
    client: String,
    /// The client's name of the event; others are ignored
    event: String,
    /// Whether the event came when the ledger could not be reached, and is recorded later: the tree is not captured.
    #[arg(skip)]
    is_late: bool,
}

/// A hook ignores IC_FORMAT, and a directory that is gone: a client may outlive the directory that it was started in.
pub(crate) fn demand_nothing(global: &mut Global, environment: &mut CliEnvironment) {
    environment.format = None;
    let named = global.directory.as_deref().unwrap_or(Path::new("."));
    if !std::fs::canonicalize(named).is_ok_and(|directory| directory.is_dir()) {
        // The payload names the directory; this one only has to exist.
        global.directory = Some(PathBuf::from("/"));
    }
}

/// An event, as a client told it.
struct Event {
    client: &'static Client,
    occasion: HookOccasion,
    payload: Value,
}

impl Hook {
    /// Ends with 0: a fault of ic must not stop the agent. Errors: `usage` if a person calls it on a terminal, and no agent.
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        if std::io::stdin().is_terminal() {
            return Err(Diagnosis::new(Code::Usage, "ic hook reads an event that a coding agent tells it.")
                .hint("to make an agent call it: ic hooks install CLIENT"));
        }
        let started = Instant::now();
        let event = self.read();
        // Some clients call by the name of Claude Code where they load its hooks.
        let client = event.as_ref().map_or(self.client.as_str(), |event| event.client.name).to_owned();
        let said = event.and_then(|event| self.answer(session, &event));
        // The log is chosen only now: the answer has moved the session to the directory that the payload names, and
        // each ledger has a log of its own.
        if let Ok(place) = session.place() {
            let line = HookLogLine::new(&client, &self.event, started.elapsed());
            let line = match &said {
                Ok(said) => said.warnings.iter().fold(line, |line, one| line.saying(one.code, &one.message)),
                Err(error) => line.saying(error.code().as_str(), error.message()),
            };
            hook_log::append(&place.store, &line);
        }
        if let Ok(Said { answer: Some(answer), .. }) = said {
            // A client that has gone reads nothing.
            let _ = writeln!(std::io::stdout(), "{answer}");
        }
        Ok(ExitStatus::Done)
    }

    /// Reads the event. Errors: `invalid_value` for an unknown client or event, and for a payload that is no JSON.
    fn read(&self) -> Result<Event> {
        let unknown = |what: &str, name: &str| {
            Diagnosis::new(Code::InvalidValue, format!("The {what} {name:?} is not known; it was ignored."))
        };
        let mut bytes = Vec::new();
        // Read before anything can fail, so that the client can always write its payload to the end.
        let read = std::io::stdin().take(LONGEST_PAYLOAD).read_to_end(&mut bytes);
        let named = Client::parse(&self.client).ok_or_else(|| unknown("client", &self.client))?;
        let occasion = named.occasion(&self.event).ok_or_else(|| unknown("event", &self.event))?;
        read.map_err(|e| unreadable(&e.to_string()))?;
        let payload = lenient::read(&bytes).map_err(|e| unreadable(&e.to_string()))?;
        let client = named.speaking(&payload);
        Ok(Event { client, occasion, payload: client.dialect.translated(payload) })
    }

    /// Records the event and returns the client's answer. Errors go to the log alone.
    fn answer(&self, session: &mut CliSession, event: &Event) -> Result<Said> {
        // place? ── none ──► nothing is recorded
        //    ▼
        // events that wait are recorded ── fails ──► this event waits behind them
        //    ▼
        // this event is recorded ── fails ──► it is kept, or dropped if it can never succeed; before a call the guard answers alone
        let payload = Payload(&event.payload);
        // The client may run its hooks in another directory than the one in which the agent works.
        let directory = payload.text("cwd").map(PathBuf::from).and_then(|dir| std::fs::canonicalize(dir).ok());
        let directory = directory.unwrap_or_else(|| session.directory.clone());
        session.for_hook(directory.clone(), PATIENCE_TO_WRITE, server_deadline::patience());
        // Without a ledger there is nothing to record: hooks of the user's settings are called in every project.
        let Ok(place) = session.place() else { return Ok(Said::default()) };
        // Events that wait for the ledger come first. While they cannot be recorded, this event has to wait behind them.
        let replayed = server_deadline::replay(session, &place, &directory);
        let id = payload.text("session_id").filter(|id| is_id(id));
        let id = replayed.and_then(|_| id.ok_or_else(|| unreadable("it names no session")));
        let recorded = id.and_then(|id| {
            let teller = Teller { client: event.client.name, client_id: id };
            // Only hooks that capture may take so long that their client kills them.
            // The line has no duration: if the hook is killed, the time of its file tells how long it took.
            let line = HookLogLine::new(event.client.name, &self.event, Duration::ZERO);
            let looks = event.occasion.looks(may_write(payload.tool()));
            // The value is bound to a name, so that the file stays until the event is recorded; a bare `_` would remove
            // it at once.
            let _run = looks.then(|| HookRun::begin(&place.store, &line)).flatten();
            self.record(session, teller, event.client, event.occasion, &payload)
        });
        if let Err(error) = &recorded {
            // Kept before the guard answers: the answer may be a refusal, and the event is recorded later either way.
            server_deadline::keep(&place, event, (&self.event, &payload), error);
        }
        match recorded {
            // The guard works without a ledger: what it protects is in no checkpoint either way.
            Err(error) if event.occasion == HookOccasion::BeforeCall => {
                guard::alone(session, &place.root, event.client, &payload, error)
            }
            recorded => recorded,
        }
    }

    fn record(
        &self,
        session: &CliSession,
        teller: Teller<'_>,
        client: &'static Client,
        occasion: HookOccasion,
        payload: &Payload<'_>,
    ) -> Result<Said> {
        let mut kernel = session.kernel()?;
        // The session is not read from the environment, which `for_hook` emptied: the payload says which session it is.
        kernel.session = Some((teller.client.to_owned(), teller.client_id.to_owned()));
        // An agent may go into another work tree of the repository. The tree that is captured here is still the one that its session began
        // in.
        if let Some(known) = kernel.read(|snapshot| hooks::project_of(snapshot, teller))? {
            kernel.project = ProjectScope { directory: known.clone(), root: known };
        }
        // A configuration that cannot be read still lets the event be recorded, and calls of undone work be refused.
        let (kept, warnings) = match session.kept_along_the_way(&kernel, &kernel.project.root, true) {
            Ok(_) if self.is_late => (None, Vec::new()),
            Ok(kept) => {
                let limit = self.limit(session, client);
                (kept.map(|kept| CaptureSettings { busy_timeout: PATIENCE, limit, ..kept }), Vec::new())
            }
            Err(error) => (None, vec![warning(&error)]),
        };
        // The looks in all places have one limit: the client measures the hook as a whole.
        let limit = kept.as_ref().map(|kept| kept.limit.clone()).unwrap_or_default();
        let hearing = Hearing { event: &self.event, session, kernel: &kernel, teller, client, payload, kept };
        let mut said = Said { warnings, ..Said::default() };
        // This is asked before the call is recorded here: undone work of the same prompt in another place refuses it, too.
        if occasion == HookOccasion::BeforeCall
            && let Some(why) = places::refusal(&hearing)?
        {
            said.answer = Some(client.dialect.refuse(&why));
            return Ok(said);
        }
        hearing.hear(occasion, &mut said)?;
        // A refused call is not made, so it does nothing in other places either.
        if !said.is_refused {
            let told = places::ToldEvent { event: &self.event, session, teller, client, payload, limit };
            told.elsewhere(&mut kernel, occasion, &mut said)?;
        }
        Ok(said)
    }
}

impl Hook {
    /// When a capture ends: before the client would kill this process, or as soon as it asks this process to end.
    fn limit(&self, session: &CliSession, client: &Client) -> Limit {
        let most = session.hook_limit().unwrap_or_else(|| client.capture_limit(&self.event));
        // Without a handler the capture still has its limit of time, so the error is ignored.
        Limit::new(Instant::now(), most, crate::signals::interrupted().ok())
    }
}

/// The outcome of a hook.
#[derive(Default)]
struct Said {
    /// The answer for the client; `None`: nothing is printed.
    answer: Option<Value>,
    /// Whether the call is refused or the stop is blocked.
    is_refused: bool,
    /// Warnings for the log: the event was recorded in spite of them.
    warnings: Vec<Warning>,
}

fn warning(error: &Diagnosis) -> Warning {
    Warning { code: error.code().as_str(), message: error.message().to_owned() }
}

fn unreadable(why: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("The payload is not valid: {why}."))
}
