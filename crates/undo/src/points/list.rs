//! The points of a run, as they are listed.

use std::collections::HashSet;
use std::ops::ControlFlow;

use ic_base::{CheckpointId, DispatchId, Result, RollbackId, Seq, Timestamp, title};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::point::{self, PointKind, PointRecord};

use super::point_reference::{checkpoint_at, reference};

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
    list_among(snapshot, run, &table::of_run(snapshot, &run.id)?, ListPart { all, before: Seq::MAX, at_most })
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
        if steps::is_in_part(&steps::of_rollback(snapshot, &by.id)?) {
            in_part.push(by);
        }
    }
    Ok(in_part)
}

/// The newest undo of this work that stands and left a part of it; `None`: the work is undone as a whole, or was never undone.
pub fn undone_in_part_by(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<RollbackId>> {
    let all = table::of_run(snapshot, &work.run_id)?;
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

/// A point, before the details are read that only a listed point needs.
struct Found {
    seq: Seq,
    reference: String,
    source: Source,
    by: Option<RollbackId>,
}

enum Source {
    Point(Box<PointRecord>),
    Move { from: String, to: String, at: Timestamp },
    Checkpoint(Box<CheckpointRecord>),
    Created,
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

fn of_points(snapshot: &Snapshot<'_>, run: &Run, before: Seq, at_most: usize) -> Result<Vec<Found>> {
    let points = point::newest_of_run(snapshot, &run.id, before, at_most)?;
    Ok(points.into_iter().map(Found::of_point).collect())
}

/// The moves that left a phase.
fn moves(snapshot: &Snapshot<'_>, run: &Run, at_most: usize) -> Result<Vec<Found>> {
    let mut moves = Vec::new();
    ic_ledger::events::each_crossing_newest_first(snapshot, &run.id, |event| {
        if moves.len() == at_most {
            return Ok(ControlFlow::Break(()));
        }
        if let Some((from, to)) = event.from.zip(event.to) {
            let reference = format!("phase:{from}");
            let source = Source::Move { from, to, at: event.created_at };
            moves.push(Found { seq: event.seq, reference, source, by: None });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(moves)
}

fn asked_for(snapshot: &Snapshot<'_>, run: &Run, before: Seq, at_most: usize) -> Result<Vec<Found>> {
    let checkpoints = record::manual_of_run(snapshot, &run.id, before, at_most)?;
    Ok(checkpoints.into_iter().map(Found::of_checkpoint).collect())
}

impl Found {
    fn of_point(point: PointRecord) -> Self {
        Self { seq: point.seq, reference: reference(&point), source: Source::Point(Box::new(point)), by: None }
    }

    fn of_checkpoint(checkpoint: CheckpointRecord) -> Self {
        Self {
            seq: checkpoint.seq,
            reference: format!("checkpoint:{}", checkpoint.id.short()),
            source: Source::Checkpoint(Box::new(checkpoint)),
            by: None,
        }
    }

    /// Whether the run had ended at this point.
    fn is_at_end(&self, run: &Run) -> bool {
        let phase = match &self.source {
            Source::Point(point) => Some(&point.phase),
            Source::Checkpoint(checkpoint) => checkpoint.link.phase.as_ref(),
            Source::Move { .. } | Source::Created => None,
        };
        phase.is_some_and(|phase| phase == run.chain.last())
    }

    fn created(run: &Run) -> Self {
        Self { seq: run.seq, reference: "created".to_owned(), source: Source::Created, by: None }
    }

    fn listed(self, snapshot: &Snapshot<'_>, run: &Run, is_reached: impl Fn(Seq) -> bool) -> Result<ListedPoint> {
        let first = || run.chain.first().to_owned();
        let is_at_end = self.is_at_end(run);
        let (mut parent_id, mut is_marked) = (None, false);
        let (kind, phase, text, created_at, checkpoint) = match &self.source {
            Source::Point(point) => {
                let checkpoint = match &point.checkpoint_id {
                    Some(id) => Some(record::get(snapshot, id)?),
                    None => None,
                };
                let text;
                (text, parent_id, is_marked) = told_of(snapshot, run, point)?;
                (point.kind.as_str(), point.phase.clone(), text, point.created_at, checkpoint)
            }
            Source::Move { from, to, at } => {
                let checkpoint = checkpoint_at(snapshot, run, self.seq)?;
                ("phase", from.clone(), format!("left {from} for {to}"), *at, checkpoint)
            }
            Source::Checkpoint(checkpoint) => {
                let link = &checkpoint.link;
                let text = link.name.as_deref().or(link.message.as_deref()).unwrap_or_default().to_owned();
                let phase = link.phase.clone().unwrap_or_else(first);
                ("checkpoint", phase, text, checkpoint.created_at, Some((**checkpoint).clone()))
            }
            Source::Created => {
                let checkpoint = checkpoint_at(snapshot, run, run.seq)?;
                ("created", first(), run.goal.clone(), run.created_at, checkpoint)
            }
        };
        let before = match self.source {
            Source::Point(point) => Some(point.name),
            Source::Move { .. } | Source::Checkpoint(_) | Source::Created => None,
        };
        Ok(ListedPoint {
            reference: self.reference,
            kind,
            before,
            parent_id,
            seq: self.seq,
            phase,
            title: title(&text),
            is_pruned: checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.pruned_at.is_some()),
            checkpoint_id: checkpoint.map(|checkpoint| checkpoint.id),
            is_at_end,
            is_undone: self.by.is_some() || is_marked || is_reached(self.seq),
            is_under_way: false,
            is_in_part: false,
            taken_back_by: self.by,
            created_at,
        })
    }
}

/// The title of a point, the work that began what it stands before, and whether that was rolled back. Read from the work itself, because
/// the undo of one prompt with its subagents has no point as its target.
fn told_of(snapshot: &Snapshot<'_>, run: &Run, point: &PointRecord) -> Result<(String, Option<DispatchId>, bool)> {
    let work = match point.kind {
        PointKind::Dispatch | PointKind::Prompt => {
            dispatch::find(snapshot, &DispatchId::from_ledger(point.name.clone()))?
        }
        PointKind::Step | PointKind::Guard => None,
    };
    let is_undone = match &work {
        Some(work) => work.rolled_back_by.is_some() && !stands_in_part(snapshot, run, point, work)?,
        None => false,
    };
    let work = work.map(|work| work.work);
    Ok(match (point.kind, &point.title) {
        (PointKind::Dispatch, _) | (PointKind::Prompt, None) => {
            let work = work.unwrap_or_default();
            (work.name.or(work.agent_type).unwrap_or_default(), work.parent_id, is_undone)
        }
        (PointKind::Step, _) => (point.name.clone(), None, false),
        (PointKind::Prompt | PointKind::Guard, text) => (text.clone().unwrap_or_default(), None, is_undone),
    })
}

/// Whether work that was rolled back from an event after its beginning had changed the tree before that event: that part stands.
fn stands_in_part(snapshot: &Snapshot<'_>, run: &Run, point: &PointRecord, work: &Dispatch) -> Result<bool> {
    let Some(cut) = work.undone_from.filter(|cut| point.seq < *cut) else { return Ok(false) };
    let before = point.checkpoint_id.as_ref().map(|id| record::get(snapshot, id)).transpose()?;
    Ok(match before.zip(checkpoint_at(snapshot, run, cut)?) {
        Some((before, then)) => before.tree != then.tree || !then.has_git_as(&before),
        // Where no checkpoint was taken it may have.
        None => true,
    })
}
