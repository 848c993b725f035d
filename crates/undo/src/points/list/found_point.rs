//! The points of a run as they are found: where each is recorded, and what a list says of it.

use std::ops::ControlFlow;

use ic_base::{DispatchId, Result, RollbackId, Seq, Timestamp, title};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::point::{self, PointKind, PointRecord};

use super::ListedPoint;
use crate::points::point_reference::{checkpoint_at, reference};

/// A point, before the details are read that only a listed point needs.
pub(super) struct Found {
    pub(super) seq: Seq,
    pub(super) reference: String,
    pub(super) source: Source,
    /// The rollback that stands and took the run to before it.
    pub(super) by: Option<RollbackId>,
}

pub(super) enum Source {
    Point(Box<PointRecord>),
    Move { from: String, to: String, at: Timestamp },
    Checkpoint(Box<CheckpointRecord>),
    Created,
}

pub(super) fn of_points(snapshot: &Snapshot<'_>, run: &Run, before: Seq, at_most: usize) -> Result<Vec<Found>> {
    let points = point::newest_of_run(snapshot, &run.id, before, at_most)?;
    Ok(points.into_iter().map(Found::of_point).collect())
}

/// The moves that left a phase.
pub(super) fn moves(snapshot: &Snapshot<'_>, run: &Run, at_most: usize) -> Result<Vec<Found>> {
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

pub(super) fn asked_for(snapshot: &Snapshot<'_>, run: &Run, before: Seq, at_most: usize) -> Result<Vec<Found>> {
    let checkpoints = record::manual_of_run(snapshot, &run.id, before, at_most)?;
    Ok(checkpoints.into_iter().map(Found::of_checkpoint).collect())
}

impl Found {
    pub(super) fn of_point(point: PointRecord) -> Self {
        Self { seq: point.seq, reference: reference(&point), source: Source::Point(Box::new(point)), by: None }
    }

    pub(super) fn of_checkpoint(checkpoint: CheckpointRecord) -> Self {
        Self {
            seq: checkpoint.seq,
            reference: format!("checkpoint:{}", checkpoint.id.short()),
            source: Source::Checkpoint(Box::new(checkpoint)),
            by: None,
        }
    }

    /// Whether the run had ended at this point.
    pub(super) fn is_at_end(&self, run: &Run) -> bool {
        let phase = match &self.source {
            Source::Point(point) => Some(&point.phase),
            Source::Checkpoint(checkpoint) => checkpoint.link.phase.as_ref(),
            Source::Move { .. } | Source::Created => None,
        };
        phase.is_some_and(|phase| phase == run.chain.last())
    }

    pub(super) fn created(run: &Run) -> Self {
        Self { seq: run.seq, reference: "created".to_owned(), source: Source::Created, by: None }
    }

    pub(super) fn listed(
        self,
        snapshot: &Snapshot<'_>,
        run: &Run,
        is_reached: impl Fn(Seq) -> bool,
    ) -> Result<ListedPoint> {
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
