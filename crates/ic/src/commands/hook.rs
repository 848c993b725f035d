//! `ic hook`

mod guard;
mod payload;
mod places;
mod unsent;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{DispatchId, RunId, title};
use ic_checkpoint::capture::Limit;
use ic_dispatch::dispatch;
use ic_kernel::Kernel;
use ic_kernel::config::{self, Guard};
use ic_ops::hooks::calls::{self, Begun, Told};
use ic_ops::hooks::{self, Asked, Teller, subagents};
use ic_phase::resolve::Project;
use ic_worktree::{Settings, Warning};
use payload::{Payload, is_id, plain_id};
use serde_json::Value;

use crate::background;
use crate::clients::transcript::Transcript;
use crate::clients::{Client, Occasion, lenient, tools};
use crate::commands::prelude::*;
use crate::environment::Environment;
use crate::flags::Global;
use crate::hook_log::{self, Line};
use crate::hook_runs::Run;

/// No payload is longer; what is, is not read to its end.
const LONGEST_PAYLOAD: u64 = 64 * 1024 * 1024;

/// How long a look at the tree waits for its turn: an agent waits with us, and what it misses the next look shows.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a ledger that others write to is waited for: what is not recorded now is lost.
const PATIENCE_TO_WRITE: Duration = Duration::from_secs(10);

/// Record what a coding agent does. Its hooks call this, with the event's JSON on standard input.
///
/// It always exits with 0, prints nothing but the JSON that the client expects, and creates no ledger: a fault of ic
/// never stops the agent. Errors go to hooks.log beside the ledger, and ic hooks doctor shows them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hook claude-code UserPromptSubmit <payload.json
  ic hooks install claude-code        # makes the client call it")]
pub(crate) struct Hook {
    /// The client: claude-code, codex, gemini, copilot or opencode; others are ignored
    client: String,
    /// The client's name of the event; others are ignored
    event: String,
    /// It came when the ledger could not be reached: the tree is not looked at.
    #[arg(skip)]
    is_late: bool,
}

/// Whatever its environment says, and wherever it was started: a hook works by what its client says. A client may outlive its directory.
pub(crate) fn demand_nothing(global: &mut Global, environment: &mut Environment) {
    environment.format = None;
    let named = global.directory.as_deref().unwrap_or(Path::new("."));
    if !std::fs::canonicalize(named).is_ok_and(|directory| directory.is_dir()) {
        global.directory = Some(PathBuf::from("/"));
    }
}

/// What a client says of an event.
struct Event {
    client: Client,
    occasion: Occasion,
    payload: Value,
}

impl Hook {
    /// It ends with 0 whatever happens.
    #[allow(clippy::unnecessary_wraps, reason = "every verb is run so")]
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let started = Instant::now();
        let event = self.read();
        // Several clients may call by the name of one whose format they read.
        let client = event.as_ref().map_or(self.client.as_str(), |event| event.client.as_str()).to_owned();
        let said = event.and_then(|event| self.answer(session, &event));
        if let Ok(place) = session.place() {
            let line = Line::new(&client, &self.event, started.elapsed());
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
        Ok(Exit::Done)
    }

    /// Errors: `invalid_value` for what is unknown, or no JSON.
    fn read(&self) -> Result<Event> {
        let unknown = |what: &str, name: &str| {
            Diagnosis::new(Code::InvalidValue, format!("The {what} {name:?} is not known; it was ignored."))
        };
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(LONGEST_PAYLOAD).read_to_end(&mut bytes);
        let named = Client::parse(&self.client).ok_or_else(|| unknown("client", &self.client))?;
        let occasion = named.occasion(&self.event).ok_or_else(|| unknown("event", &self.event))?;
        read.map_err(|e| unreadable(&e.to_string()))?;
        let payload = lenient::read(&bytes).map_err(|e| unreadable(&e.to_string()))?;
        let client = named.speaking(&payload);
        Ok(Event { client, occasion, payload: client.spelled(payload) })
    }

    /// What the client is told. Errors: for the log alone.
    fn answer(&self, session: &mut Session, event: &Event) -> Result<Said> {
        let payload = Payload(&event.payload);
        let directory =
            payload.text("cwd").map(PathBuf::from).and_then(|dir| std::fs::canonicalize(dir).ok());
        let directory = directory.unwrap_or_else(|| session.directory.clone());
        session.for_hook(directory.clone(), PATIENCE_TO_WRITE, unsent::patience());
        let Ok(place) = session.place() else { return Ok(Said::default()) };
        // What came before is recorded before: what still waits has this event wait, too.
        let replayed = unsent::replay(session, &place, &directory);
        let id = payload.text("session_id").filter(|id| is_id(id));
        let id = replayed.and_then(|_| id.ok_or_else(|| unreadable("it names no session")));
        let recorded = id.and_then(|id| {
            let teller = Teller { client: event.client.as_str(), client_id: id };
            // Only where the tree is looked at a hook may take so long that its client ends it.
            let line = Line::new(event.client.as_str(), &self.event, Duration::ZERO);
            let looks = event.occasion.looks(tools::may_write(payload.tool()));
            let _run = looks.then(|| Run::begin(&place.store, &line)).flatten();
            self.record(session, teller, event.client, event.occasion, &payload)
        });
        if let Err(error) = &recorded {
            unsent::keep(&place, event, (&self.event, &payload), error);
        }
        match recorded {
            Err(error) if event.occasion == Occasion::BeforeCall => {
                guard::alone(session, &place.root, event.client, &payload, error)
            }
            recorded => recorded,
        }
    }

    fn record(
        &self,
        session: &Session,
        teller: Teller<'_>,
        client: Client,
        occasion: Occasion,
        payload: &Payload<'_>,
    ) -> Result<Said> {
        let mut kernel = session.kernel()?;
        // An agent may go into another work tree of the repository: what is recorded is the tree that its session began in.
        if let Some(known) = kernel.read(|snapshot| hooks::project_of(snapshot, teller))? {
            kernel.project = Project { directory: known.clone(), root: known };
        }
        // A configuration that cannot be read is no reason to record nothing, or to let undone work go on.
        let (kept, warnings) = match session.kept_along_the_way(&kernel, &kernel.project.root, true) {
            Ok(_) if self.is_late => (None, Vec::new()),
            Ok(kept) => {
                let limit = self.limit(session, client);
                (kept.map(|kept| Settings { busy_timeout: PATIENCE, limit, ..kept }), Vec::new())
            }
            Err(error) => (None, vec![warning(&error)]),
        };
        let limit = kept.as_ref().map(|kept| kept.limit.clone()).unwrap_or_default();
        let hearing = Hearing { event: &self.event, session, kernel: &kernel, teller, client, payload, kept };
        let mut said = Said { warnings, ..Said::default() };
        if occasion == Occasion::BeforeCall
            && let Some(why) = places::refusal(&hearing)?
        {
            said.answer = Some(client.refuse(&why));
            return Ok(said);
        }
        hearing.hear(occasion, &mut said)?;
        if !said.is_refused {
            let told = places::Told { event: &self.event, session, teller, client, payload, limit };
            told.elsewhere(&mut kernel, occasion, &mut said)?;
        }
        Ok(said)
    }
}

impl Hearing<'_> {
    /// Tells of an event where the session began.
    fn hear(&self, occasion: Occasion, said: &mut Said) -> Result<()> {
        let (hearing, client, payload) = (self, self.client, self.payload);
        match occasion {
            Occasion::SessionBegins => {
                let given = hearing.given(&mut said.warnings)?;
                if client.listens_at_begin() {
                    said.answer = Some(Client::tell(&self.event, &hearing.welcome(&given)?));
                }
            }
            Occasion::Prompt => hearing.prompt(said)?,
            Occasion::BeforeCall => hearing.before_call(said)?,
            Occasion::AfterCall => said.warnings.extend(hearing.after_call()?),
            // Of a subagent, whatever its client calls it: the prompt's work goes on.
            Occasion::SubagentStops | Occasion::Stops | Occasion::SessionEnds
                if payload.agent_id().is_some() =>
            {
                said.warnings.extend(hearing.subagent_stops()?);
            }
            Occasion::SubagentStops => {}
            Occasion::Stops => hearing.stops(said)?,
            Occasion::SessionEnds => hearing.session_ends()?,
        }
        Ok(())
    }
}

impl Hook {
    /// When a capture ends that would make the client kill us: before that, or when it asks us to end.
    fn limit(&self, session: &Session, client: Client) -> Limit {
        let most = session.hook_limit().unwrap_or_else(|| client.capture_limit(&self.event));
        Limit::new(Instant::now(), most, crate::signals::interrupted().ok())
    }
}

/// What is told at one event, and by whom.
struct Hearing<'h> {
    event: &'h str,
    session: &'h Session,
    kernel: &'h Kernel,
    teller: Teller<'h>,
    client: Client,
    payload: &'h Payload<'h>,
    /// How the tree is captured; `None`: it is not.
    kept: Option<Settings>,
}

impl Hearing<'_> {
    fn prompt(&self, said: &mut Said) -> Result<()> {
        let Self { session, kernel, client, payload, .. } = *self;
        let Some(text) = payload.prompt() else {
            if payload.is_command() {
                hooks::command(kernel, self.teller)?;
            }
            return if payload.is_unprompted() {
                hooks::go_on(kernel, self.teller, payload.prompt_id())
            } else {
                Ok(())
            };
        };
        let given = self.given(&mut said.warnings)?;
        let id = payload.own_id();
        let parent = session.began_by().and_then(|named| dispatch_named(kernel, named));
        let asked = Asked {
            prompt_id: id.as_deref(),
            text,
            model: payload.text("model"),
            transcript: payload.text("transcript_path").map(Path::new),
            transcript_size: self.transcript("transcript_path").and_then(|record| record.size()),
            parent: parent.as_ref(),
            run: given.run.as_ref(),
            is_heard: client.listens_at_prompts(),
            is_unseen: false,
        };
        let recorded = hooks::prompt(kernel, self.teller, &asked, self.kept.as_ref())?;
        said.warnings.extend(recorded.warnings);
        if client.listens_at_prompts() {
            let is_late = recorded.is_first && !client.listens_at_begin();
            let welcome = if is_late { Some(self.welcome(&given)?) } else { None };
            let unusable = given.unusable.filter(|_| recorded.begins_run && welcome.is_none());
            let news: Vec<String> = recorded.undone.or(welcome).into_iter().chain(unusable).collect();
            said.answer = (!news.is_empty()).then(|| Client::tell(self.event, &news.join(" ")));
        }
        Ok(())
    }

    fn before_call(&self, said: &mut Said) -> Result<()> {
        if let Some(news) = self.news()? {
            said.answer = Some(self.client.refuse(&news));
            said.is_refused = true;
            return Ok(());
        }
        if !tools::may_write(self.payload.tool()) {
            said.answer = self.refusal()?.map(|why| self.client.refuse(&why));
            return Ok(());
        }
        let guard = guard::in_force(self.session, &self.kernel.project.root, &mut said.warnings);
        let begun =
            self.told(guard, |told| calls::begin(self.kernel, self.teller, told, self.kept.as_ref()))?;
        match begun {
            Begun::Refused(why) => {
                said.answer = Some(self.client.refuse(&why));
                said.is_refused = true;
            }
            Begun::Doubtful(why, more) => {
                said.answer = Some(guard::doubt(self.client, guard, &why));
                said.warnings.extend(more);
            }
            Begun::Goes(more) => said.warnings.extend(more),
        }
        Ok(())
    }

    fn after_call(&self) -> Result<Vec<Warning>> {
        if !tools::may_write(self.payload.tool()) {
            return Ok(Vec::new());
        }
        self.told(Guard::Allow, |told| calls::end(self.kernel, self.teller, told, self.kept.as_ref()))
    }

    /// Hands on what the payload says of a tool call.
    fn told<T>(&self, guard: Guard, hand_on: impl FnOnce(&Told<'_>) -> Result<T>) -> Result<T> {
        let (kernel, payload) = (self.kernel, self.payload);
        let call = payload.call(&kernel.project.directory, &kernel.project.root);
        let outside = places::without_places(call.outside.clone(), kernel);
        let guarded = guard::guarded(&call, guard, self.session.home());
        let given = self.given(&mut Vec::new())?;
        let call_id = payload.text("tool_use_id").map(plain_id);
        hand_on(&Told {
            prompt_id: payload.prompt_id(),
            call_id: call_id.as_deref(),
            agent_id: payload.agent_id(),
            agent_type: payload.text("agent_type"),
            tool: self.payload.tool(),
            line: &call.line,
            paths: &call.paths,
            outside: &outside,
            transcript: payload.text("transcript_path").map(Path::new),
            run: given.run.as_ref(),
            guarded,
        })
    }

    fn subagent_stops(&self) -> Result<Vec<Warning>> {
        let agent = self.payload.agent_id().unwrap_or_default();
        let count = |_| self.transcript("agent_transcript_path")?.tokens_since(0);
        subagents::stop(self.kernel, self.teller, agent, self.kept.as_ref(), &count)
    }

    fn stops(&self, said: &mut Said) -> Result<()> {
        if self.client.can_hold()
            && holds_stops(self.session, self.kernel, &mut said.warnings)
            && let Some(why) = hooks::hold(self.kernel, self.teller, self.kept.as_ref())?
        {
            said.answer = Some(self.client.hold(&why));
            said.is_refused = true;
            return Ok(());
        }
        let count = |start: Option<u64>| self.transcript("transcript_path")?.tokens_since(start?);
        let stopped = hooks::stop(self.kernel, self.teller, self.kept.as_ref(), &count)?;
        said.warnings.extend(stopped.into_iter().flat_map(|(_, warnings)| warnings));
        if let Some(settings) = &self.kept {
            background::sweep(self.session, self.kernel, settings, &self.kernel.project.root);
        }
        Ok(())
    }

    fn session_ends(&self) -> Result<()> {
        let count = |start: Option<u64>| self.transcript("transcript_path")?.tokens_since(start?);
        hooks::end(self.kernel, self.teller, self.payload.text("reason"), self.kept.as_ref(), &count)
    }

    /// What an agent reads when its session begins.
    fn welcome(&self, given: &Given) -> Result<String> {
        let situation = hooks::situation(self.kernel, self.teller, given.run.as_ref())?;
        let welcome = if self.kernel.ledger.is_of_one_host() { WELCOME } else { WELCOME_TO_SERVER };
        let all = [Some(welcome.to_owned()), situation, given.unusable.clone()];
        Ok(all.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// The run that `IC_RUN` gives the session. One that takes no prompts is no reason to record none.
    fn given(&self, warnings: &mut Vec<Warning>) -> Result<Given> {
        let Some(named) = self.session.named_run() else { return Ok(Given::default()) };
        match usable_run(self.kernel, named) {
            Ok(run) => Ok(Given { run: Some(run), unusable: None }),
            Err(error) if error.kind() == ic_base::Kind::Failure => Err(error),
            Err(error) => {
                let why = error.message().trim_end_matches('.');
                let named = title(named);
                let unusable = format!(
                    "IC_RUN is {named}, and takes no prompts: {why}. They are recorded in a run of the session's own: tell the person."
                );
                warnings.push(Warning { code: error.code().as_str(), message: unusable.clone() });
                Ok(Given { run: None, unusable: Some(unusable) })
            }
        }
    }

    /// A record of a session or of a subagent that the payload names.
    fn transcript(&self, key: &str) -> Option<Transcript> {
        Transcript::of(self.client, self.payload.text(key), self.session.home())
    }

    /// Why a call is refused because its work was undone.
    fn refusal(&self) -> Result<Option<String>> {
        hooks::refusal(self.kernel, self.teller, self.payload.prompt_id(), self.payload.agent_id())
    }

    /// What an agent has not heard because its model reads nothing with a prompt. What refuses its own work comes first.
    fn news(&self) -> Result<Option<String>> {
        if self.client.listens_at_prompts() || self.refusal()?.is_some() {
            return Ok(None);
        }
        hooks::news(self.kernel, self.teller)
    }
}

/// What became of a hook.
#[derive(Default)]
struct Said {
    /// What the client is told.
    answer: Option<Value>,
    /// Whether the call is refused, or the stop is held back: neither happens.
    is_refused: bool,
    /// What went less well, for the log.
    warnings: Vec<Warning>,
}

fn warning(error: &Diagnosis) -> Warning {
    Warning { code: error.code().as_str(), message: error.message().to_owned() }
}

/// The dispatch that a variable of the environment names, if there is one.
fn dispatch_named(kernel: &Kernel, reference: &str) -> Option<DispatchId> {
    kernel.read(|snapshot| dispatch::resolve(snapshot, reference)).ok().map(|found| found.id)
}

/// Whether the gate of a run holds an agent's stop back here.
fn holds_stops(session: &Session, kernel: &Kernel, warnings: &mut Vec<Warning>) -> bool {
    let own = guard::own_hooks(session, &kernel.project.root, warnings);
    let of_project = session.config(&config::root_of(kernel, &kernel.project.root)).ok();
    own.gate || of_project.is_some_and(|loaded| loaded.config.gate)
}

fn unreadable(why: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("The payload is not valid: {why}."))
}

/// What an agent reads when its session begins.
const WELCOME: &str = "Each prompt of this session is recorded by `ic`, with the tree before and after it. The person can see it with \
    `ic log` and undo a prompt with `ic undo`; if a tool call is refused because the work was undone, stop and say so.";

/// The same where the ledger is on a server, and keeps no trees.
const WELCOME_TO_SERVER: &str = "Each prompt of this session is recorded by `ic`. The person can see it with `ic log`; if a tool call is \
    refused because the work was undone, stop and say so.";

/// The run that the environment gives a session.
#[derive(Default)]
struct Given {
    run: Option<RunId>,
    /// Why the one that is named is not used, for the agent.
    unusable: Option<String>,
}

/// The run that `IC_RUN` names. Errors: those of a lookup, `run_not_active`, and `invalid_value` for one of another project.
fn usable_run(kernel: &Kernel, reference: &str) -> Result<RunId> {
    let run = kernel.read(|snapshot| kernel.run(snapshot, reference))?;
    run.require_active()?;
    if run.project_dir != kernel.project.root {
        let why = format!("The run {} is of another project.", run.id.short());
        return Err(Diagnosis::new(Code::InvalidValue, why));
    }
    Ok(run.id)
}
