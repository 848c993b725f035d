//! `ic checkpoint ...`

mod cat;
mod create;
mod delete;
mod diff;
mod list;
mod prune;
mod purge;
mod restore;
mod show;
mod verify;

use std::path::PathBuf;

use ic_checkpoint::record::CheckpointFilter;
use ic_kernel::Kernel;
use ic_phase::Run;
use ic_worktree::Workspace;
pub(crate) use restore::RestoreFlags;

use crate::commands::prelude::*;

verbs! {
    pub(crate) enum CheckpointVerb {
        Create(create::CheckpointCreateArgs),
        List(list::CheckpointListArgs),
        #[command(visible_alias = "info")]
        Show(show::CheckpointShowArgs),
        Diff(diff::CheckpointDiffArgs),
        Cat(cat::CheckpointCatArgs),
        Restore(restore::CheckpointRestoreArgs),
        Prune(prune::Prune),
        Delete(delete::Delete),
        Purge(purge::Purge),
        Verify(verify::CheckpointVerifyArgs),
    }
}

/// Shows the checkpoint with this id, as `ic checkpoint show` does.
pub(crate) fn show_by_id(session: &mut CliSession, id: &str) -> Result<ExitStatus> {
    show::CheckpointShowArgs { id: id.to_owned(), files: false }.run(session)
}

/// Which checkpoints a list shows.
#[derive(Debug, Args)]
struct Selection {
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only those of this conversation
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,
    /// Only those of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Those of this working tree, by its full path; it may be deleted [default: the one here]
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    root: Option<PathBuf>,
    /// Include pruned checkpoints, whose content is gone
    #[arg(long)]
    pruned: bool,
    /// Include those of coding agents' tool calls
    #[arg(long)]
    calls: bool,
}

impl Selection {
    /// The run that `--run` names; `None` if it was not given.
    fn run(&self, kernel: &Kernel) -> Result<Option<Run>> {
        self.run.as_ref().map(|run| kernel.read(|snapshot| kernel.run(snapshot, run))).transpose()
    }

    /// Whether every flag of the selection is at its default, so that all checkpoints of this working tree are listed.
    fn is_of_here(&self) -> bool {
        self.run.is_none() && self.conversation.is_none() && self.workflow.is_none() && self.root.is_none()
    }

    /// The filter for a query: by root, or by run, whose checkpoints may be of other working trees.
    fn filter<'a>(&'a self, workspace: &'a Workspace<'_>, run: Option<&'a Run>) -> Result<CheckpointFilter<'a>> {
        // A label that no checkpoint can have is a typing error, which an empty list would hide.
        for (flag, name) in [("--conversation", &self.conversation), ("--workflow", &self.workflow)] {
            input::optional_label(flag, name.as_deref())?;
        }
        Ok(CheckpointFilter {
            root: if run.is_some() { None } else { self.root.as_deref().or(Some(&workspace.root)) },
            run_id: run.map(|run| &run.id),
            conversation: self.conversation.as_deref(),
            workflow: self.workflow.as_deref(),
            pruned: self.pruned,
            calls: self.calls,
        })
    }
}
