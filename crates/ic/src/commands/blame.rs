//! `ic blame`

use std::path::PathBuf;

use ic_ops::blame;
use ic_worktree::Workspace;

use crate::commands::prelude::*;
use crate::views::blame::BlameJson;

/// Show the prompts, dispatches and commits that changed a file, newest first.
///
/// A change belongs to the work that ran between the two captures of the tree that show it. Where several agents
/// worked at the same time, their tool calls tell whose change it is; a change that none of them explains is shown as
/// shared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic blame src/login.rs
  ic blame src/login.rs --json | jq -r '.changes[].dispatches[].name'
  ic checkpoint diff FROM TO -- src/login.rs    # one change")]
pub(crate) struct BlameArgs {
    /// The file (it may be deleted)
    file: PathBuf,
    /// At most the newest N changes and N commits
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

impl BlameArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        let found = blame::blame(&workspace, &self.file, self.limit as usize)?;
        let now = kernel.context.now();
        session.output.record(&BlameJson::from(&found), || views::blame::blame(&found, now))
    }
}
