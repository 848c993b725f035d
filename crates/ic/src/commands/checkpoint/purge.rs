//! `ic checkpoint purge`

use std::path::PathBuf;

use ic_worktree::{Workspace, purge};

use crate::commands::prelude::*;
use crate::views::checkpoint::retention::PurgeJson;

/// Remove all content that a path ever had from every checkpoint: a secret that leaked.
///
/// Git packs that checkpoints keep are rewritten without it, refs below refs/ic/ that lead to it are removed, and no
/// restore of git's state brings it back. The checkpoints stay. Other paths with the same content lose it too, and are
/// listed. The output also lists what a purge does not reach, with the command that shows it: the repository's own
/// objects, refs and reflogs, its remotes, the files themselves. ic does not know backups and copies of the store. A
/// purge cannot be undone; if it was killed, run it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint purge config/token.txt --yes")]
pub(crate) struct Purge {
    /// The path, relative to here
    path: PathBuf,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Purge {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let text = || {
            // Refused before the question, because a yes would not help.
            purge::require_purgeable(&Workspace::here(&kernel, &settings)?, &self.path)?;
            Ok(format!(
                "This removes the content of {} from every checkpoint, for good, also where other paths have the same content.\n",
                self.path.display()
            ))
        };
        let question = Question { does: "A purge cannot be undone", look: None, asks: "Purge?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(ExitStatus::No);
        }
        // The question may have waited for a long time, so the store is opened again, and `purge` checks the path again.
        let purged = purge::purge(&Workspace::here(&kernel, &settings)?, &self.path)?;
        session.output.record(&PurgeJson::from(&purged), || views::checkpoint::retention::purged(&purged))
    }
}
