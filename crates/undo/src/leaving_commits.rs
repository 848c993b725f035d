//! Commits that leave their branches when git's state is restored, and whose work they are.

use std::collections::HashMap;
use std::path::Path;

use ic_base::{Result, RunId};
use ic_checkpoint::git::{self, GitCommit, GitRestorePlan};
use ic_dispatch::dispatch;
use ic_dispatch::{Dispatch, code};
use ic_ledger::Snapshot;
use ic_phase::Run;

/// A commit that is on no branch any longer when git's state is restored. It stays below `refs/ic/rolled-back/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingCommit {
    /// What git says of it.
    pub commit: GitCommit,
    /// The work of this run that it was recorded for.
    pub dispatch: Option<Dispatch>,
    /// The other run that recorded it, and whose record of it is not rolled back. Both runs recorded it where both made the same commit.
    pub other_run: Option<RunId>,
}

/// The commits that leave, newest first.
pub(super) fn commits(
    snapshot: &Snapshot<'_>,
    run: &Run,
    (root, plan): (&Path, &GitRestorePlan),
) -> Result<Vec<LeavingCommit>> {
    if plan.new_commits.is_empty() {
        return Ok(Vec::new());
    }
    let work: HashMap<_, _> =
        dispatch::of_run(snapshot, &run.id)?.into_iter().map(|dispatch| (dispatch.id.clone(), dispatch)).collect();
    let recorded = code::commits_of_run(snapshot, &run.id, 0)?;
    let of_others: HashMap<_, _> =
        code::commits_of_others(snapshot, std::slice::from_ref(&run.id), &plan.new_commits)?.into_iter().collect();
    let leaving = git::commits(root, &plan.new_commits).into_iter().map(|commit| {
        // A commit may have been recorded by its first digits alone.
        let by = recorded.iter().find(|known| commit.sha.starts_with(&known.sha));
        let dispatch = by.and_then(|commit| work.get(&commit.dispatch_id)).cloned();
        LeavingCommit { other_run: of_others.get(&commit.sha).cloned(), commit, dispatch }
    });
    Ok(leaving.collect())
}
