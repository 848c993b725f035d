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

use crate::lazy_verbs::Later;

verbs! {
    /// A RUN is an id, the last six or more digits of one, @ (the only active run of this project) or scope:NAME.
    pub(crate) enum RunVerb {
        Create(create::RunCreateArgs),
        List(list::RunListArgs),
        Status(status::RunStatusArgs),
        Phase(phase::Phase),
        Current(current::Current),
        Events(events::Events),
        History(history::History),
        Advance(advance::RunAdvanceArgs),
        Skip(skip::RunSkipArgs),
        Set(set::Set),
        Cancel(cancel::RunCancelArgs),
        Reopen(reopen::Reopen),
        Rollback(rollback::RunRollbackArgs),
        /// Agents of a run: add, list, update
        #[command(subcommand)]
        Agent(Later<agent::RunAgentVerb>),
        /// Artifacts of a run: add, list, cat
        #[command(subcommand)]
        Artifact(Later<artifact::RunArtifactVerb>),
    }
}
