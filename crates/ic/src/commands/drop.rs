//! `ic drop`

use ic_ops::forks;

use crate::commands::prelude::*;
use crate::views::fork::DropJson;

/// Remove a fork.
///
/// Its last state is kept in a checkpoint, and the commit that is checked out by a ref. Files that no checkpoint holds, such as ignored ones
/// and repositories in it, go only with --force. A work tree that `ic fork` did not make is never removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic drop 1
  ic drop try --force            # with its ignored files
  ic checkpoint restore ID --into --strategy files-only    # its last state, here")]
pub(crate) struct DropArgs {
    /// The fork: its name or its directory
    fork: String,
    /// Remove files that no checkpoint holds, too
    #[arg(long)]
    force: bool,
}

impl DropArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let settings = session.checkpoint_settings(&kernel)?;
        let (name, dropped) = forks::drop(&kernel, &settings, &self.fork, self.force)?;
        session.output.record(&DropJson::new(&name, &dropped), || views::fork::dropped(&name, &dropped))
    }
}
