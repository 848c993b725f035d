//! `ic run artifact cat`

use ic_ops::artifact;

use crate::commands::prelude::*;

/// Print the content of an artifact, as it was when it was recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run artifact cat 3f9a12c4
  ic run artifact cat 3f9a12c4 > plan.before.md")]
pub(crate) struct RunArtifactCatArgs {
    /// The artifact: an id, or the end of one
    id: String,
}

impl RunArtifactCatArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        session.output.exact(|sink| artifact::cat(&kernel, &settings, &self.id, sink))
    }
}
