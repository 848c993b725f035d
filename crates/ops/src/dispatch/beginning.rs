//! Work that begins before that is recorded: `agent & ic dispatch start ID --pid $!`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ic_base::{CheckpointId, Result};
use ic_checkpoint::diff;
use ic_checkpoint::record;
use ic_dispatch::process::ProcessIdentity;
use ic_dispatch::{Dispatch, DispatchStatus};
use ic_kernel::Kernel;
use ic_ledger::path_from_bytes;
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, Warning, Workspace, root_of};

/// Start times are told to a hundredth of a second, and so is the time since boot.
const INACCURACY_NANOS: i128 = 30_000_000;

/// Whether its agent has ended work whose beginning was not recorded.
pub(super) fn is_ended_by_itself(dispatch: &Dispatch) -> bool {
    let is_by_agent = dispatch.status.is_finished() && dispatch.status != DispatchStatus::Cancelled;
    dispatch.started_seq.is_none() && is_by_agent
}

/// Whether work is begun and no process of it is on record.
pub(super) fn is_unnamed(dispatch: &Dispatch) -> bool {
    dispatch.status == DispatchStatus::Running && dispatch.process.is_none()
}

/// What is said of a process that there is none of (any more).
pub(super) fn warnings(gone: Option<u32>) -> Vec<Warning> {
    let warning = gone.map(|pid| Warning {
        code: "process_gone",
        message: format!("there is no process {pid} any more: it has ended, or the number is another one"),
    });
    warning.into_iter().collect()
}

/// What is said of work that ended before this.
pub(super) fn ended(dispatch: &Dispatch) -> Option<Warning> {
    is_ended_by_itself(dispatch).then(|| Warning {
        code: "already_ended",
        message: format!("the work had ended by then: it is {}", dispatch.status.as_str()),
    })
}

/// The newest look from before a process changed anything: the one that was taken last, if all that has changed since did so after the
/// process began. `None`: the tree as it was captured now is what the work begins with. `process`: `None` if it has ended.
pub(super) fn look_before(
    kernel: &Kernel,
    settings: &CaptureSettings,
    taken: &TakenTree,
    project: &Path,
    process: Option<&ProcessIdentity>,
) -> Result<Option<CheckpointId>> {
    let root = root_of(project);
    let Some(now) = taken.tree() else { return Ok(None) };
    let Some(newest) = kernel.read(|snapshot| record::newest_look(snapshot, &root))? else { return Ok(None) };
    // The look of a call has no state of git.
    if newest.tree == now || newest.link.of_call {
        return Ok(None);
    }
    // If it is not told when the work began, every change since the newest look is taken for its work.
    let age = process.and_then(ProcessIdentity::age).map(|age| i128::try_from(age.as_nanos()).unwrap_or(i128::MAX));
    let began = age.map(|age| kernel.context.nanos().saturating_sub(age).saturating_sub(INACCURACY_NANOS));
    // Both trees can be read: `taken` keeps the store's lock, so no sweep removes content in the meantime.
    let workspace = Workspace::open(kernel, root, settings)?;
    let mut is_its = true;
    diff::diff(&workspace.objects, Some(&newest.tree), Some(&now), &mut |difference| {
        // One change from before the process is enough: then the tree as it was captured now is the beginning.
        let path = workspace.root.join(path_from_bytes(&difference.path));
        // When a file that is gone was deleted is not known.
        if let (Some(began), Ok(meta)) = (began, std::fs::symlink_metadata(&path)) {
            // Not the time of modification, which a program can set.
            let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
            is_its &= changed >= began;
        }
        Ok(())
    })?;
    Ok(is_its.then_some(newest.id))
}
