//! `ic drop`

use ic_worktree::{Workspace, forks};

use crate::commands::prelude::*;
use crate::views::fork::DropJson;

/// Remove a fork.
///
/// Its last state is kept in a checkpoint, and its commits by a ref. Files that no checkpoint holds, such as ignored ones, go only with
/// --force.
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
        let fork = forks::find(&kernel, &self.fork)?;
        let main = kernel.project.root.clone();
        let dropped = session.within(&fork.root, |session| {
            let kernel = session.kernel()?;
            let settings = session.checkpoint_settings(&kernel)?;
            let workspace = Workspace::here(&kernel, &settings)?;
            forks::drop_fork(&workspace, &main, &fork, self.force)
        })?;
        session.output.record(&DropJson::new(&fork, &dropped), || views::fork::dropped(&fork, &dropped))
    }
}
