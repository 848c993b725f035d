//! `ic checkpoint list`

use ic_worktree::Workspace;

use super::Selection;
use crate::commands::prelude::*;
use crate::text;
use crate::views::checkpoint::size::StoreSize;

/// List the checkpoints of this working tree, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint list
  ic checkpoint list --run @ --json | jq -r '.[] | [.id, .phase, .created_at] | @tsv'
  ic checkpoint list --conversation \"$CHAT\"
  ic checkpoint list --tree
  ic checkpoint list --root /home/me/before-the-move")]
pub(crate) struct CheckpointListArgs {
    #[command(flatten)]
    selection: Selection,
    /// Draw them as a tree, with a branch at each restore
    #[arg(long)]
    tree: bool,
}

impl CheckpointListArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let run = self.selection.run(&kernel)?;
        let filter = self.selection.filter(&workspace, run.as_ref())?;
        // JSON is printed row by row. The table for people is collected, because its columns depend on every row.
        let mut rows = views::checkpoint::CheckpointRows::new(kernel.context.now());
        let mut list = session.output.begin_list();
        let (mut is_empty, mut all) = (true, Vec::new());
        ic_worktree::list(&workspace, filter, |shown| {
            is_empty = false;
            let next = rows.push(&mut list, &shown);
            all.extend(self.tree.then_some(shown));
            next
        })?;
        let size = StoreSize::of(&kernel, Some(&settings)).words_if_large();
        list.end_with(|| {
            let store = size.map(|words| format!("\nstore: {words}\n")).unwrap_or_default();
            if self.tree { views::checkpoint::tree(&all) + &store } else { rows.render() + &store }
        })?;
        // Only for an empty list: work trees that were removed leave checkpoints, and a project with checkpoints of its own was not moved.
        if is_empty && self.selection.is_of_here() {
            warn_of_gone_roots(session, &workspace)?;
        }
        Ok(ExitStatus::Done)
    }
}

/// Names directories that are gone and have checkpoints: this project may have been moved from one of them.
fn warn_of_gone_roots(session: &CliSession, workspace: &Workspace<'_>) -> Result<()> {
    for (root, count) in ic_worktree::gone_roots(workspace)? {
        let counted = text::counted(count, "checkpoint");
        let root = text::path_text(&root);
        session.output.warn(&format!(
            "no checkpoint of this working tree, but {counted} of {root}, which is gone. If it was moved here: \
             ic checkpoint list --root '{root}' lists them, ic checkpoint restore ID --into restores one here"
        ));
    }
    Ok(())
}
