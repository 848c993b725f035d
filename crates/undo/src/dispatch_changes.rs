//! What some dispatches did to the tree: the differences between the checkpoints from the start of the first to the end of the last, as far
//! as they are their own ([`ic_session::attribution`]).

mod branch;
mod commits;
mod effect_reach;
mod history;
mod others_commits;
mod own_changes;
mod parcels;
mod skipped_files;
mod span;
mod stash;
mod work_patch;

use std::collections::BTreeSet;

use ic_base::{CheckpointId, DispatchId, Result, Seq};
use ic_checkpoint::git;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_checkpoint::restore::reverse::Own;
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_kernel::journal::{Choices, RollbackStatus};
use ic_ledger::Snapshot;
use ic_session::attribution::{Attribution, OwnerDecisions};
use ic_worktree::{TreeChanges, Workspace};

pub(crate) use branch::require_branch_of_undo;
use branch::require_one_branch;
pub use commits::{CommitState, OwnCommit};
use commits::{commits_of, leave_recorded, made_between};
pub(crate) use effect_reach::{WorkReach, files_of};
pub(crate) use history::{left_by, made_again, reverts, undo_begun};
pub use own_changes::may_be_yours;
pub(crate) use own_changes::{CUT_OFF, is_unsure, owners};
use own_changes::{add_others, add_since, own_changes, recorded_by};
use span::{WorkSpan, missing};
pub(crate) use span::{git_around, git_around_ids};
pub(crate) use stash::is_branch_since;
use stash::leave_elsewhere;
pub use work_patch::WorkChanges;
pub(crate) use work_patch::changes_of_work;

/// The tree before some work, and what the work did to it.
pub(super) struct OwnWork {
    /// The checkpoint that was taken as it began.
    pub(super) before: CheckpointRecord,
    /// What it changed, with what others did to the same paths.
    pub(super) changes: Own,
    /// The commits that were made during the work or recorded for it, newest first.
    pub(super) commits: Vec<OwnCommit>,
}

/// What an undo of works has done to the tree before it reaches its files: what its effects changed.
#[derive(Default)]
pub(super) struct Met {
    /// The event of the checkpoint before them.
    pub(super) since: Option<Seq>,
    /// What the effects changed, oldest first.
    pub(super) effects: Vec<TreeChanges>,
    /// For an undo that stands again because its own undo was aborted: the paths that this had restored. Nothing else is to be removed
    /// again.
    pub(super) put_back: Option<BTreeSet<Vec<u8>>>,
    /// What a person says about changes whose owner is not known.
    pub(super) decided: OwnerDecisions,
    /// The work that ran until the undo cancelled it.
    pub(super) called_off: Vec<DispatchId>,
}

/// What an undo of works did to the tree.
#[derive(Clone, Copy)]
pub(super) struct Did<'d> {
    /// What its effects changed, oldest first.
    pub(super) effects: &'d [TreeChanges],
    /// Its restores, which came after, oldest first.
    pub(super) restores: &'d [RestoreRecord],
}

/// What these dispatches did to the tree of their run, oldest first. `met`: what their undo has done to it by now.
/// Errors: `no_checkpoint` if the tree was not captured as the first began, or as one of them ended, or is not kept any more.
pub(super) fn of_works(workspace: &Workspace<'_>, ids: &[DispatchId], met: &Met) -> Result<OwnWork> {
    let (span, attribution, since, recorded) = workspace.kernel.read(|snapshot| {
        let span = WorkSpan::of(snapshot, &workspace.root, ids)?;
        let attribution = span.attribution(snapshot, &workspace.root)?.with_running(&met.called_off);
        let attribution = attribution.as_decided(met.decided.clone());
        let recorded = recorded_by(snapshot, ids)?;
        // The span ends where the effects of this undo began. What they changed at the paths of the work is added
        // below, as the work's own.
        let until = met.since.map_or_else(|| ic_ledger::events::head(snapshot).map(|head| head.0), Ok)?;
        let since = (span.range.1, until);
        let since = Attribution::between(snapshot, &workspace.root, since, span.since)?.as_decided(met.decided.clone());
        Ok((span, attribution, since, recorded))
    })?;
    // Later changes of others are known only so that the undo can leave them; none of them is the work's.
    let (mut changes, by_others) = own_changes(workspace, (&attribution, ids), &recorded)?;
    // The order matters: new names and histories are looked for only at the paths that are known by then.
    add_since(workspace, &mut changes, &since, &by_others.parcels)?;
    for window in attribution.windows().chain(since.windows()) {
        let is_of_others = |path: &[u8]| !window.makers(path).iter().any(|maker| ids.contains(&maker.id));
        changes.add_renames(&workspace.objects, (&window.from.tree, &window.to.tree), is_of_others)?;
    }
    if let Some(last) = since.looks.last() {
        changes.seen_last(last.tree);
        for unseen in by_others.parcels.unseen(workspace, &last.tree)? {
            add_others(workspace, &mut changes, &by_others.parcels, (unseen, &since));
        }
    }
    let began = (span.range.0, span.since);
    let work = history::PathWork { ids, began, undone_at: None, decided: None, by_others: &by_others };
    let made = changes.clone();
    history::replay(workspace, &work, &mut changes)?;
    let known = changes.known();
    let by_effects = met.effects.iter().flat_map(TreeChanges::made);
    by_effects.filter(|change| known.contains(&change.path)).for_each(|change| changes.add(change));
    require_one_branch(workspace, &span.first, &attribution.looks)?;
    let others = attribution.workers.iter().any(|other| !ids.contains(&other.id));
    let is_told = attribution.are_told_by_calls(ids);
    let captures = attribution.looks;
    leave_elsewhere(workspace, (&made, &mut changes), &by_others.parcels, &captures)?;
    let mut commits = if is_told {
        commits_of(workspace, recorded.clone(), &recorded, (span.since, others), &made)
    } else {
        let mut shas = made_between(workspace, &captures)?;
        // A commit that other work recorded is not this work's, and its revert is not offered.
        workspace.kernel.read(|snapshot| leave_recorded(snapshot, &mut shas, &recorded))?;
        commits_of(workspace, shas, &recorded, (span.since, others), &made)
    };
    let shas: Vec<String> = commits.iter().map(|one| one.commit.sha.clone()).collect();
    for path in git::moved_submodules(&workspace.root, &shas) {
        changes.leave_part(path, "it is a submodule, and stays at the commit to which a commit of this work moved it");
    }
    commits.extend(by_others.took(workspace, &changes)?);
    // Last of all: every rule above may have added paths that the aborted undo never restored.
    met.put_back.iter().for_each(|paths| changes.keep_only(paths));
    let before = captures.into_iter().next().ok_or_else(|| missing(&span.first, "as it began"))?;
    Ok(OwnWork { before, changes, commits })
}

/// What is to be merged into the tree so that the work of an undo comes back, and a tree with that work. `is_whole`: the undo was finished;
/// `did`: what it did to the tree. `None`: nothing is to be merged, because nothing differs, or because a database is restored whole.
pub(super) fn again(
    workspace: &Workspace<'_>,
    undo: &RollbackRecord,
    is_whole: bool,
    Did { effects, restores }: Did<'_>,
) -> Result<Option<(Own, CheckpointId)>> {
    let Some(mut own) = ic_worktree::changed_by(workspace, effects, restores)? else { return Ok(None) };
    let first = restores.first().map(|first| &first.safety_id);
    let first = first.or(effects.first().map(TreeChanges::before)).cloned();
    let work = undo.works();
    if work.is_empty() || !is_whole {
        return Ok(first.map(|first| (own, first)));
    }
    // This is what the undo left: from then on the tree was without the work.
    let left = restores.last().and_then(|last| last.restored_id.as_ref());
    let left = left.or(effects.last().and_then(TreeChanges::after));
    let decided = Choices::of(undo)?;
    let found = workspace.kernel.read(|snapshot| {
        let Ok(span) = WorkSpan::of(snapshot, &workspace.root, &work) else { return Ok(None) };
        let attribution = span.attribution(snapshot, &workspace.root)?.as_decided(owners(&decided));
        let left = left.map(|left| record::get(snapshot, left)).transpose()?;
        let recorded = recorded_by(snapshot, &work)?;
        let is_rest = is_one_of_several(snapshot, undo)?;
        Ok(Some((span, attribution, Some(left.map_or(undo.seq, |left| left.seq)), recorded, is_rest)))
    })?;
    // If checkpoints are pruned, the work cannot be told from that of others, and it cannot be undone again.
    let Some((span, attribution, undone_at, recorded, is_rest)) = found else {
        return Ok(first.map(|first| (own, first)));
    };
    let (did, by_others) = own_changes(workspace, (&attribution, &work), &recorded)?;
    let began = (span.range.0, span.since);
    if !is_rest {
        // Paths that the undo did not change are replayed, too: others may have set them back, and be undone by now.
        own.know(did.known());
    }
    let replayed = history::PathWork { ids: &work, began, undone_at, decided: Some(decided), by_others: &by_others };
    history::replay(workspace, &replayed, &mut own)?;
    let target = first.unwrap_or(span.ended);
    Ok((!own.is_empty()).then_some((own, target)))
}

/// Whether another undo of some of the same work stands: each removed what the other had left, so this one restores no more than that.
fn is_one_of_several(snapshot: &Snapshot<'_>, undo: &RollbackRecord) -> Result<bool> {
    let works = undo.works();
    let is_other = |one: &RollbackRecord| {
        let is_of_same = || one.works().iter().any(|work| works.contains(work));
        one.id != undo.id && one.status == RollbackStatus::Done && is_of_same()
    };
    Ok(table::of_run(snapshot, &undo.run_id)?.iter().any(is_other))
}
