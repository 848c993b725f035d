//! `ic checkpoint diff`

use std::path::PathBuf;

use ic_worktree::Workspace;

use crate::commands::diff_forms::{DiffForms, ShownDiff};
use crate::commands::prelude::*;

/// Show what changed between two checkpoints or points, or from one to the working tree.
///
/// A point stands for the tree as it was there; `ic log` lists the points of a run. `ic diff` shows the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint diff 3f9a12c4                       # against the working tree
  ic checkpoint diff 3f9a12c4 8b1c22d0 --stat
  ic checkpoint diff 5d6e7f80 --stat                # since before that prompt
  ic checkpoint diff phase:planned --run @
  ic checkpoint diff 3f9a12c4 -- src docs/a.md      # only these paths
  ic checkpoint diff 3f9a12c4 -p | git apply -R
  ic checkpoint diff 3f9a12c4 --json | jq -r '.changes[] | select(.change == \"added\").path'")]
pub(crate) struct CheckpointDiffArgs {
    /// The older checkpoint or point: an id, the end of one, a name, @, @~2, phase:P, or created
    from: String,
    /// The newer one [default: the working tree]
    to: Option<String>,
    /// The run of the points [default: that of an id, else @, else the newest here]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only these paths and what is below them
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    forms: DiffForms,
}

impl CheckpointDiffArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let (from, to) = (self.from.as_str(), self.to.as_deref());
        ShownDiff::between(&workspace, self.run.as_deref(), (from, to), &self.paths)?.print(session, self.forms)
    }
}
