//! `ic checkpoint show`

use ic_checkpoint::diff::DiffState;
use ic_worktree::{Changes, Which, Workspace};

use crate::commands::prelude::*;
use crate::views::checkpoint::CheckpointJson;
use crate::views::checkpoint::content::FileJson;

/// Show a checkpoint: its run, what changed in it, and what was left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint show 3f9a12c4
  ic checkpoint show 3f9a12c4 --json | jq '.changes[] | select(.change == \"deleted\")'
  ic checkpoint show 3f9a12c4 --files --json | jq -r '.files[].path'")]
pub(crate) struct CheckpointShowArgs {
    /// The checkpoint: an id, or the end of one
    pub(super) id: String,
    /// List everything that it holds
    #[arg(long)]
    pub(super) files: bool,
}

impl CheckpointShowArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let shown = ic_worktree::show(&workspace, Which::Id(&self.id))?;
        let mut files = Vec::new();
        // A pruned checkpoint has no manifest, and none of its files is kept.
        if self.files && shown.manifest.is_some() {
            let whole = Changes { before: None, after: shown.checkpoint.tree };
            let listed = ic_worktree::changes_of(&workspace, whole, &mut |difference| {
                let state = difference.after.filter(|_| !difference.path.is_empty());
                files.extend(state.map(|state| (difference.path, state)));
                Ok(())
            });
            // It may be pruned while its files are listed: then that is the error, and not a missing object.
            ic_worktree::unless_pruned(&workspace, &[&shown.checkpoint.id], listed)?;
        }
        let contents = files.iter().filter_map(|(_, state)| match state {
            DiffState::File { hash, .. } => Some(*hash),
            _ => None,
        });
        // One question is asked about all contents, and not one about each file.
        let purged = workspace.objects.purged_among(&contents.collect())?;
        let files: Vec<FileJson> =
            files.iter().filter_map(|(path, state)| FileJson::new(path, state, &purged)).collect();
        let record = CheckpointJson::whole(&shown.checkpoint, shown.manifest.as_ref(), &[]);
        let mut record = record.for_prompt(shown.prompt.as_ref());
        let listing = self.files.then(|| views::checkpoint::content::files(&files));
        if self.files {
            record = record.with_files(files);
        }
        session.output.record(&record, || {
            views::checkpoint::card(&shown.checkpoint, shown.manifest.as_ref(), shown.prompt.as_ref())
                + &listing.unwrap_or_default()
        })
    }
}
