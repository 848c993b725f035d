//! `ic hook`

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use ic_base::{Code, Diagnosis, Result, RunId};
use ic_kernel::Kernel;
use ic_kernel::config::{self, Guard};
use ic_ops::hooks::calls::{self, Begun, Guarded, Told};
use ic_ops::hooks::{self, Asked, Teller};
use ic_worktree::{Settings, Warning};
use serde_json::Value;

use crate::clients::{Client, Occasion, tools};
use crate::exit::Exit;
use crate::hook_log::{self, Line};
use crate::session::Session;

/// No payload is longer; what is, is not read to its end.
const LONGEST_PAYLOAD: u64 = 64 * 1024 * 1024;

/// How long a look at the tree waits for its turn: an agent waits with us, and what it misses the next look shows.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a ledger that others write to is waited for: what is not recorded now is lost.
const PATIENCE_TO_WRITE: Duration = Duration::from_secs(10);

/// Record what a coding agent does: what its hooks call, with the event's JSON on standard input.
///
/// It ends with 0 whatever happens, prints nothing but the client's own JSON, and makes no ledger: the agent is never in the way of a
/// fault of ic. What goes wrong is in hooks.log beside the ledger, and ic hooks doctor shows it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic hook claude-code UserPromptSubmit <payload.json
  ic hooks install claude-code        # what makes the client call it")]
pub(crate) struct Hook {
    /// The client: claude-code, codex, gemini, copilot or opencode; another one is let through
    client: String,
    /// The client's name of the event; another one is let through
    event: String,
}

/// What a client says of an event.
struct Event {
    client: Client,
    occasion: Occasion,
    payload: Value,
}

impl Hook {
    pub(crate) fn run(&self, session: &mut Session) -> Exit {
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
        Exit::Done
    }

    /// Errors: `invalid_value` for what is unknown, or no JSON.
    fn read(&self) -> Result<Event> {
        let unknown = |what: &str, name: &str| {
            Diagnosis::new(
                Code::InvalidValue,
                format!("The {what} {name:?} is not known; it was let through."),
            )
        };
        let mut text = String::new();
        let read = std::io::stdin().take(LONGEST_PAYLOAD).read_to_string(&mut text);
        let named = Client::parse(&self.client).ok_or_else(|| unknown("client", &self.client))?;
        let occasion = named.occasion(&self.event).ok_or_else(|| unknown("event", &self.event))?;
        read.map_err(|e| unreadable(&e.to_string()))?;
        let payload: Value = serde_json::from_str(&text).map_err(|e| unreadable(&e.to_string()))?;
        let client = named.speaking(&payload);
        Ok(Event { client, occasion, payload: client.spelled(payload) })
    }

    /// What the client is told. Errors: for the log alone.
    fn answer(&self, session: &mut Session, event: &Event) -> Result<Said> {
        let payload = Payload(&event.payload);
        let directory =
            payload.text("cwd").map(PathBuf::from).and_then(|dir| std::fs::canonicalize(dir).ok());
        let directory = directory.unwrap_or_else(|| session.directory.clone());
        session.for_hook(directory, PATIENCE_TO_WRITE);
        if session.place().is_err() {
            return Ok(Said::default());
        }
        let id = payload.text("session_id").filter(|id| is_id(id));
        let id = id.ok_or_else(|| unreadable("it names no session"))?;
        let teller = Teller { client: event.client.as_str(), client_id: id };
        self.record(session, teller, event.client, event.occasion, &payload)
    }

    fn record(
        &self,
        session: &Session,
        teller: Teller<'_>,
        client: Client,
        occasion: Occasion,
        payload: &Payload<'_>,
    ) -> Result<Said> {
        let kernel = session.kernel()?;
        // A configuration that cannot be read is no reason to record nothing, or to let undone work go on.
        let (kept, mut warnings) = match session.kept_along_the_way(&kernel, &kernel.project.root, true) {
            Ok(kept) => (kept.map(|kept| Settings { busy_timeout: PATIENCE, ..kept }), Vec::new()),
            Err(error) => (None, vec![warning(&error)]),
        };
        let mut answer = None;
        match occasion {
            Occasion::SessionBegins => {
                answer = client.listens_at_begin().then(|| Client::tell(&self.event, WELCOME));
            }
            Occasion::Prompt => {
                let Some(text) = payload.prompt() else { return Ok(Said { answer, warnings }) };
                let run = session.named_run().map(|run| open_run(&kernel, run)).transpose()?.flatten();
                let id = payload.own_id();
                let asked = Asked {
                    prompt_id: id.as_deref(),
                    text,
                    model: payload.text("model"),
                    transcript: payload.text("transcript_path").map(Path::new),
                    run: run.as_ref(),
                    is_heard: client.listens_at_prompts(),
                };
                let recorded = hooks::prompt(&kernel, teller, &asked, kept.as_ref())?;
                warnings.extend(recorded.warnings);
                if client.listens_at_prompts() {
                    let welcome =
                        (recorded.is_first && !client.listens_at_begin()).then(|| WELCOME.to_owned());
                    answer = recorded.undone.or(welcome).map(|text| Client::tell(&self.event, &text));
                }
            }
            Occasion::BeforeCall | Occasion::AfterCall => {
                let is_end = occasion == Occasion::AfterCall;
                if !is_end && let Some(news) = news(&kernel, teller, client, payload)? {
                    return Ok(Said { answer: Some(client.refuse(&news)), warnings });
                }
                let guard = guard(session, &kernel, &mut warnings);
                match call(session, &kernel, guard, teller, payload, is_end, kept.as_ref())? {
                    Begun::Refused(why) => answer = Some(client.refuse(&why)),
                    Begun::Doubtful(why) => answer = Some(doubt(client, guard, &why)),
                    Begun::Goes(more) => warnings.extend(more),
                }
            }
            // Of a subagent: the prompt's work goes on.
            Occasion::Stops | Occasion::SessionEnds if payload.text("agent_id").is_some() => {}
            Occasion::Stops => {
                let stopped = hooks::stop(&kernel, teller, kept.as_ref())?;
                warnings.extend(stopped.into_iter().flat_map(|(_, warnings)| warnings));
            }
            Occasion::SessionEnds => hooks::end(&kernel, teller, payload.text("reason"), kept.as_ref())?,
        }
        Ok(Said { answer, warnings })
    }
}

/// What became of a hook.
#[derive(Default)]
struct Said {
    /// What the client is told.
    answer: Option<Value>,
    /// What went less well, for the log.
    warnings: Vec<Warning>,
}

fn warning(error: &Diagnosis) -> Warning {
    Warning { code: error.code().as_str(), message: error.message().to_owned() }
}

/// What an agent has not heard because its model reads nothing with a prompt. What refuses its own work comes first.
fn news(
    kernel: &Kernel,
    teller: Teller<'_>,
    client: Client,
    payload: &Payload<'_>,
) -> Result<Option<String>> {
    if client.listens_at_prompts() || hooks::refusal(kernel, teller, payload.prompt_id())?.is_some() {
        return Ok(None);
    }
    hooks::news(kernel, teller)
}

/// Records the beginning or the end of a tool call.
fn call(
    session: &Session,
    kernel: &Kernel,
    guard: Guard,
    teller: Teller<'_>,
    payload: &Payload<'_>,
    is_end: bool,
    kept: Option<&Settings>,
) -> Result<Begun> {
    let tool = payload.text("tool_name").unwrap_or("?");
    if !tools::may_write(tool) {
        let refused = if is_end { None } else { hooks::refusal(kernel, teller, payload.prompt_id())? };
        return Ok(refused.map_or_else(|| Begun::Goes(Vec::new()), Begun::Refused));
    }
    let directory = payload.text("cwd").map_or_else(|| kernel.project.directory.clone(), PathBuf::from);
    let call = tools::Call::read(&payload.0["tool_input"], &directory, &kernel.project.root);
    let guarded = call.command.as_deref().filter(|_| guard != Guard::Allow);
    let guarded = guarded.map(|line| Guarded { line, directory: &directory, home: session.home() });
    let told = Told {
        prompt_id: payload.prompt_id(),
        call_id: payload.text("tool_use_id").filter(|id| is_id(id)),
        agent_id: payload.text("agent_id").filter(|id| is_id(id)),
        agent_type: payload.text("agent_type"),
        tool,
        line: &call.line,
        paths: &call.paths,
        guarded,
    };
    if is_end {
        return calls::end(kernel, teller, &told, kept).map(Begun::Goes);
    }
    calls::begin(kernel, teller, &told, kept)
}

/// What becomes of a call that destroys what cannot be undone. Who cannot be asked is refused, and told what decides.
fn doubt(client: Client, guard: Guard, why: &str) -> Value {
    let asked = (guard == Guard::Ask).then(|| client.ask(&format!("{why} Is that meant?"))).flatten();
    asked.unwrap_or_else(|| {
        client.refuse(&format!(
            "{why} Ask the person first. If it is meant, they run it themselves, or let such commands go through: \
             `hooks: {{guard: allow}}` in ~/.config/ic/config.yaml."
        ))
    })
}

/// The guard in force. A file that cannot be read says nothing.
fn guard(session: &Session, kernel: &Kernel, warnings: &mut Vec<Warning>) -> Guard {
    let own = config::own_guard(session.home()).unwrap_or_else(|error| {
        warnings.push(warning(&error));
        None
    });
    let of_project = session.config(&config::root_of(kernel, &kernel.project.root)).ok();
    Guard::in_force(own, of_project.and_then(|loaded| loaded.config.guard))
}

fn unreadable(why: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, format!("The payload is not valid: {why}."))
}

/// What an agent reads when its session begins.
const WELCOME: &str = "Each prompt of this session is recorded by `ic`, with the tree before and after it. The person can see it with \
    `ic log` and undo a prompt with `ic undo`; if a tool call is refused because the work was undone, stop and say so.";

/// The run that `IC_RUN` names, if it is open and of this project.
fn open_run(kernel: &Kernel, reference: &str) -> Result<Option<RunId>> {
    let run = kernel.read(|snapshot| kernel.run(snapshot, reference))?;
    let is_of_here = run.project_dir == kernel.project.root;
    Ok((is_of_here && run.require_active().is_ok()).then_some(run.id))
}

/// Whether a text is a verb with nothing but flags and references after it: no sentence.
fn is_verb_with_arguments(text: &str) -> bool {
    let is_argument = |word: &str| {
        word.starts_with('-') || word.contains([':', '@']) || word.contains(|c: char| c.is_ascii_digit())
    };
    text.lines().count() <= 1 && text.split_whitespace().skip(1).all(is_argument)
}

/// Whether a client may call a session so: nothing that could be taken for anything else where it is shown.
fn is_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (1..=128).contains(&text.len()) && text.chars().all(is_plain)
}

/// What a client said.
struct Payload<'p>(&'p Value);

impl<'p> Payload<'p> {
    fn text(&self, key: &str) -> Option<&'p str> {
        self.0[key].as_str().filter(|text| !text.is_empty())
    }

    /// What the client calls the prompt, if it has a name for it.
    fn prompt_id(&self) -> Option<&'p str> {
        self.text("prompt_id").or_else(|| self.text("turn_id"))
    }

    /// What tells this prompt from every other one of its session: a hook that is called twice for it finds what the first call recorded.
    fn own_id(&self) -> Option<String> {
        let at = || match &self.0["timestamp"] {
            Value::String(at) if at.len() <= 64 => Some(format!("at {at}")),
            Value::Number(at) => Some(format!("at {at}")),
            _ => None,
        };
        self.prompt_id().map(str::to_owned).or_else(at)
    }

    /// What a person typed. Clients also send what no person did: a subagent's task, the news that one ended, a command of ic itself.
    fn prompt(&self) -> Option<&'p str> {
        let text = self.text("prompt")?.trim();
        // Gemini puts what its hooks told before what the person typed.
        let text = text
            .strip_prefix("<hook_context>")
            .and_then(|rest| rest.split_once("</hook_context>"))
            .map_or(text, |(_, typed)| typed.trim());
        let is_command = text.starts_with("/ic:")
            || text == "ic"
            || text.strip_prefix("ic ").is_some_and(is_verb_with_arguments);
        let is_news = text.starts_with("<task-notification>");
        let is_of_agent = self.text("agent_id").is_some();
        (!text.is_empty() && !is_command && !is_news && !is_of_agent).then_some(text)
    }
}
