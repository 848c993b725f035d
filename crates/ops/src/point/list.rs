//! The points of a run, as they are listed.

use std::ops::ControlFlow;

use ic_base::{CheckpointId, Result, RollbackId, Seq, Timestamp, title};
use ic_checkpoint::record::{self, Checkpoint};
use ic_dispatch::dispatch;
use ic_phase::Run;
use ic_phase::point::{self, Kind, Point};
use ic_store::Snapshot;

use super::{checkpoint_at, reference};
use crate::rollback::table::{self, Remembered};

/// A point, as a person chooses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// How it is referred to.
    pub reference: String,
    /// `created`, `phase`, `step`, `dispatch`, `prompt`, `guard` or `checkpoint`.
    pub kind: &'static str,
    /// What was recorded after this event lies after the point.
    pub seq: Seq,
    /// Where the run was.
    pub phase: String,
    /// For people, on one line.
    pub title: String,
    /// The tree as it was there, if it was captured.
    pub checkpoint_id: Option<CheckpointId>,
    /// Whether the content of that checkpoint is gone.
    pub is_pruned: bool,
    /// The rollback that stands and took the run back to before it: then it is no target.
    pub taken_back_by: Option<RollbackId>,
    /// Whether what began there was rolled back: also at the point to which the run went back, which is a target all the same.
    pub is_undone: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The newest points of a run, newest first, those aside that a rollback took back unless `all`.
pub fn list(snapshot: &Snapshot<'_>, run: &Run, all: bool, at_most: usize) -> Result<Vec<Listed>> {
    let rollbacks = table::of_run(snapshot, &run.id)?;
    // One for each kind of source is enough of each, however many were rolled back in between.
    let most = if all || rollbacks.is_empty() { at_most } else { usize::MAX };
    let mut found = Vec::new();
    for one in point::newest_of_run(snapshot, &run.id, most)? {
        found.push(of_point(snapshot, one)?);
    }
    found.extend(phases(snapshot, run, most)?);
    let asked_for = record::manual_of_run(snapshot, &run.id, most)?;
    found.extend(asked_for.into_iter().map(|checkpoint| of_checkpoint(run, checkpoint)));
    found.push(created(snapshot, run)?);
    for one in &mut found {
        one.taken_back_by = taken_back_by(&rollbacks, one.seq).map(|by| by.id.clone());
        let is_reached = |by: &Remembered| by.status.stands() && by.cut_seq == one.seq;
        one.is_undone = one.taken_back_by.is_some() || rollbacks.iter().any(is_reached);
    }
    found.retain(|one| all || one.taken_back_by.is_none());
    found.sort_by_key(|one| std::cmp::Reverse(one.seq));
    // Of several moves out of one phase the reference means the newest; the others are no targets of their own.
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| one.taken_back_by.is_some() || seen.insert(one.reference.clone()));
    found.truncate(at_most);
    Ok(found)
}

fn taken_back_by(rollbacks: &[Remembered], seq: Seq) -> Option<&Remembered> {
    rollbacks.iter().rev().find(|one| one.status.stands() && one.cut_seq < seq && seq < one.seq)
}

fn of_point(snapshot: &Snapshot<'_>, point: Point) -> Result<Listed> {
    let checkpoint = match &point.checkpoint_id {
        Some(id) => Some(record::get(snapshot, id)?),
        None => None,
    };
    let name = match (point.kind, &point.title) {
        (Kind::Dispatch, _) => {
            let work = dispatch::resolve(snapshot, &point.name)?.work;
            work.name.or(work.agent_type).unwrap_or_default()
        }
        (Kind::Step, _) => point.name.clone(),
        (Kind::Prompt | Kind::Guard, text) => text.clone().unwrap_or_default(),
    };
    Ok(Listed {
        reference: reference(&point),
        kind: point.kind.as_str(),
        seq: point.seq,
        phase: point.phase,
        title: title(&name),
        is_pruned: is_pruned(checkpoint.as_ref()),
        checkpoint_id: point.checkpoint_id,
        taken_back_by: None,
        is_undone: false,
        created_at: point.created_at,
    })
}

/// The moves that left a phase.
fn phases(snapshot: &Snapshot<'_>, run: &Run, at_most: usize) -> Result<Vec<Listed>> {
    let mut moves = Vec::new();
    ic_events::each_crossing_newest_first(snapshot, &run.id, |event| {
        if moves.len() == at_most {
            return Ok(ControlFlow::Break(()));
        }
        moves.extend(event.from.clone().zip(event.to.clone()).map(|way| (event.seq, way, event.created_at)));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut found = Vec::new();
    for (seq, (from, to), created_at) in moves {
        let checkpoint = checkpoint_at(snapshot, run, seq)?;
        found.push(Listed {
            reference: format!("phase:{from}"),
            kind: "phase",
            seq,
            title: format!("left {from} for {to}"),
            phase: from,
            is_pruned: is_pruned(checkpoint.as_ref()),
            checkpoint_id: checkpoint.map(|checkpoint| checkpoint.id),
            taken_back_by: None,
            is_undone: false,
            created_at,
        });
    }
    Ok(found)
}

fn of_checkpoint(run: &Run, checkpoint: Checkpoint) -> Listed {
    let link = &checkpoint.link;
    Listed {
        reference: format!("checkpoint:{}", checkpoint.id.short()),
        kind: "checkpoint",
        seq: checkpoint.seq,
        phase: link.phase.clone().unwrap_or_else(|| run.chain.first().to_owned()),
        title: title(link.name.as_deref().or(link.message.as_deref()).unwrap_or_default()),
        is_pruned: checkpoint.pruned_at.is_some(),
        taken_back_by: None,
        is_undone: false,
        created_at: checkpoint.created_at,
        checkpoint_id: Some(checkpoint.id),
    }
}

fn created(snapshot: &Snapshot<'_>, run: &Run) -> Result<Listed> {
    let checkpoint = checkpoint_at(snapshot, run, run.seq)?;
    Ok(Listed {
        reference: "created".to_owned(),
        kind: "created",
        seq: run.seq,
        phase: run.chain.first().to_owned(),
        title: title(&run.goal),
        is_pruned: is_pruned(checkpoint.as_ref()),
        checkpoint_id: checkpoint.map(|checkpoint| checkpoint.id),
        taken_back_by: None,
        is_undone: false,
        created_at: run.created_at,
    })
}

fn is_pruned(checkpoint: Option<&Checkpoint>) -> bool {
    checkpoint.is_some_and(|checkpoint| checkpoint.pruned_at.is_some())
}
