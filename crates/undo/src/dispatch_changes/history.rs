//! The histories of paths that one piece of work and others changed: the content without the work, and with it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use ic_base::{CheckpointId, DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::diff::{self, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record;
use ic_checkpoint::restore::journal;
use ic_checkpoint::restore::reverse::{ChangeOwner, LineDecision, Own, Past, ReplayedPath, without_returns};
use ic_dispatch::dispatch::{self, DispatchFilter};
use ic_kernel::journal::kept_checkpoints::goes_of;
use ic_kernel::journal::step_results::safety_of;
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_kernel::journal::{Choices, LayerName, RollbackStatus, steps};
use ic_ledger::Snapshot;
use ic_ledger::events::EventType;
use ic_phase::run;
use ic_session::attribution::{Attribution, Window};
use ic_worktree::Workspace;

use super::commits::{MadeCommits, OthersCommits, brought};
use super::span::WorkSpan;

/// The work whose paths are replayed.
pub(super) struct PathWork<'w> {
    /// Its dispatches, oldest first.
    pub(super) ids: &'w [DispatchId],
    /// The checkpoint with which it began.
    pub(super) began: (Seq, Timestamp),
    /// What commits of others have of it.
    pub(super) by_others: &'w OthersCommits,
    /// For work that was undone and comes back: the event since which the tree was without it.
    pub(super) undone_at: Option<Seq>,
    /// For work that was undone and comes back: what was decided when it was undone.
    pub(super) decided: Option<Choices>,
}

/// An undo of works, or a rollback of a run.
struct Undo {
    /// Of a rollback of a run, the event after which its work is undone.
    cut: Option<Seq>,
    /// The event up to which it affects the tree: its own, if it stands; otherwise that which undid it. Until then the tree was without its
    /// work.
    until: Seq,
    seq: Seq,
    stands: bool,
    work: Vec<DispatchId>,
    /// The checkpoint with which that work began.
    began: (Seq, Timestamp),
    /// What was decided about its paths; `None` where its journal cannot be read.
    decided: Option<Choices>,
}

impl Undo {
    /// Whether what its work did in a window does not count.
    fn covers(&self, window: &Window<'_>, at: Option<Seq>) -> bool {
        self.stands_at(at) && self.cut.is_none_or(|cut| window.is_after(cut))
    }

    /// Whether it stands now, or stood at the event `at`.
    fn stands_at(&self, at: Option<Seq>) -> bool {
        match at {
            None => self.stands,
            Some(at) => self.seq < at && (self.stands || self.until > at),
        }
    }
}

/// What the undos that stand decided about a path that others changed too; `None` where none did, or they decided differently.
fn decided(undos: &[Undo], path: &[u8]) -> Option<LineDecision> {
    let mut all = undos.iter().filter(|undo| undo.stands).filter_map(|undo| undo.decided.as_ref()?.about(path));
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// What is needed to tell whose a change is.
struct Facts {
    undos: Vec<Undo>,
    /// The makers of what restores left, and effects of undos of works, by the checkpoint that shows it. For a checkpoint that is
    /// not in it nothing is known.
    restored: HashMap<CheckpointId, ChangeOwner>,
    /// The paths that a rollback of a run did not take back to its point, because others had changed them: there the run's changes were
    /// merged out. By the checkpoint that its restore left.
    merged: HashMap<CheckpointId, BTreeSet<PathText>>,
    attribution: Attribution,
}

/// The history of a path, oldest first.
type History = Vec<Past>;

/// Adds to what is known of the work what others did to the same paths, and which of that is undone.
pub(super) fn replay(workspace: &Workspace<'_>, work: &PathWork<'_>, changes: &mut Own) -> Result<()> {
    let known = changes.known();
    let has_met = changes.met().next().is_some();
    let facts = workspace.kernel.read(|snapshot| facts(snapshot, workspace, work, has_met))?;
    let Some(facts) = facts.filter(|_| !known.is_empty()) else { return Ok(()) };
    // The state when the work was undone, for paths that the undo left: others may have reset them, and have been undone themselves since.
    let unchanged: BTreeSet<Vec<u8>> = known.iter().filter(|path| changes.pairs(path).is_empty()).cloned().collect();
    let then = match work.undone_at {
        Some(_) if !unchanged.is_empty() => histories(workspace, work, &facts, &unchanged, work.undone_at)?,
        _ => BTreeMap::new(),
    };
    for (path, history) in histories(workspace, work, &facts, &known, None)? {
        if is_met(&history) {
            let then = then.get(&path).map_or(&[][..], Vec::as_slice);
            let of_it = work.decided.as_ref().and_then(|choices| choices.about(&path));
            let undone = work.undone_at.map(|at| ReplayedPath { at, then, decided: of_it });
            changes.replay(&workspace.objects, &path, &history, decided(&facts.undos, &path), undone)?;
        }
    }
    let parents = known.iter().flat_map(|path| parents_of(path)).filter(|path| !known.contains(path));
    for (path, history) in histories(workspace, work, &facts, &parents.collect(), None)? {
        if is_of_undone(&history) {
            changes.leave_if_empty(path);
        }
    }
    Ok(())
}

/// The directories above a path, without the root.
fn parents_of(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.map(|end| path[..end].to_vec())
}

/// Whether a directory was made by work that is undone, and nothing else happened to it: its undo left it only for what others had in it.
fn is_of_undone(history: &History) -> bool {
    let is_made = history.first().is_some_and(|first| first.change.0.is_none());
    is_made && history.iter().all(|past| past.whose == ChangeOwner::Undone)
}

/// Returns `None` where no other work and no undo affected the paths.
fn facts(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    work: &PathWork<'_>,
    has_met: bool,
) -> Result<Option<Facts>> {
    let all = table::all(snapshot)?;
    let undos = undos(snapshot, workspace, work, &all)?;
    if undos.is_empty() && !has_met && work.undone_at.is_none() {
        return Ok(None);
    }
    let began = undos.iter().map(|undo| undo.began).fold(work.began, Ord::min);
    let until = ic_ledger::events::head(snapshot)?.0;
    let attribution = Attribution::between(snapshot, &workspace.root, (began.0, until), began.1)?;
    let restored = restored(snapshot, workspace, &all)?;
    let merged = merged(snapshot, workspace, &all)?;
    Ok(Some(Facts { undos, restored, merged, attribution }))
}

/// The paths that rollbacks of runs left beside others, by the checkpoints that their restores left.
fn merged(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    all: &[RollbackRecord],
) -> Result<HashMap<CheckpointId, BTreeSet<PathText>>> {
    let mut merged = HashMap::new();
    for one in all.iter().filter(|one| !one.is_of_works()) {
        let Some(beside) = Choices::of(one).ok().map(|choices| choices.beside).filter(|paths| !paths.is_empty()) else {
            continue;
        };
        let safety: HashSet<CheckpointId> = steps::of_rollback(snapshot, &one.id)?.iter().flat_map(safety_of).collect();
        let restores = journal::finished(snapshot, &workspace.root)?.into_iter();
        let own = restores.filter(|restore| safety.contains(&restore.safety_id));
        merged.extend(own.filter_map(|restore| restore.restored_id).map(|left| (left, beside.clone())));
    }
    Ok(merged)
}

/// The makers of what restores left in this tree. An undo of works, or any rollback that was undone or aborted, cancels out with
/// what reverted it: only the work says what stands. What one restore replaced and another one restored is as it was before the first. Any
/// other restore that a person made is left out.
fn restored(
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
            let looks = steps.iter().flat_map(goes_of).filter_map(|(_, after)| after);
            whose_left.extend(looks.map(|after| (CheckpointId::from_ledger(after), ChangeOwner::Undone)));
        }
        made.extend(steps.iter().flat_map(safety_of).map(|safety| (safety, (whose, during.clone()))));
    }
    let again = made_again(snapshot, &workspace.root, all)?;
    let restores = journal::finished(snapshot, &workspace.root)?;
    let mut replaced = HashSet::new();
    for one in &restores {
        let is_again = again.iter().any(|(look, during)| *look == one.target_id && during.contains(&one.seq));
        let of_it = made.get(&one.safety_id);
        let is_during = |reverts: &[Range<Seq>]| reverts.iter().any(|during| during.contains(&one.seq));
        let of_its_end = made.get(&one.target_id).filter(|(_, reverts)| is_during(reverts));
        let known = of_it.or(of_its_end).map(|(whose, _)| *whose);
        let back = match known.or(is_again.then_some(ChangeOwner::Undone)) {
            None if replaced.contains(&one.target_id) => {
                Some(ChangeOwner::Back { to: record::get(snapshot, &one.target_id)?.seq })
            }
            known => known,
        };
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
fn undos(
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
    let filter = DispatchFilter { run_id: Some(&record.run_id), phase: None, status: None, limit: i64::MAX };
    let all = dispatch::list(snapshot, &filter)?.into_iter();
    Ok(all.filter(|one| one.rolled_back_by.as_ref() == Some(&record.id)).map(|one| one.id).collect())
}

/// The events between which a rollback was undone or aborted, oldest first: restores between them reverted it. An undo that was aborted
/// itself is one of them, because its restores count although the rollback stands again.
pub(crate) fn reverts(snapshot: &Snapshot<'_>, one: &RollbackRecord) -> Result<Vec<Range<Seq>>> {
    let begun = [EventType::RollbackUndoBegun, EventType::RollbackAbortBegun].map(EventType::as_str);
    let ended = [EventType::RollbackUndone, EventType::RollbackAborted, EventType::RollbackUndoAborted];
    let ended = ended.map(EventType::as_str);
    let (mut reverts, mut start) = (Vec::new(), None);
    ic_ledger::events::each_since(snapshot, Some(&one.run_id), one.seq, i64::MAX, |event| {
        let what = event.event_type.as_str();
        if event.subject_id.as_deref() == Some(one.id.as_str()) {
            if begun.contains(&what) {
                start = Some(event.seq);
            } else if ended.contains(&what) {
                reverts.extend(start.take().map(|start| start..event.seq));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(reverts)
}

/// The event with which the last undo of a rollback began; the rollback's own event where it has none.
pub(crate) fn undo_begun(snapshot: &Snapshot<'_>, one: &RollbackRecord) -> Result<Seq> {
    let mut begun = one.seq;
    ic_ledger::events::each_since(snapshot, Some(&one.run_id), one.seq, i64::MAX, |event| {
        let is_own = event.subject_id.as_deref() == Some(one.id.as_str());
        if is_own && event.event_type.as_str() == EventType::RollbackUndoBegun.as_str() {
            begun = event.seq;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(begun)
}

/// The histories of these paths: complete, or up to an event, as if that was now.
fn histories(
    workspace: &Workspace<'_>,
    work: &PathWork<'_>,
    facts: &Facts,
    known: &BTreeSet<Vec<u8>>,
    until: Option<Seq>,
) -> Result<BTreeMap<Vec<u8>, History>> {
    let mut histories: BTreeMap<Vec<u8>, History> = BTreeMap::new();
    for window in facts.attribution.all().filter(|window| until.is_none_or(|until| window.to.seq <= until)) {
        let trees = (Some(&window.from.tree), Some(&window.to.tree));
        diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
            if known.contains(&difference.path) {
                let whose = whose(&window, &difference, work, facts, until);
                let made = work.by_others.made(&difference.path, difference.after.as_ref());
                let brought = match made {
                    MadeCommits::AfterCommit(text) if whose == ChangeOwner::Work => Some(brought(&difference, text)),
                    _ => None,
                };
                let Difference { path, before, after } = difference;
                let history = histories.entry(path).or_default();
                let past = |whose, change| Past { seq: window.to.seq, whose, change };
                // Two changes in one: what the commit brought, then what the work made of it.
                if brought.is_some() {
                    history.push(past(ChangeOwner::Others, (before, brought.clone())));
                    history.push(past(whose, (brought, after)));
                } else {
                    history.push(past(whose, (before, after)));
                }
            }
            Ok(())
        })?;
    }
    // A path that was taken away and came back unchanged, as by a stash or a switch, has no new maker.
    for history in histories.values_mut() {
        without_returns(history);
    }
    Ok(histories)
}

fn whose(
    window: &Window<'_>,
    difference: &Difference,
    work: &PathWork<'_>,
    facts: &Facts,
    at: Option<Seq>,
) -> ChangeOwner {
    let restored = facts.restored.get(&window.to.id).copied();
    let is_merged =
        || facts.merged.get(&window.to.id).is_some_and(|paths| paths.iter().any(|path| path.0 == difference.path));
    if window.is_restore() && matches!(restored, Some(ChangeOwner::Back { .. })) && is_merged() {
        return ChangeOwner::Undone;
    }
    if window.is_restore() {
        return restored.unwrap_or(ChangeOwner::Others);
    }
    let makers = window.makers(&difference.path);
    let is_of = |ids: &[DispatchId]| !makers.is_empty() && makers.iter().all(|maker| ids.contains(&maker.id));
    let made = || work.by_others.made(&difference.path, difference.after.as_ref());
    if is_of(work.ids) {
        if matches!(made(), MadeCommits::ByWork | MadeCommits::AfterCommit(_)) {
            ChangeOwner::Work
        } else {
            ChangeOwner::Others
        }
    } else if facts.undos.iter().any(|undo| undo.covers(window, at) && is_of(&undo.work)) {
        ChangeOwner::Undone
    } else if makers.is_empty() {
        // No call made it: the effects of an undo did, or a person.
        restored.unwrap_or(ChangeOwner::Person)
    } else {
        ChangeOwner::Others
    }
}

/// Whether the path has another history than that of the work alone: others changed it after the work, or it held what is undone by now.
fn is_met(history: &History) -> bool {
    let first = history.iter().position(|past| past.whose == ChangeOwner::Work);
    first.is_some_and(|first| {
        history[..first].iter().any(|past| past.whose == ChangeOwner::Undone)
            || history[first..].iter().any(|past| past.whose != ChangeOwner::Work)
    })
}
