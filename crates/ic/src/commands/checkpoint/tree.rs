//! `ic checkpoint tree`

use std::ops::ControlFlow;

use ic_worktree::Workspace;

use super::Selection;
use crate::commands::prelude::*;
use crate::views::checkpoint::CheckpointJson;

/// Draw the checkpoints of this working tree as a tree, with a branch at each restore.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint tree
  ic checkpoint tree --run @
  ic checkpoint tree --json | jq -r '.[] | \"\\(.parent_id) \\(.id)\"'")]
pub(crate) struct CheckpointTreeArgs {
    #[command(flatten)]
    selection: Selection,
}

impl CheckpointTreeArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let run = self.selection.run(&kernel)?;
        let mut all = Vec::new();
        ic_worktree::list(&workspace, self.selection.filter(&workspace, run.as_ref())?, |shown| {
            all.push(shown);
            Ok(ControlFlow::Continue(()))
        })?;
        let records: Vec<CheckpointJson> = all
            .iter()
            .map(|shown| {
                let record = CheckpointJson::new(&shown.checkpoint, shown.manifest.as_ref());
                record.for_prompt(shown.prompt.as_ref())
            })
            .collect();
        session.output.list(&records, || views::checkpoint::tree(&all))
    }
}
