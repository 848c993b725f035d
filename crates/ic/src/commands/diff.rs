//! `ic diff`

use std::path::PathBuf;

use ic_worktree::{RestoreReport, Workspace};

use crate::commands::diff_forms::{DiffForms, ShownDiff};
use crate::commands::prelude::*;
use crate::commands::undo::UndoPreview;

/// Show what an undo would take out now, or what changed since a point or between two.
///
/// Without REF it is the work that `ic undo` would undo: lines with + are those that would go. With REF it is everything
/// that changed from before that work to the working tree, your own changes too; with two, from one point to the other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic diff                               # what ic undo would take out
  ic diff 3f9a12c4                      # since before that prompt
  ic diff @~2 --stat
  ic diff @~2 @                         # from before the one to before the other
  ic diff good -- src docs/a.md         # since the checkpoint good, only these paths
  ic diff 3f9a12c4 --json | jq -r '.changes[] | select(.change == \"added\").path'")]
pub(crate) struct DiffArgs {
    /// The older point, as ic log prints it: the end of an id, a name, @, @~2, phase:P, or created
    #[arg(value_name = "REF")]
    from: Option<String>,
    /// The newer point [default: the working tree]
    #[arg(value_name = "REF2")]
    to: Option<String>,
    /// The run of the points [default: that of an id, else @, else the newest here]
    #[arg(long, value_name = "RUN", requires = "from")]
    run: Option<String>,
    /// Only these paths and what is below them
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    forms: DiffForms,
}

impl DiffArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        // As git does, it prints a patch into a pipe too.
        let forms = self.forms.or_patch();
        let Some(from) = &self.from else { return self.of_undo(session, forms) };
        let kernel = session.kernel()?;
        let settings = session.checkpoint_settings(&kernel)?;
        let workspace = Workspace::here(&kernel, &settings)?;
        session.warn_of_interruption(&workspace)?;
        let ends = (from.as_str(), self.to.as_deref());
        ShownDiff::between(&workspace, self.run.as_deref(), ends, &self.paths)?.print(session, forms)
    }

    /// What an undo of the last work would take out of the tree.
    fn of_undo(&self, session: &mut CliSession, forms: DiffForms) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let (tree, refusal) = match UndoPreview::of_last(session, &kernel)? {
            UndoPreview::Rollback(whole) => {
                let refusal = whole.refusals.into_iter().next().map(|refusal| refusal.error);
                (whole.parts.tree, refusal)
            }
            UndoPreview::Restore(mut report) => {
                let refusal = report.refusal.take();
                (Some(*report), refusal)
            }
        };
        if let Some(refusal) = refusal {
            let (why, code) = (refusal.message().trim_end_matches('.'), refusal.code().as_str());
            session
                .output
                .warn_beside_text(&format!("the undo would be refused ({code}): {why}; see: ic undo --dry-run"));
        }
        let Some(tree) = tree else {
            return Err(Diagnosis::new(Code::NothingToUndo, "The undo of the last work would change no file.")
                .hint("what it would do: ic undo --dry-run"));
        };
        let settings = session.checkpoint_settings(&kernel)?;
        // This is the tree of the run that would be undone, which may be another work tree than the one here.
        let workspace = Workspace::open(&kernel, tree.target.root.clone(), &settings)?;
        self.print(session, &workspace, &tree, forms)
    }

    fn print(
        &self,
        session: &mut CliSession,
        workspace: &Workspace<'_>,
        tree: &RestoreReport,
        forms: DiffForms,
    ) -> Result<ExitStatus> {
        let paths = ic_worktree::paths_in_root(workspace, &self.paths)?;
        ShownDiff::of_plan(workspace, tree, &paths).print(session, forms)
    }
}
