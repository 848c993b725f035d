//! `ic status`

use ic_ops::status;

use crate::commands::hooks::doctor::missing_hooks;
use crate::commands::prelude::*;
use crate::views::checkpoint::size::StoreSize;
use crate::views::log::LogUndoJson;
use crate::views::status::StatusJson;
use crate::{hook_runs, hook_spool};

/// Show a run: its phase, its workers, what is unfinished, and the command to type next.
///
/// Its workers are its executor, its dispatches and prompts that have not ended, and its active agents; what coding
/// agents work on in this project beside it is listed, too.
///
/// An unfinished rollback, restore, rewind, workflow or undo of effects is listed with the command that resumes it,
/// unless a live process is executing it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic status
  ic status 7f3a9c
  ic status --json | jq -r '.unfinished[].command'
  ic status --json | jq -r .next")]
pub(crate) struct StatusArgs {
    /// The run: an id, the end of one, @, or scope:NAME [default: @, else the newest here]
    run: Option<String>,
}

impl StatusArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        // Before the ledger is opened: a server that does not answer is the very reason why events wait.
        let unsent = session.place().ok().and_then(|place| hook_spool::read(&place.store).said());
        if let Some(said) = &unsent {
            session.output.warn(said);
        }
        let kernel = session.kernel()?;
        let run = kernel.read(|snapshot| ic_undo::points::run_or_newest(&kernel, snapshot, self.run.as_deref()));
        // Without any run there may still be a restore to finish, and the error names it.
        let run = run.map_err(|error| match error.code() {
            Code::RunNotFound => status::without_run(&kernel, session.options(), error),
            _ => error,
        })?;
        let is_named = self.run.is_some();
        let status = status::status(&kernel, session.options(), &run, is_named, |snapshot| {
            ic_workflow::unfinished(snapshot, &run)
        })?;
        let now = kernel.context.now();
        // After the ledger was opened: a place that cannot be found has been reported by then.
        if let Ok(place) = session.place()
            && let Some(said) = hook_runs::said_lately(&place.store, now)
        {
            session.output.warn(&said);
        }
        for said in missing_hooks(session) {
            session.output.warn(&said);
        }
        // A configuration that cannot be read must not hide the rest.
        let size = StoreSize::of(&kernel, session.checkpoint_settings(&kernel).ok().as_ref()).words_if_large();
        let text = || views::status::screen(&status, now, LogUndoJson::of(&kernel.ledger), size.as_deref());
        session.output.record(&StatusJson::from(&status), text)
    }
}
