//! `ic session ...`

use clap::{Args, Subcommand};
use ic_base::Result;
use ic_dispatch::dispatch;
use ic_session::call;

use crate::exit::Exit;
use crate::json::{SessionJson, SessionShowJson};
use crate::render;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Show(Show),
}

/// List sessions of coding agents, oldest first: of many, the newest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session list
  ic session list --json | jq -r '.[-1].run_id'")]
pub(crate) struct List {
    /// At most so many: the newest
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

/// Show a session of a coding agent with its prompts, and what became of each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic session show 3f9a12c4
  ic session show 3f9a12c4 --calls      # with what each prompt's tools were asked to do
  ic session show 3f9a12c4 --json | jq -r '.prompts[] | [.short_id, .status, .name] | @tsv'")]
pub(crate) struct Show {
    /// The session: its id, the end of it, or what its client calls it
    id: String,
    /// Show the tool calls of each prompt that may change files, too
    #[arg(long)]
    calls: bool,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::List(verb) => verb.run(session),
            Self::Show(verb) => verb.run(session),
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
            let prompts = ic_session::of_session(snapshot, &found.id)?;
            let prompts = prompts.iter().map(|prompt| {
                let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
                Ok((work, call::of_dispatch(snapshot, &prompt.dispatch_id)?))
            });
            Ok((found, prompts.collect::<Result<Vec<_>>>()?))
        })?;
        let record = SessionShowJson::new(&found, &prompts, self.calls);
        session.output.record(&record, || render::hooks::session(&found, &prompts, self.calls))?;
        Ok(Exit::Done)
    }
}
