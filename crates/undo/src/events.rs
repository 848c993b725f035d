//! The events that tell how far a rollback is.

use ic_base::Result;
use ic_kernel::journal::table::RollbackRecord;
use ic_kernel::journal::{Course, StepKind};
use ic_ledger::Snapshot;
use ic_ledger::events::{EventType, NewEvent};
use ic_phase::run;
use serde_json::json;

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
