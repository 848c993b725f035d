//! `ic run ...`

mod advance;
mod agent;
mod artifact;
mod cancel;
mod create;
mod current;
mod events;
mod history;
mod list;
mod phase;
mod reopen;
mod rollback;
mod set;
mod skip;
mod status;

use clap::Subcommand;
use ic_base::Result;

use crate::exit::Exit;
use crate::session::Session;

/// A RUN is an id, the last six or more digits of one, @ (the only active run of this project) or scope:NAME.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Create(create::Create),
    List(list::List),
    Status(status::Status),
    Phase(phase::Phase),
    Current(current::Current),
    Events(events::Events),
    History(history::History),
    Advance(advance::Advance),
    Skip(skip::Skip),
    Set(set::Set),
    Cancel(cancel::Cancel),
    Reopen(reopen::Reopen),
    Rollback(rollback::Rollback),
    /// Agents of a run: add, list, update
    #[command(subcommand)]
    Agent(agent::Verb),
    /// Artifacts of a run: add, list, cat
    #[command(subcommand)]
    Artifact(artifact::Verb),
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Create(verb) => verb.run(session),
            Self::List(verb) => verb.run(session),
            Self::Status(verb) => verb.run(session),
            Self::Phase(verb) => verb.run(session),
            Self::Current(verb) => verb.run(session),
            Self::Events(verb) => verb.run(session),
            Self::History(verb) => verb.run(session),
            Self::Advance(verb) => verb.run(session),
            Self::Skip(verb) => verb.run(session),
            Self::Set(verb) => verb.run(session),
            Self::Cancel(verb) => verb.run(session),
            Self::Reopen(verb) => verb.run(session),
            Self::Rollback(verb) => verb.run(session),
            Self::Agent(verb) => verb.run(session),
            Self::Artifact(verb) => verb.run(session),
        }
    }
}
