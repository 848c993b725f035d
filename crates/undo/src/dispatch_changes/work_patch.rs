//! What one piece of work made of the tree, to be looked at: the changes that an undo of it alone would take out.

use ic_base::{CheckpointId, Code, DispatchId, Result, Seq};
use ic_checkpoint::diff::Difference;
use ic_checkpoint::record;
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::Snapshot;
use ic_session::attribution::Attribution;
use ic_worktree::Workspace;

use super::commits::{OwnCommit, commits_of, leave_recorded, made_between};
use super::own_changes::{own_changes, recorded_by};
use super::span::{WorkSpan, missing};

/// What one piece of work, with what it began, made of the tree.
#[derive(Debug, Default)]
pub struct WorkChanges {
    /// Its changes by path, oldest first at each path: a path at which others changed something in between has several.
    pub differences: Vec<Difference>,
    /// Texts of these changes that no checkpoint holds.
    pub texts: Vec<Vec<u8>>,
    /// Paths that changed while it was under way, and of which it is not known whether it changed them; and why.
    pub unsure: Vec<(Vec<u8>, String)>,
    /// The commits that it made, or that were recorded for it, newest first.
    pub commits: Vec<OwnCommit>,
    /// The checkpoints in which all of that is seen.
    pub looks: Vec<CheckpointId>,
}

/// What a dispatch and the work that it began made of the tree: until its end, or until the newest checkpoint if it has not ended.
///
/// Errors: `no_checkpoint` if the tree was not captured as it began or ended, or is not kept any more.
pub(crate) fn changes_of_work(workspace: &Workspace<'_>, work: &Dispatch) -> Result<WorkChanges> {
    let (ids, attribution, recorded) = workspace.kernel.read(|snapshot| {
        let begun = dispatch::descendants(snapshot, &work.id)?;
        let begun = begun.into_iter().map(|one| one.id);
        let ids: Vec<DispatchId> = std::iter::once(work.id.clone()).chain(begun).collect();
        let attribution = attribution_of(workspace, snapshot, work, &ids)?;
        let recorded = recorded_by(snapshot, &ids)?;
        Ok((ids, attribution, recorded))
    })?;
    let (own, _) = own_changes(workspace, (&attribution, &ids), &recorded)?;
    let began = attribution.looks.first().map_or(work.created_at, |first| first.created_at);
    let is_shared = attribution.workers.iter().any(|other| !ids.contains(&other.id));
    let shas = if attribution.is_told_by_calls(&work.id) {
        recorded.clone()
    } else {
        let mut made = made_between(workspace, &attribution.looks)?;
        workspace.kernel.read(|snapshot| leave_recorded(snapshot, &mut made, &recorded))?;
        made
    };
    // A patch has every change of its own, so a path at which others worked in between keeps its steps apart.
    let mut differences = Vec::new();
    for path in own.known() {
        let pairs = own.pairs(&path).iter();
        let shown = pairs.map(|(before, after)| Difference {
            path: path.clone(),
            before: before.clone(),
            after: after.clone(),
        });
        differences.extend(shown.filter(|difference| difference.change().is_some()));
    }
    Ok(WorkChanges {
        differences,
        texts: own.texts().cloned().collect(),
        unsure: own.unsure().map(|(path, why)| (path.clone(), why.clone())).collect(),
        commits: commits_of(workspace, shas, &recorded, (began, is_shared), &own),
        looks: attribution.looks.into_iter().map(|look| look.id).collect(),
    })
}

/// What is known of the time in which the work was under way. `ids`: the work, and what it began.
fn attribution_of(
    workspace: &Workspace<'_>,
    snapshot: &Snapshot<'_>,
    work: &Dispatch,
    ids: &[DispatchId],
) -> Result<Attribution> {
    let root = &workspace.root;
    match WorkSpan::of(snapshot, root, ids) {
        Ok(span) => return span.attribution(snapshot, root),
        Err(error) if error.code() != Code::NoCheckpoint || work.finished_seq.is_some() => return Err(error),
        Err(_) => {}
    }
    // It has not ended: what it did so far is seen in the looks until now.
    let run = ic_phase::run::get(snapshot, &work.run_id)?;
    let place = crate::points::place_of(snapshot, &run, work)?;
    let before = crate::points::checkpoint_at(snapshot, &run, place.seq)?;
    let before = before.filter(|before| before.pruned_at.is_none() && before.root == *root);
    let before = before.ok_or_else(|| missing(work, "as it began"))?;
    let newest: Seq = record::newest_look(snapshot, root)?.map_or(before.seq, |newest| newest.seq.max(before.seq));
    Attribution::between(snapshot, root, (before.seq, newest), before.created_at)
}
