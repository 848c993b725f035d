//! The record of the run: the last step, one transaction in either direction.

use std::collections::BTreeSet;

use ic_base::{Result, Seq, Timestamp};
use ic_dispatch::cancel;
use ic_effects::compensation as effects;
use ic_kernel::journal::steps::{self, StepEvent};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_kernel::journal::{Course, RollbackStep, StepDetail, StepKind, choices};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{Snapshot, Transaction};
use ic_phase::{run, skip};
use ic_runtrack::{agent, artifact, cancel_agents_by_phases, mark_artifacts_rolled_back};

use super::layer::{LayerDriver, LayerWork, Site, until};
use crate::compensation::Saga;
use crate::coverage::cut_of;
use crate::events::{event, moved, reverts};
use crate::rollback_marks::{self, marked_dispatches, unmark};
use crate::undo_preconditions::undone_effects;

/// The layer of the record. Its rows are named by the plan, so a preview of it says nothing.
pub(super) struct RunLayer;

impl LayerDriver for RunLayer {
    fn go(&self, site: &mut Site<'_, '_>, step: &RollbackStep, work: &mut LayerWork) -> Result<StepDetail> {
        let (Some(saga), Some(remembered)) = (site.saga, site.covered.remembered()) else {
            return Ok(StepDetail::default());
        };
        match site.course {
            Course::Forward => settle(saga, remembered, step.ord)?,
            Course::Reapply => stand(saga, remembered, step.ord)?,
            Course::Undo | Course::Abort => {
                work.seq = Some(saga.write(|tx, now| {
                    let reason = reason_of_turning(tx, remembered)?;
                    end_of_undo(tx, now, remembered, site.course, reason.as_deref())
                })?);
            }
        }
        Ok(StepDetail::default())
    }
}

/// The end, in one transaction: pointer, artifacts, agents and skips, and the event.
fn settle(saga: &Saga<'_>, remembered: &RollbackRecord, ord: i64) -> Result<()> {
    let cut = cut_of(remembered)?;
    let id = &remembered.id;
    saga.write(|tx, now| {
        let epoch = remembered.epoch;
        let artifacts = artifact::taken_back(tx, &cut)?;
        // The fence has marked the dispatches, so the plan names them: a search for those that stand would not find
        // them any more.
        let dispatches = marked_dispatches(remembered);
        let agents = agent::taken_back(tx, &cut, &dispatches.iter().collect::<BTreeSet<_>>())?;
        let skips = skip::taken_back(tx, &cut, &remembered.to_phase)?;
        if remembered.is_of_works() && steps::is_in_part(remembered, &steps::of_rollback(tx, id)?) {
            // If a part of the work is still in the tree, it is not undone: another undo may remove the rest. A run
            // that goes back is at its target whatever stays, and a gate there must not count what came after.
            cancel::unmark(tx, id)?;
        } else {
            mark_artifacts_rolled_back(tx, &artifacts, id)?;
            cancel_agents_by_phases(tx, now, &agents, epoch, id)?;
        }
        skip::mark_rolled_back(tx, &skips, id)?;
        effects::mark(tx, &effects::taken_back(tx, &cut)?, id)?;
        append_rollback(tx, now, remembered)?;
        if remembered.is_of_works() {
            // The run itself did not move.
            run::reopen(tx, now, &remembered.run_id, choices::run_status(remembered)?)?;
        } else {
            run::settle_rollback(tx, now, &remembered.run_id, &remembered.to_phase)?;
        }
        table::set_status(tx, now, id, RollbackStatus::Done)?;
        steps::set(tx, now, id, ord, StepEvent::Succeeds, None)
    })
}

/// The end of a rollback whose undo was aborted: what it had marked stays marked, and the run is open where it was.
fn stand(saga: &Saga<'_>, remembered: &RollbackRecord, ord: i64) -> Result<()> {
    saga.write(|tx, now| {
        let event = event(remembered, EventType::RollbackStepDone, StepKind::Settle);
        ic_ledger::events::append(tx, now, &event)?;
        run::reopen(tx, now, &remembered.run_id, choices::status_after(remembered)?)?;
        table::set_status(tx, now, &remembered.id, RollbackStatus::Done)?;
        steps::set(tx, now, &remembered.id, ord, StepEvent::Succeeds, None)
    })
}

/// Ends an undo or abort: the run is where it was, and what was marked counts again. Returns the event.
pub(crate) fn end_of_undo(
    tx: &Transaction<'_>,
    now: Timestamp,
    remembered: &RollbackRecord,
    course: Course,
    reason: Option<&str>,
) -> Result<Seq> {
    let (event_type, status) = match course {
        Course::Undo => (EventType::RollbackUndone, RollbackStatus::Undone),
        _ => (EventType::RollbackAborted, RollbackStatus::Aborted),
    };
    let before = choices::run_status(remembered)?;
    let current = run::get(tx, &remembered.run_id)?;
    // Asked before the end is recorded: until then the journal still says which effects were covered.
    let undone = undone_effects(tx, remembered, until(tx, remembered, course)?)?;
    for one in undone.iter().filter(|one| one.goes_with_tree()) {
        effects::arm_again(tx, now, one, &remembered.id)?;
    }
    // A run that moves is in a new epoch after each move, in this direction too: an advance that was decided before
    // must fail.
    let (to, epoch) = if remembered.is_of_works() {
        (current.phase.clone(), current.epoch)
    } else {
        (remembered.from_phase.clone(), current.epoch + 1)
    };
    let event = NewEvent {
        subject_id: Some(remembered.id.as_str()),
        from: Some(&current.phase),
        to: Some(&to),
        reason,
        payload: Some(unmark(tx, now, remembered)?),
        ..NewEvent::of(&remembered.run_id, epoch, event_type)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    if remembered.is_of_works() {
        run::reopen(tx, now, &remembered.run_id, before)?;
    } else {
        run::undo_rollback(tx, now, &remembered.run_id, &to, before)?;
    }
    // The run is again where these undos of works had been made, so they hold again.
    rollback_marks::on(tx, now, &remembered.reinstated())?;
    table::set_status(tx, now, &remembered.id, status)?;
    Ok(seq)
}

/// The reason that was given when the undo or abort began. The last one counts: an undo may have been aborted, and begun again for another
/// reason.
fn reason_of_turning(snapshot: &Snapshot<'_>, remembered: &RollbackRecord) -> Result<Option<String>> {
    let reverts = reverts(snapshot, &remembered.run_id, remembered.seq, Some(&remembered.id))?;
    Ok(reverts.into_iter().next_back().and_then(|revert| revert.begun.reason))
}

fn append_rollback(tx: &Transaction<'_>, now: Timestamp, remembered: &RollbackRecord) -> Result<Seq> {
    let event = NewEvent {
        subject_id: Some(remembered.id.as_str()),
        from: Some(&remembered.from_phase),
        to: Some(&remembered.to_phase),
        reason: remembered.reason.as_deref(),
        payload: Some(moved(&remembered.plan, &remembered.id, &remembered.layers, &remembered.plan_hash)),
        ..NewEvent::of(&remembered.run_id, remembered.epoch, EventType::Rollback)
    };
    ic_ledger::events::append(tx, now, &event)
}
