//! The points of a run, as they are listed.

mod found_point;

use std::collections::HashSet;

use ic_base::{CheckpointId, DispatchId, Result, RollbackId, Seq, Timestamp};
use ic_checkpoint::record;
use ic_dispatch::Dispatch;
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::point;

use found_point::{Found, Source, asked_for, moves, of_points};

/// A place in a run to which a person can go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPoint {
    /// The reference that names it in commands.
    pub reference: String,
    /// `created`, `phase`, `step`, `dispatch`, `prompt`, `guard` or `checkpoint`; in the log of a place also `restore` and `own`, what a
    /// person changed.
    pub kind: &'static str,
    /// The step's name, or the id of the dispatch, prompt or command that it stands before; `None` for all else.
    pub before: Option<String>,
    /// The work that began the work after the point: a prompt, for a subagent's. `None`: a person or a script began it.
    pub parent_id: Option<DispatchId>,
    /// What was recorded after this event lies after the point.
    pub seq: Seq,
    /// The phase at which the run was.
    pub phase: String,
    /// What it stands before, for people, on one line.
    pub title: String,
    /// The checkpoint that shows the tree there; `None` where the tree was not captured.
    pub checkpoint_id: Option<CheckpointId>,
    /// Whether the content of that checkpoint is gone.
    pub is_pruned: bool,
    /// The rollback that stands and took the run to before this point, which then is no target.
    pub taken_back_by: Option<RollbackId>,
    /// Whether the run had ended there: a run that went back to it could not be completed again, so only its files can be restored.
    pub is_at_end: bool,
    /// Whether what began there was rolled back. Also set at the point to which the run went back, which is a target anyway.
    pub is_undone: bool,
    /// Whether the rollback that did so has not ended: until then some of the work may be there, or be there again.
    pub is_under_way: bool,
    /// Whether an undo of that work alone stands and left a part of it in the tree: the work counts, and another undo removes the rest.
    pub is_in_part: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

impl ListedPoint {
    /// Whether it stands before the work of a subagent, which is undone with its prompt.
    pub fn is_of_subagent(&self) -> bool {
        self.kind == "dispatch" && self.parent_id.is_some()
    }

    /// The words for work that was rolled back; `None`: all of it stands.
    pub fn undone(&self) -> Option<&'static str> {
        match (self.is_undone, self.is_in_part) {
            (true, _) => Some(if self.is_under_way { "being undone" } else { "undone" }),
            (false, true) => Some("undone in part"),
            (false, false) => None,
        }
    }

    /// The command that previews the undo of what an earlier undo left of this work; `None`: nothing was left, or all of it stands.
    pub fn rest(&self) -> Option<String> {
        let work = DispatchId::from_ledger(self.before.clone().filter(|_| self.is_in_part)?);
        Some(format!("ic undo --only {} --dry-run", work.short()))
    }

    /// Whether the run can go back to before it, as far as the list shows.
    pub fn is_target(&self) -> bool {
        self.taken_back_by.is_none() && !self.is_pruned && !self.is_at_end && !self.is_without_work()
    }
}

/// The newest points of a run, newest first. Without `all`, points that a rollback covers and points at which the run had ended are left
/// out.
pub fn list(snapshot: &Snapshot<'_>, run: &Run, all: bool, at_most: usize) -> Result<Vec<ListedPoint>> {
    list_among(snapshot, run, &table::standing_of(snapshot, &run.id)?, ListPart { all, before: Seq::MAX, at_most })
}

/// Which part of the points of a run is listed: the newest before an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPart {
    /// Whether points are included that a rollback covers, or at which the run had ended.
    pub(super) all: bool,
    /// Only those from before this event.
    pub(super) before: Seq,
    /// The most points that are returned.
    pub(super) at_most: usize,
}

/// As [`list`], a part of the points of a run with these rollbacks.
pub(super) fn list_among(
    snapshot: &Snapshot<'_>,
    run: &Run,
    rollbacks: &[RollbackRecord],
    part: ListPart,
) -> Result<Vec<ListedPoint>> {
    let choice = Choice { run, rollbacks, part };
    let before = part.before;
    let mut found = choice.newest(|most| of_points(snapshot, run, before, most))?;
    // All moves are read from the newest on: only so it is known which move out of a phase a reference means.
    found.extend(choice.newest(|most| moves(snapshot, run, most))?);
    found.extend(choice.newest(|most| asked_for(snapshot, run, before, most))?);
    found.extend((run.seq < before).then(|| Found::created(run)));
    newest_first(&mut found);
    found.truncate(part.at_most);
    all_listed(snapshot, run, rollbacks, found)
}

/// The oldest points of a run at an event or after it, newest first: what came next. Includes points that a rollback covers.
pub(super) fn list_from(
    snapshot: &Snapshot<'_>,
    run: &Run,
    rollbacks: &[RollbackRecord],
    from: Seq,
    at_most: usize,
) -> Result<Vec<ListedPoint>> {
    let points = point::oldest_of_run(snapshot, &run.id, from, at_most)?;
    let mut found: Vec<Found> = points.into_iter().map(Found::of_point).collect();
    let asked_for = record::manual_of_run_since(snapshot, &run.id, from, at_most)?;
    found.extend(asked_for.into_iter().map(Found::of_checkpoint));
    found.extend(moves(snapshot, run, usize::MAX)?.into_iter().filter(|one| one.seq >= from));
    found.extend((run.seq >= from).then(|| Found::created(run)));
    let choice = Choice { run, rollbacks, part: ListPart { all: true, before: Seq::MAX, at_most } };
    newest_first(&mut found);
    choice.choose(&mut found);
    found.drain(..found.len().saturating_sub(at_most));
    all_listed(snapshot, run, rollbacks, found)
}

/// Steps that began from one checkpoint share an event; sorting by name as well gives every call the same order.
fn newest_first(found: &mut [Found]) {
    found.sort_by(|one, other| (other.seq, &other.reference).cmp(&(one.seq, &one.reference)));
}

/// Those of these rollbacks that undid works in part: something of them stays in the tree, and they stand.
pub(super) fn undone_in_part<'r>(
    snapshot: &Snapshot<'_>,
    rollbacks: &'r [RollbackRecord],
) -> Result<Vec<&'r RollbackRecord>> {
    let mut in_part = Vec::new();
    for by in rollbacks.iter().filter(|by| by.status == RollbackStatus::Done && by.is_of_works()) {
        if steps::is_in_part(by, &steps::of_rollback(snapshot, &by.id)?) {
            in_part.push(by);
        }
    }
    Ok(in_part)
}

/// The newest undo of this work that stands and left a part of it; `None`: the work is undone as a whole, or was never undone.
pub fn undone_in_part_by(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<RollbackId>> {
    let all = table::standing_of(snapshot, &work.run_id)?;
    let mut in_part = undone_in_part(snapshot, &all)?.into_iter();
    Ok(in_part.rfind(|by| by.works().contains(&work.id)).map(|by| by.id.clone()))
}

fn all_listed(
    snapshot: &Snapshot<'_>,
    run: &Run,
    rollbacks: &[RollbackRecord],
    found: Vec<Found>,
) -> Result<Vec<ListedPoint>> {
    let in_part = undone_in_part(snapshot, rollbacks)?;
    let is_whole = |by: &&RollbackRecord| in_part.iter().all(|part| part.id != by.id);
    let is_reached = |seq: Seq| rollbacks.iter().filter(is_whole).any(|by| by.status.stands() && by.cut_seq == seq);
    let unfinished = rollbacks.iter().find(|by| !by.status.is_over());
    let listed = |one: Found| -> Result<ListedPoint> {
        let one = one.listed(snapshot, run, is_reached)?;
        let is_under_way = unfinished.is_some_and(|by| is_of(by, &one));
        let is_in_part = !one.is_undone && in_part.iter().any(|by| is_of(by, &one));
        Ok(ListedPoint { is_under_way, is_in_part, ..one })
    };
    found.into_iter().map(listed).collect()
}

/// Whether this rollback undid what began at a point.
fn is_of(rollback: &RollbackRecord, point: &ListedPoint) -> bool {
    if rollback.is_of_works() {
        return rollback.works().iter().any(|one| point.before.as_deref() == Some(one.as_str()));
    }
    point.taken_back_by.as_ref() == Some(&rollback.id) || point.seq == rollback.cut_seq
}

/// Which points of a run are listed.
struct Choice<'c> {
    run: &'c Run,
    rollbacks: &'c [RollbackRecord],
    part: ListPart,
}

impl Choice<'_> {
    /// The newest of one kind of source that are to be listed: the wanted number, or all there are.
    fn newest(&self, fetch: impl Fn(usize) -> Result<Vec<Found>>) -> Result<Vec<Found>> {
        let mut most = self.part.at_most;
        loop {
            let mut found = fetch(most)?;
            let is_all = found.len() < most;
            self.choose(&mut found);
            if is_all || found.len() >= self.part.at_most {
                return Ok(found);
            }
            // Any number of points may have been rolled back in between. Each round reads the earlier ones again, so the number grows fast.
            most = most.saturating_mul(4);
        }
    }

    fn choose(&self, found: &mut Vec<Found>) {
        for one in &mut *found {
            one.by = self.taken_back_by(one).map(|by| by.id.clone());
        }
        let mut seen = HashSet::new();
        // Of several moves out of one phase the reference means the newest, and no move out of a phase to which the run has returned.
        found.retain(|one| match (&one.by, &one.source) {
            (Some(_), _) => self.part.all,
            (None, _) if one.is_at_end(self.run) && !self.part.all => false,
            (None, Source::Move { from, .. }) if !self.has_left(from) => false,
            (None, _) => seen.insert(one.reference.clone()),
        });
        found.retain(|one| one.seq < self.part.before);
    }

    fn taken_back_by(&self, found: &Found) -> Option<&RollbackRecord> {
        let is_move = matches!(found.source, Source::Move { .. });
        self.rollbacks.iter().rev().find(|one| one.status.stands() && covers(one, found.seq, is_move))
    }

    fn has_left(&self, phase: &str) -> bool {
        self.run.chain.index_of(phase) < self.run.chain.index_of(&self.run.phase)
    }
}

/// Whether a rollback took the run to before this event. At its cut is the place to which it went. A move that left a phase at the cut is
/// undone too, unless the rollback included what was done in the target.
pub(super) fn covers(rollback: &RollbackRecord, seq: Seq, is_move: bool) -> bool {
    // An undo of works does not move the run.
    if rollback.is_of_works() {
        return false;
    }
    let is_undone_move = is_move && rollback.cut_seq == seq && !rollback.include_target;
    (rollback.cut_seq < seq || is_undone_move) && seq < rollback.seq
}
