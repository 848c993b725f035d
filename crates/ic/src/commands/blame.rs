//! `ic blame`

use std::path::PathBuf;

use ic_ops::blame;
use ic_worktree::Workspace;

use crate::commands::prelude::*;
use crate::views::blame::BlameJson;

/// Show which prompts and dispatches changed a file, newest first, and the commits that did.
///
/// A change belongs to the work that was under way between the two looks at the tree that show it. Where several agents worked at the same
/// time, their tool calls say whose it is; what they do not say is shared, and is told so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic blame src/login.rs
  ic blame src/login.rs --json | jq -r '.changes[].dispatches[].name'
  ic checkpoint diff FROM TO -- src/login.rs    # what one change was")]
pub(crate) struct Blame {
    /// The file, which may be gone
    file: PathBuf,
    /// At most so many changes, and so many commits: the newest
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

impl Blame {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        let found = blame::blame(&workspace, &self.file, self.limit as usize)?;
        let now = kernel.context.now();
        session.output.record(&BlameJson::from(&found), || views::blame::blame(&found, now))
    }
}
