//! `ic checkpoint redo`

use super::restore::Common;
use crate::commands::prelude::*;

/// Redo the restore that was undone last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint redo --yes")]
pub(crate) struct CheckpointRedoArgs {
    #[command(flatten)]
    common: Common,
}

impl CheckpointRedoArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        self.common.run(session, &self.common.request(), ic_worktree::redo)
    }
}
