//! `ic checkpoint verify`

use ic_worktree::{Workspace, repair, retention};

use super::prune::with_room;
use crate::commands::prelude::*;
use crate::views::checkpoint::retention::VerifyObjectsJson;

/// Check that everything that checkpoints need is there.
///
/// Exit 2 when something is missing or damaged: it is named, with the checkpoints that need it. With --repair what is lost is
/// marked as lost, and exit 0: checkpoints whose content is gone are removed, those that lack some files stay without them,
/// and what the working tree still has is kept again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint verify
  ic checkpoint verify --read-data --json | jq '.damaged[].object'
  ic checkpoint verify --repair         # the store is damaged or lost: mark what is gone, keep the rest")]
pub(crate) struct Verify {
    /// Read all content, and compare it with its hashes
    #[arg(long)]
    read_data: bool,
    /// Mark what is lost as lost, so that everything else works again; reads all content
    #[arg(long)]
    repair: bool,
}

impl Verify {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        if self.repair {
            return repair_store(session);
        }
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let verified = retention::verify(&Workspace::here(&kernel, &settings)?, self.read_data)?;
        session.output.record(&VerifyObjectsJson::from(&verified), || {
            views::checkpoint::retention::verified(&verified)
        })?;
        Ok(if verified.damaged.is_empty() && verified.file.is_empty() { Exit::Done } else { Exit::Failure })
    }
}

fn repair_store(session: &mut Session) -> Result<Exit> {
    let repaired = with_room(session, |_| {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        repair::repair(&kernel, &settings)
    })?;
    session
        .output
        .record(&VerifyObjectsJson::repaired(&repaired), || views::checkpoint::retention::repaired(&repaired))
}
