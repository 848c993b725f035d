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

use crate::later::Later;

verbs! {
    /// A RUN is an id, the last six or more digits of one, @ (the only active run of this project) or scope:NAME.
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
        Agent(Later<agent::Verb>),
        /// Artifacts of a run: add, list, cat
        #[command(subcommand)]
        Artifact(Later<artifact::Verb>),
    }
}
