//! `ic rollback show`

use super::show;
use crate::commands::prelude::*;

/// Show a rollback: its steps, how far each is, and its plan.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback show 3f9a12c4
  ic rollback show @                               # the newest of the run")]
pub(crate) struct RollbackShowArgs {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    pub(super) id: String,
}

impl RollbackShowArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (remembered, steps) = ic_undo::named(&kernel, &self.id)?;
        show(session, &kernel, (&remembered, &steps), ic_undo::is_at_work(&kernel, &remembered), &[])?;
        Ok(ExitStatus::Done)
    }
}
