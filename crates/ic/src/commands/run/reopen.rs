//! `ic run reopen`

use ic_ops::run;

use crate::commands::prelude::*;
use crate::views::cancel::ReopenJson;

/// Reopen a cancelled run: it is active again, in the same phase.
///
/// The dispatches and agents that the cancel ended stay ended; they are listed. A rollback works as if the run had not
/// been cancelled. A completed run cannot be reopened: roll it back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run reopen scope:sprint-12 --reason 'cancelled the wrong one'")]
pub(crate) struct Reopen {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The reason, recorded with the reopening
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    door: ForceFlags,
}

impl Reopen {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::text("--reason", &self.reason)?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let reopened = run::reopen(&kernel, &self.run, reason)?;
        session.output.record(&ReopenJson::from(&reopened), || views::cancel::reopened(&reopened))
    }
}
