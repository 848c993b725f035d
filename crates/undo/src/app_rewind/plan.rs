//! What a rewind would do, and what refuses it before it begins.

use ic_base::Result;
use ic_kernel::Kernel;
use ic_rewind::journal::RewindJournalSetup;
use ic_rewind::{AnchorTask, RelationalRollbackEngine};
use ic_worktree::{CaptureSettings, Workspace};

use super::rewind_records::options;
use super::{RewindPreview, RewindRequest, git};

/// A rewind that nothing refuses.
pub(super) struct PlannedRewind {
    pub(super) preview: RewindPreview,
    pub(super) task: AnchorTask,
}

pub(super) fn plan(
    kernel: &Kernel,
    settings: &CaptureSettings,
    setup: &RewindJournalSetup,
    request: &RewindRequest<'_>,
    is_preview: bool,
) -> Result<PlannedRewind> {
    // Checked here, because a rewind with nothing to do writes nothing, and only writes check the caller.
    kernel.require_current_caller()?;
    let engine = RelationalRollbackEngine::open(&setup.target, options(settings))?;
    let task = engine.task(request.task_ref())?;
    let snapshot = if is_preview {
        engine.get_snapshot(request.task_ref())?
    // A preview looks for lost parents only in a small database; the rewind itself looks in any.
    } else {
        engine.get_whole_snapshot(request.task_ref())?
    };
    let commit = task.commit.as_deref().map(str::trim).filter(|text| !text.is_empty() && !request.no_git);
    let git = commit.map(|commit| git::plan(&kernel.project.root, &task.task_id, commit)).transpose()?;
    if let Some(git) = &git {
        git.refuse_to_replace(&kernel.project.root, &setup.target.database)?;
        git.refuse(request.force)?;
        if git.moves() && !request.force {
            Workspace::open(kernel, kernel.project.root.clone(), settings)?.require_no_workers()?;
        }
    }
    let preview =
        RewindPreview { database: setup.target.database.clone(), snapshot, git, vectors: setup.vectors.clone() };
    Ok(PlannedRewind { preview, task })
}
