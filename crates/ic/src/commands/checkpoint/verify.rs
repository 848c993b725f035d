//! `ic checkpoint verify`

use ic_worktree::{Workspace, repair, retention};

use super::prune::with_room;
use crate::commands::prelude::*;
use crate::views::checkpoint::retention::VerifyObjectsJson;

/// Verify that all content of the checkpoints is there.
///
/// Exit 2 when content is missing or damaged: it is listed, with the checkpoints that need it. With --repair, lost
/// content is marked as lost, and exit 0: checkpoints without any content are removed, those that lack some files stay
/// without them, and content that the working tree still has is stored again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint verify
  ic checkpoint verify --read-data --json | jq '.damaged[].object'
  ic checkpoint verify --repair         # mark what is lost, keep the rest")]
pub(crate) struct CheckpointVerifyArgs {
    /// Read all content and check its hashes
    #[arg(long)]
    read_data: bool,
    /// Mark lost content as lost, so that the rest works again; reads all content
    #[arg(long)]
    repair: bool,
}

impl CheckpointVerifyArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        if self.repair {
            return repair_store(session);
        }
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let verified = retention::verify(&Workspace::here(&kernel, &settings)?, self.read_data)?;
        session
            .output
            .record(&VerifyObjectsJson::from(&verified), || views::checkpoint::retention::verified(&verified))?;
        Ok(if verified.damaged.is_empty() && verified.file.is_empty() { ExitStatus::Done } else { ExitStatus::Failure })
    }
}

fn repair_store(session: &mut CliSession) -> Result<ExitStatus> {
    // Marking what is lost writes rows, which a full disk would refuse.
    let repaired = with_room(session, |_| {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        repair::repair(&kernel, &settings)
    })?;
    session.output.record(&VerifyObjectsJson::repaired(&repaired), || views::checkpoint::retention::repaired(&repaired))
}
