//! `ic checkpoint delete`

use std::time::Duration;

use ic_worktree::retention::{self, GRACE};
use ic_worktree::{Which, Workspace};

use super::prune::{report, with_room};
use crate::commands::prelude::*;

/// Delete the content of a checkpoint, and free its space.
///
/// Its children become children of its parent. Its row stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint delete 3f9a12c4")]
pub(crate) struct Delete {
    /// The checkpoint: an id, or the end of one
    id: String,
    /// Even if an unfinished run or an undo needs it
    #[arg(long)]
    force: bool,
    /// Keep unneeded content younger than DUR [default: 1m]
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    grace: Option<Duration>,
}

impl Delete {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let grace = self.grace.unwrap_or(GRACE);
        let pruned = with_room(session, |_| {
            let kernel = session.kernel()?;
            let settings = session.checkpoint_settings(&kernel)?;
            let workspace = Workspace::here(&kernel, &settings)?;
            retention::delete(&workspace, Which::Id(&self.id), self.force, grace)
        })?;
        report(session, &pruned)
    }
}
