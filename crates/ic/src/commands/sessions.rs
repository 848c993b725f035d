//! `ic session ...`

use clap::{Args, Subcommand};
use ic_base::{Code, Diagnosis, Result};
use ic_dispatch::dispatch;
use ic_ops::hooks;
use ic_session::call;

use crate::exit::Exit;
use crate::json::{SessionJson, SessionShowJson};
use crate::render;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Show(Show),
    Attach(Attach),
}

/// List sessions of coding agents, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session list
  ic session list --json | jq -r '.[-1].run_id'")]
pub(crate) struct List {
    /// At most the newest N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

/// Show a session of a coding agent: its prompts, and the outcome of each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session show 3f9a12c4
  ic session show 3f9a12c4 --calls      # with the tool calls of each prompt
  ic session show 3f9a12c4 --json | jq -r '.prompts[] | [.short_id, .status, .name] | @tsv'")]
pub(crate) struct Show {
    /// The session: its id, the end of it, or the client's id
    id: String,
    /// Include tool calls that may change files
    #[arg(long)]
    calls: bool,
}

/// Attach a session to an active run: its later prompts belong to that run.
///
/// The session's own run is completed, unless the agent is working on a prompt: then it stays active, with that prompt
/// in it. When the attached run has ended, the session's next prompt begins a run of its own again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session attach 7f3a9c21                        # in the agent's own shell
  ic session attach 7f3a9c21 --session 3f9a12c4")]
pub(crate) struct Attach {
    /// The run
    run: String,
    /// The session: its id, the end of it, or the client's id [default: the one of this shell]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::List(verb) => verb.run(session),
            Self::Show(verb) => verb.run(session),
            Self::Attach(verb) => verb.run(session),
        }
    }
}

impl List {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let all = kernel.read(|snapshot| ic_session::list(snapshot, self.limit))?;
        let records: Vec<SessionJson> = all.iter().map(SessionJson::from).collect();
        let now = kernel.context.now();
        session.output.list(&records, || render::hooks::sessions(&all, now))?;
        Ok(Exit::Done)
    }
}

impl Show {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let (found, prompts) = kernel.read(|snapshot| {
            let found = ic_session::resolve(snapshot, &self.id)?;
            let mut all = Vec::new();
            for prompt in ic_session::of_session(snapshot, &found.id)? {
                let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
                let subagents = dispatch::descendants(snapshot, &work.id)?;
                for work in std::iter::once(work).chain(subagents) {
                    let calls = call::of_dispatch(snapshot, &work.id)?;
                    all.push((work, calls));
                }
            }
            Ok((found, all))
        })?;
        let record = SessionShowJson::new(&found, &prompts, self.calls);
        session.output.record(&record, || render::hooks::session(&found, &prompts, self.calls))?;
        Ok(Exit::Done)
    }
}

impl Attach {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let found = kernel.read(|snapshot| match (&self.session, session.called_by()) {
            (Some(named), _) => ic_session::resolve(snapshot, named),
            (None, Some((client, id))) => ic_session::by_client(snapshot, client, id)?.ok_or_else(no_caller),
            (None, None) => Err(no_caller()),
        })?;
        let attached = hooks::attach(&kernel, &found.id, &self.run)?;
        let record = SessionJson::from(&attached);
        session.output.record(&record, || render::hooks::attached(&found, &attached))?;
        Ok(Exit::Done)
    }
}

fn no_caller() -> Diagnosis {
    Diagnosis::new(Code::SessionNotFound, "No recorded session of a coding agent makes this call.")
        .hint("name one with --session; see: ic session list")
}
