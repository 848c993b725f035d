//! What rollbacks and their undos did to the tree of a piece of work: whose work does not count, and who left what a restore left.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use ic_base::{CheckpointId, DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record;
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use ic_checkpoint::restore::reverse::{ChangeOwner, LineDecision};
use ic_dispatch::dispatch;
use ic_kernel::journal::table::RollbackRecord;
use ic_kernel::journal::{Choices, LayerName, RollbackStatus, steps};
use ic_ledger::Snapshot;
use ic_phase::run;
use ic_session::attribution::Window;
use ic_worktree::Workspace;

use super::super::span::WorkSpan;
use super::PathWork;
use crate::events::{self, Revert};

/// An undo of works, or a rollback of a run.
pub(super) struct Undo {
    /// Of a rollback of a run, the event after which its work is undone.
    cut: Option<Seq>,
    /// The event up to which it affects the tree: its own, if it stands; otherwise that which undid it. Until then the tree was without its
    /// work.
    until: Seq,
    seq: Seq,
    stands: bool,
    pub(super) work: Vec<DispatchId>,
    /// The checkpoint with which that work began.
    pub(super) began: (Seq, Timestamp),
    /// What was decided about its paths; `None` where its journal cannot be read.
    decided: Option<Choices>,
}

impl Undo {
    /// Whether what its work did in a window does not count.
    pub(super) fn covers(&self, window: &Window<'_>, at: Option<Seq>) -> bool {
        self.stands_at(at) && self.cut.is_none_or(|cut| window.is_after(cut))
    }

    /// Whether it stands now, or stood at the event `at`.
    pub(super) fn stands_at(&self, at: Option<Seq>) -> bool {
        //   work ── seq: the undo ── until: it was undone itself ── now
        // The tree was without the work between `seq` and `until`, or is since `seq` if the undo stands.
        match at {
            None => self.stands,
            Some(at) => self.seq < at && (self.stands || self.until > at),
        }
    }
}

/// What the undos that stand decided about a path that others changed too; `None` where none did, or they decided differently.
pub(super) fn decided(undos: &[Undo], path: &[u8]) -> Option<LineDecision> {
    let mut all = undos.iter().filter(|undo| undo.stands).filter_map(|undo| undo.decided.as_ref()?.about(path));
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// The rollbacks by the checkpoints that their restores, or the restores of their undos, left in a tree.
pub(crate) fn left_by<'r>(
    snapshot: &Snapshot<'_>,
    root: &Path,
    all: &'r [RollbackRecord],
) -> Result<HashMap<CheckpointId, &'r RollbackRecord>> {
    let mut of_safety = HashMap::new();
    for one in all {
        let steps = steps::of_rollback(snapshot, &one.id)?;
        of_safety.extend(steps.into_iter().flat_map(|step| step.detail.safety).map(|safety| (safety, one)));
    }
    let restores = journal::finished(snapshot, root)?.into_iter();
    // The undo of a rollback restores its safety checkpoint.
    let of = |one: &RestoreRecord| of_safety.get(&one.safety_id).or(of_safety.get(&one.target_id)).copied();
    Ok(restores.filter_map(|one| Some((one.restored_id.clone()?, of(&one)?))).collect())
}

/// The paths that rollbacks of runs left beside others, by the checkpoints that their restores left.
pub(super) fn merged(
    snapshot: &Snapshot<'_>,
    root: &Path,
    all: &[RollbackRecord],
) -> Result<HashMap<CheckpointId, BTreeSet<PathText>>> {
    let beside = |one: &RollbackRecord| Choices::of(one).map(|choices| choices.beside).unwrap_or_default();
    let found = left_by(snapshot, root, all)?.into_iter().map(|(look, one)| (look, beside(one)));
    Ok(found.filter(|(_, paths)| !paths.is_empty()).collect())
}

/// The makers of what restores left in this tree. An undo of works, or any rollback that was undone or aborted, cancels out with
/// what reverted it: only the work says what stands. What one restore replaced and another one restored is as it was before the first. Any
/// other restore that a person made is left out.
pub(super) fn restored(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    all: &[RollbackRecord],
) -> Result<HashMap<CheckpointId, ChangeOwner>> {
    let mut made: HashMap<CheckpointId, (ChangeOwner, Vec<Range<Seq>>)> = HashMap::new();
    let mut whose_left = HashMap::new();
    for one in all.iter().filter(|one| one.layers.contains(&LayerName::Files)) {
        let whose = if one.is_of_works() || matches!(one.status, RollbackStatus::Undone | RollbackStatus::Aborted) {
            ChangeOwner::Undone
        } else {
            let run = run::get(snapshot, &one.run_id)?;
            match crate::points::checkpoint_at(snapshot, &run, one.cut_seq)? {
                Some(look) => ChangeOwner::Back { to: look.seq },
                None => ChangeOwner::Others,
            }
        };
        let steps = steps::of_rollback(snapshot, &one.id)?;
        let during = reverts(snapshot, one)?;
        if one.is_of_works() {
            let looks = steps.iter().flat_map(|step| &step.detail.goes).filter_map(|(_, after)| after.clone());
            whose_left.extend(looks.map(|after| (after, ChangeOwner::Undone)));
        }
        made.extend(
            steps.into_iter().flat_map(|step| step.detail.safety).map(|safety| (safety, (whose, during.clone()))),
        );
    }
    let again = made_again(snapshot, &workspace.root, all)?;
    let restores = journal::finished(snapshot, &workspace.root)?;
    let mut replaced = HashSet::new();
    for one in &restores {
        let is_again = again.iter().any(|(look, during)| *look == one.target_id && during.contains(&one.seq));
        let of_it = made.get(&one.safety_id);
        let is_during = |reverts: &[Range<Seq>]| reverts.iter().any(|during| during.contains(&one.seq));
        // A restore of what a rollback had replaced is its undo only while the rollback was undone or aborted. At
        // another time a person made it, and meant something else.
        let of_its_end = made.get(&one.target_id).filter(|(_, reverts)| is_during(reverts));
        let known = of_it.or(of_its_end).map(|(whose, _)| *whose);
        let back = match known.or(is_again.then_some(ChangeOwner::Undone)) {
            None if replaced.contains(&one.target_id) => {
                Some(ChangeOwner::Back { to: record::get(snapshot, &one.target_id)?.seq })
            }
            known => known,
        };
        // The restores come oldest first: a later one of this safety checkpoint restores what this one replaced.
        replaced.insert(&one.safety_id);
        whose_left.extend(one.restored_id.clone().zip(back));
    }
    Ok(whose_left)
}

/// The last checkpoints of work that was undone alone and came back, and when it did. Where its undo had restored nothing, that checkpoint
/// is what was restored.
pub(crate) fn made_again(
    snapshot: &Snapshot<'_>,
    root: &Path,
    all: &[RollbackRecord],
) -> Result<Vec<(CheckpointId, Range<Seq>)>> {
    let mut again = Vec::new();
    for one in all.iter().filter(|one| matches!(one.status, RollbackStatus::Undone | RollbackStatus::Done)) {
        if !one.is_of_works() {
            continue;
        }
        let reverts = reverts(snapshot, one)?;
        if reverts.is_empty() {
            continue;
        }
        if let Ok(span) = WorkSpan::of(snapshot, root, &one.works()) {
            again.extend(reverts.into_iter().map(|during| (span.ended.clone(), during)));
        }
    }
    Ok(again)
}

/// The undos of works in this tree that were made, or undone, after the work had begun; and in turn those that came after the
/// work of these had begun.
pub(super) fn undos(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    work: &PathWork<'_>,
    all: &[RollbackRecord],
) -> Result<Vec<Undo>> {
    let mut rest = Vec::new();
    for one in all.iter().filter(|one| one.layers.contains(&LayerName::Files)) {
        if !one.is_of_works() || one.works().iter().any(|id| !work.ids.contains(id)) {
            rest.extend(undo(snapshot, workspace, one)?);
        }
    }
    let (mut undos, mut from) = (Vec::new(), work.began.0);
    // An undo that is met may reach further back, and so meet others: until none is added.
    loop {
        let (met, later): (Vec<Undo>, Vec<Undo>) = rest.into_iter().partition(|undo| undo.until > from);
        if met.is_empty() {
            return Ok(undos);
        }
        from = met.iter().map(|undo| undo.began.0).fold(from, Seq::min);
        undos.extend(met);
        rest = later;
    }
}

/// Returns `None` if it was made in another tree, was not finished, or the checkpoint with which its work began is pruned.
fn undo(snapshot: &Snapshot<'_>, workspace: &Workspace<'_>, record: &RollbackRecord) -> Result<Option<Undo>> {
    let until = match record.status {
        RollbackStatus::Done => record.seq,
        RollbackStatus::Undone => reverts(snapshot, record)?.last().map_or(record.seq, |revert| revert.end),
        _ => return Ok(None),
    };
    let run = run::get(snapshot, &record.run_id)?;
    if ic_ledger::project_root(&run.project_dir) != workspace.root {
        return Ok(None);
    }
    // A cut undoes what came after it, and a set undoes all that its works did.
    let cut = (!record.is_of_works()).then_some(record.cut_seq);
    let work = if cut.is_some() { rolled_back(snapshot, record)? } else { record.works() };
    let Some(first) = work.first() else { return Ok(None) };
    let since = match cut {
        // What was undone by a rollback that was undone itself stands again.
        Some(_) if record.status != RollbackStatus::Done => return Ok(None),
        Some(cut) => cut,
        None => crate::points::place_of(snapshot, &run, &dispatch::get(snapshot, first)?)?.seq,
    };
    let began = crate::points::checkpoint_at(snapshot, &run, since)?;
    let began = began.filter(|look| look.pruned_at.is_none()).map(|look| (look.seq, look.created_at));
    // A journal that cannot be read stops a redo of its own undo, but no undo of other work.
    let (stands, decided) = (record.status == RollbackStatus::Done, Choices::of(record).ok());
    Ok(began.map(|began| Undo { cut, until, seq: record.seq, stands, work, began, decided }))
}

/// The dispatches that a rollback of a run undid.
fn rolled_back(snapshot: &Snapshot<'_>, record: &RollbackRecord) -> Result<Vec<DispatchId>> {
    let all = dispatch::of_run(snapshot, &record.run_id)?.into_iter();
    Ok(all.filter(|one| one.rolled_back_by.as_ref() == Some(&record.id)).map(|one| one.id).collect())
}

/// The events between which a rollback was undone or aborted, oldest first: restores between them reverted it.
pub(crate) fn reverts(snapshot: &Snapshot<'_>, one: &RollbackRecord) -> Result<Vec<Range<Seq>>> {
    let reverts = events::reverts(snapshot, &one.run_id, one.seq, Some(&one.id))?;
    // While a revert is under way, each of its restores still counts for itself.
    Ok(reverts.iter().filter(|revert| !revert.is_open()).map(Revert::during).collect())
}

/// The event with which the last undo of a rollback began; the rollback's own event where it has none.
pub(crate) fn undo_begun(snapshot: &Snapshot<'_>, one: &RollbackRecord) -> Result<Seq> {
    let reverts = events::reverts(snapshot, &one.run_id, one.seq, Some(&one.id))?;
    Ok(reverts.iter().rfind(|revert| revert.is_undo()).map_or(one.seq, |undo| undo.begun.seq))
}
