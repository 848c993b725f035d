//! What an undo of a rollback cannot restore: git's state, where its content was purged, or where an operation of git's was in progress.

use ic_base::{CheckpointId, Result};
use ic_checkpoint::git;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record;
use ic_checkpoint::restore::journal;
use ic_ledger::OpenOptions;

use ic_kernel::Kernel;
use ic_kernel::journal::steps::{self, RollbackStep};
use ic_kernel::journal::table::RollbackRecord;
use ic_worktree::{CaptureSettings, look_into_store};

/// The files from before a rollback, where git's state from before cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesAlone {
    /// The checkpoint with the files.
    pub checkpoint: CheckpointId,
    /// The operation of git's that was in progress; `None`: content was purged.
    pub operation: Option<String>,
}

/// The files from before, where git's state from before has content that was purged, or an operation in progress, whose notes no checkpoint
/// has. No command restores that state, and an undo of the rollback, or of the steps that an undo skipped, is refused. `None`: neither
/// blocks the undo.
///
/// Nothing is written, and nothing is captured: a caller that shows a rollback must not wait for a capture.
pub fn files_alone(
    kernel: &Kernel,
    settings: &CaptureSettings,
    (remembered, all): (&RollbackRecord, &[RollbackStep]),
) -> Result<Option<FilesAlone>> {
    // Of a rollback that was undone, only the steps that were skipped can still be undone.
    let steps: Vec<&RollbackStep> =
        if remembered.status.stands() { all.iter().collect() } else { steps::not_put_back(remembered, all) };
    let ids: Vec<CheckpointId> = steps.into_iter().flat_map(|step| step.detail.safety.clone()).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let Some(objects) =
        look_into_store(kernel, OpenOptions { busy_timeout: settings.busy_timeout, ..OpenOptions::default() })?
    else {
        return Ok(None);
    };
    let has_purged = git::has_purged(&objects)?;
    let restores = kernel.read(journal::all)?;
    for id in ids {
        let restore = restores.iter().find(|restore| restore.safety_id == id);
        // A restore of files alone is undone without git.
        let Some(restore) = restore.filter(|restore| restore.strategy.has_git()) else { continue };
        let safety = kernel.read(|snapshot| record::get(snapshot, &restore.safety_id))?;
        // Nothing can be restored from a pruned checkpoint, whatever was purged.
        if safety.pruned_at.is_some() {
            continue;
        }
        let Some(state) = CheckpointManifest::read(&objects, &safety.manifest)?.git else { continue };
        if state.operation.is_some() || has_purged && git::needs_purged(&safety.root, &state, &objects)? {
            return Ok(Some(FilesAlone { checkpoint: safety.id, operation: state.operation }));
        }
    }
    Ok(None)
}
