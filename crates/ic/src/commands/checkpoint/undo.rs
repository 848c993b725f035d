//! `ic checkpoint undo`

use super::restore::Common;
use crate::commands::prelude::*;

/// Undo the last restore of the working tree.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint undo --dry-run
  ic checkpoint undo --yes")]
pub(crate) struct CheckpointUndoArgs {
    #[command(flatten)]
    common: Common,
}

impl CheckpointUndoArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        self.common.undo(session)
    }
}
