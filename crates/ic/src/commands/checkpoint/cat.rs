//! `ic checkpoint cat`

use std::path::PathBuf;

use ic_worktree::{Which, Workspace};

use crate::commands::prelude::*;

/// Print the content of a file in a checkpoint.
///
/// For a symbolic link, print its target.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint cat 3f9a12c4 src/main.rs
  ic checkpoint cat 3f9a12c4 logo.png > logo.old.png")]
pub(crate) struct CheckpointCatArgs {
    /// The checkpoint: an id, or the end of one
    id: String,
    /// The file, relative to here
    path: PathBuf,
}

impl CheckpointCatArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.output.exact(|sink| ic_worktree::cat(&workspace, Which::Id(&self.id), &self.path, sink))
    }
}
