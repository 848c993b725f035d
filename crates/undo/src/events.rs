//! The events that tell how far a rollback is, and how much of the record it changes.

use std::ops::{ControlFlow, Range};

use ic_base::{Result, RollbackId, RunId, Seq};
use ic_kernel::journal::table::RollbackRecord;
use ic_kernel::journal::{Course, LayerName, StepKind};
use ic_ledger::Snapshot;
use ic_ledger::events::{Event, EventType, NewEvent};
use ic_phase::run;
use serde_json::{Value, json};

/// The event of a step on the way forward.
pub(super) fn event(remembered: &RollbackRecord, event_type: EventType, kind: StepKind) -> NewEvent<'_> {
    NewEvent {
        subject_id: Some(remembered.id.as_str()),
        payload: Some(json!({ "step": kind.as_str() })),
        ..NewEvent::of(&remembered.run_id, remembered.epoch, event_type)
    }
}

/// The event of a step, either way.
pub(super) fn step_event<'r>(
    snapshot: &Snapshot<'_>,
    remembered: &'r RollbackRecord,
    event_type: EventType,
    kind: StepKind,
    course: Course,
) -> Result<NewEvent<'r>> {
    if !course.is_back() {
        return Ok(event(remembered, event_type, kind));
    }
    let payload = json!({ "step": kind.as_str(), "course": course.as_str() });
    Ok(NewEvent { payload: Some(payload), ..event_back(snapshot, remembered, event_type, course)? })
}

/// The event of an undo or abort as a whole, in the epoch that the run has now.
pub(super) fn event_back<'r>(
    snapshot: &Snapshot<'_>,
    remembered: &'r RollbackRecord,
    event_type: EventType,
    course: Course,
) -> Result<NewEvent<'r>> {
    let epoch = run::get(snapshot, &remembered.run_id)?.epoch;
    Ok(NewEvent {
        subject_id: Some(remembered.id.as_str()),
        payload: Some(json!({ "course": course.as_str() })),
        ..NewEvent::of(&remembered.run_id, epoch, event_type)
    })
}

/// The time in which a rollback was undone or aborted, finished or not: restores in it reverted the rollback.
pub(crate) struct Revert {
    /// The event with which it began.
    pub(crate) begun: Event,
    /// The event with which it ended; the greatest number while it is under way.
    pub(crate) until: Seq,
}

impl Revert {
    /// The events from its beginning to its end.
    pub(crate) fn during(&self) -> Range<Seq> {
        self.begun.seq..self.until
    }

    /// Whether it undid a rollback that was done.
    pub(crate) fn is_undo(&self) -> bool {
        self.begun.event_type == EventType::RollbackUndoBegun.as_str()
    }

    /// Whether it is under way, or stopped.
    pub(crate) fn is_open(&self) -> bool {
        self.until == Seq::MAX
    }
}

/// The reverts of a run's rollbacks after the event `from`, oldest first; with `by`, only those of this rollback. An undo that was aborted
/// itself is one of them, because its restores count although the rollback stands again.
pub(crate) fn reverts(snapshot: &Snapshot<'_>, run: &RunId, from: Seq, by: Option<&RollbackId>) -> Result<Vec<Revert>> {
    use EventType as T;
    let is = |event: &Event, kinds: &[T]| kinds.iter().any(|kind| kind.as_str() == event.event_type);
    let (mut reverts, mut open) = (Vec::new(), None);
    ic_ledger::events::each_since(snapshot, Some(run), from, i64::MAX, |event| {
        if by.is_some_and(|by| event.subject_id.as_deref() != Some(by.as_str())) {
            return Ok(ControlFlow::Continue(()));
        }
        if is(&event, &[T::RollbackUndoBegun, T::RollbackAbortBegun]) {
            open = Some(event);
        } else if is(&event, &[T::RollbackUndone, T::RollbackAborted, T::RollbackUndoAborted]) {
            reverts.extend(open.take().map(|begun| Revert { begun, until: event.seq }));
        } else if is(&event, &[T::Rollback]) {
            // An abort that could not begin has no end, and the rollback was finished after it.
            open = None;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    reverts.extend(open.map(|begun| Revert { begun, until: Seq::MAX }));
    Ok(reverts)
}

/// The key of the phases that a run leaves which goes back to a point. `rolled_back_phases` of a plan are those whose records it covers.
pub(crate) const LEFT_PHASES: &str = "left_phases";

/// The phases that the run left, from a plan that [`super::plan::RollbackPlan::to_json`] made.
fn left_phases(plan: &Value) -> &Value {
    plan.get(LEFT_PHASES).unwrap_or(&plan["rolled_back_phases"])
}

/// The payload of the event of a rollback that moved its run. `plan`: as [`super::plan::RollbackPlan::to_json`] made it.
pub(crate) fn moved(plan: &Value, id: &RollbackId, layers: &[LayerName], plan_hash: &str) -> Value {
    json!({
        "rollback_id": id.as_str(),
        "layers": layers.iter().map(|layer| layer.as_str()).collect::<Vec<_>>(),
        "cut_seq": plan["cut_seq"],
        "include_target": plan["include_target"],
        "rolled_back_phases": left_phases(plan),
        "plan_hash": plan_hash,
        "counts": PlanCounts::of_json(plan).to_json(),
    })
}

/// The numbers of rows that a rollback changes, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Phases that the run leaves.
    pub phases: usize,
    /// Dispatches, cancelled or only marked.
    pub dispatches: usize,
    /// Artifacts that are marked.
    pub artifacts: usize,
    /// Agents, failed or only marked.
    pub agents: usize,
    /// Skips that are cleared.
    pub skips: usize,
}

impl PlanCounts {
    /// The member `counts` of an event: the same keys for every set of layers.
    fn to_json(self) -> Value {
        json!({
            "phases": self.phases,
            "dispatches": self.dispatches,
            "artifacts": self.artifacts,
            "agents": self.agents,
            "skips": self.skips,
        })
    }

    /// The counts of a plan that [`super::plan::RollbackPlan::to_json`] made.
    fn of_json(plan: &Value) -> Self {
        let count = |list: &str| plan[list].as_array().map_or(0, Vec::len);
        Self {
            phases: left_phases(plan).as_array().map_or(0, Vec::len),
            dispatches: count("cancelled_dispatches") + count("marked_dispatches"),
            artifacts: count("artifacts"),
            agents: count("failed_agents") + count("marked_agents"),
            skips: count("skips"),
        }
    }
}
