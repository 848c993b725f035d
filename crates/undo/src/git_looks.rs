//! Git's state around pieces of work: as each began, and as it ended.

use ic_base::{DispatchId, Result};
use ic_checkpoint::git::GitState;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_worktree::Workspace;

use crate::points;

/// Git's state before a piece of work, and after it; `None` for the second: it has not ended, or no checkpoint shows its end.
pub(crate) type GitLooks = (GitState, Option<GitState>);

/// As [`around`], of dispatches by their ids.
pub(crate) fn of_ids(
    kernel: &Kernel,
    workspace: &Workspace<'_>,
    run: &Run,
    ids: &[DispatchId],
) -> Result<Vec<GitLooks>> {
    let works = kernel.read(|snapshot| ids.iter().map(|id| dispatch::get(snapshot, id)).collect::<Result<Vec<_>>>())?;
    around(kernel, workspace, run, works.iter())
}

/// Git's state around each of these works of a run. Work whose checkpoints are pruned or have no state of git is left out.
pub(crate) fn around<'w>(
    kernel: &Kernel,
    workspace: &Workspace<'_>,
    run: &Run,
    works: impl Iterator<Item = &'w Dispatch>,
) -> Result<Vec<GitLooks>> {
    let state = |look: &CheckpointRecord| -> Result<Option<GitState>> {
        let is_kept = look.pruned_at.is_none();
        if is_kept { Ok(CheckpointManifest::read(&workspace.objects, &look.manifest)?.git) } else { Ok(None) }
    };
    let mut found = Vec::new();
    for work in works {
        let Some((before, after)) = kernel.read(|snapshot| ends(snapshot, workspace, run, work))? else { continue };
        let after = after.as_ref().map(state).transpose()?.flatten();
        found.extend(state(&before)?.map(|before| (before, after)));
    }
    Ok(found)
}

/// The checkpoints around a piece of work.
fn ends(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    run: &Run,
    work: &Dispatch,
) -> Result<Option<(CheckpointRecord, Option<CheckpointRecord>)>> {
    let place = points::place_of(snapshot, run, work)?;
    let Some(before) = points::checkpoint_at(snapshot, run, place.seq)? else { return Ok(None) };
    let after = match work.finished_seq {
        // The checkpoint of an end is recorded just before the event of the end.
        Some(end) => match record::of_event(snapshot, end - 1)? {
            Some(look) => Some(look),
            None => record::look_since(snapshot, &workspace.root, end)?,
        },
        None => None,
    };
    Ok(Some((before, after)))
}
