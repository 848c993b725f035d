//! `ic checkpoint purge`

use std::path::PathBuf;

use ic_worktree::{Workspace, purge};

use crate::commands::prelude::*;
use crate::views::checkpoint::retention::PurgeJson;

/// Take the content that a path ever had out of every checkpoint, for good: a secret that leaked.
///
/// Packs of git's that checkpoints keep are written anew without it, refs below refs/ic/ that lead to it are removed, and no restore
/// of git's state brings it back. The checkpoints stay. Other paths with the same content lose it too, and are named. So is what a
/// purge does not reach, with the command that shows it: the repository's own objects, refs and reflogs, its remotes, the files themselves.
/// Backups and copies of the store are not known here. It cannot be undone; one that was killed is made again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint purge config/token.txt --yes")]
pub(crate) struct Purge {
    /// The path, from the working directory
    path: PathBuf,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Purge {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let text = || {
            purge::require_purgeable(&Workspace::here(&kernel, &settings)?, &self.path)?;
            Ok(format!(
                "The content of {} goes from every checkpoint, for good, and with it that of other paths with the same content.\n",
                self.path.display()
            ))
        };
        let question = Question { does: "A purge cannot be undone", look: None, asks: "Purge?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(Exit::No);
        }
        let purged = purge::purge(&Workspace::here(&kernel, &settings)?, &self.path)?;
        session.output.record(&PurgeJson::from(&purged), || views::checkpoint::retention::purged(&purged))
    }
}
