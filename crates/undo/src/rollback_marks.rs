//! The marks that a rollback leaves on what it covers: removed, and set again.
//!
//! Work of one dispatch may be undone, and the run then go back to before that undo: there the dispatch's work stands again. Its undo is
//! lifted as the run goes back, and made again if that rollback itself is undone.

use ic_base::{DispatchId, Result, RollbackId, Timestamp};
use ic_dispatch::{cancel, cancel_by_phases, dispatch};
use ic_effects::Compensation;
use ic_effects::compensation::{self as effects, CompensationEnd, CompensationState};
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_ledger::Transaction;
use ic_phase::skip;
use ic_runtrack::{agent, artifact, cancel_agents_by_phases, mark_artifacts_rolled_back};
use serde_json::{Value, json};

use super::coverage::cut_of;
use super::plan::RollbackPlan;

/// Removes the marks; returns the number of each kind.
pub(super) fn unmark(tx: &Transaction<'_>, now: Timestamp, remembered: &RollbackRecord) -> Result<Value> {
    let id = &remembered.id;
    arm_failed(tx, now, remembered)?;
    Ok(json!({
        "rollback_id": id.as_str(),
        "dispatches": cancel::unmark(tx, id)?,
        "artifacts": artifact::unmark(tx, id)?,
        "agents": agent::unmark(tx, id)?,
        "skips": skip::unmark(tx, id)?,
        "effects": effects::unmark(tx, now, &remembered.run_id, id)?,
    }))
}

/// Arms again the effects whose undo failed in a rollback that ends: they have their former state, and wait for no other attempt. Not those
/// whose undo was cut off, because it is not known how far it came.
fn arm_failed(tx: &Transaction<'_>, now: Timestamp, remembered: &RollbackRecord) -> Result<()> {
    let cut = cut_of(remembered)?;
    let is_of_this = |one: &Compensation| {
        one.state == CompensationState::Failed
            && !one.outcome_unknown
            // A failed effect names no rollback. Its last change tells whether this one tried it.
            && one.updated_at >= remembered.created_at
            && cut.covers(one.seq, &one.phase, one.dispatch_id.as_ref())
    };
    let all = effects::list(tx, &remembered.run_id)?;
    all.iter().filter(|one| is_of_this(one)).try_for_each(|one| effects::arm_again(tx, now, one, &remembered.id))
}

/// The dispatches that a rollback marked.
pub(super) fn marked_dispatches(remembered: &RollbackRecord) -> Vec<DispatchId> {
    listed(remembered, &["cancelled_dispatches", "marked_dispatches"])
}

/// The dispatches that ran until a rollback began, which cancelled them.
pub(super) fn cancelled_dispatches(remembered: &RollbackRecord) -> Vec<DispatchId> {
    listed(remembered, &["cancelled_dispatches"])
}

fn listed(remembered: &RollbackRecord, lists: &[&str]) -> Vec<DispatchId> {
    lists
        .iter()
        .filter_map(|list| remembered.plan[*list].as_array())
        .flatten()
        .filter_map(|pair| pair[0].as_str())
        .map(|id| DispatchId::from_ledger(id.to_owned()))
        .collect()
}

/// Marks the dispatches of a plan, and cancels those that run. Their calls end with them: what a person does afterwards is not attributed
/// to them.
pub(super) fn call_off(
    tx: &Transaction<'_>,
    now: Timestamp,
    plan: &RollbackPlan,
    id: &RollbackId,
    reason: Option<&str>,
) -> Result<()> {
    cancel_by_phases(tx, now, &plan.cancelled_dispatches, id, reason)?;
    cancel_by_phases(tx, now, &plan.marked_dispatches, id, reason)
}

/// Lifts the undos of one dispatch each. The effects that they undid stay undone, because no call can make them again.
pub(super) fn off(tx: &Transaction<'_>, now: Timestamp, ids: &[RollbackId]) -> Result<()> {
    for id in ids {
        unmark(tx, now, &table::get(tx, id)?)?;
        table::set_status(tx, now, id, RollbackStatus::Undone)?;
    }
    Ok(())
}

/// Makes such undos again: marks what they had marked.
pub(super) fn on(tx: &Transaction<'_>, now: Timestamp, ids: &[RollbackId]) -> Result<()> {
    for id in ids {
        let remembered = table::get(tx, id)?;
        if steps::is_in_part(&remembered, &steps::of_rollback(tx, id)?) {
            // An undo of only a part of the work had marked nothing.
            table::set_status(tx, now, id, RollbackStatus::Done)?;
            continue;
        }
        let cut = cut_of(&remembered)?;
        let dispatches = marked_dispatches(&remembered);
        // Each of them has ended, because the undo cancelled what ran. So only the marks are set again.
        let marked: Vec<_> = dispatches.iter().map(|id| dispatch::resolve(tx, id.as_str())).collect::<Result<_>>()?;
        cancel_by_phases(tx, now, &marked, id, None)?;
        // These are looked up again and not read from the plan: more may have been recorded for the work while the undo
        // did not hold.
        mark_artifacts_rolled_back(tx, &artifact::taken_back(tx, &cut)?, id)?;
        let agents = agent::taken_back(tx, &cut, &dispatches.iter().collect())?;
        cancel_agents_by_phases(tx, now, &agents, remembered.epoch, id)?;
        effects::mark(tx, &effects::taken_back(tx, &cut)?, id)?;
        leave_again(tx, now, id)?;
        table::set_status(tx, now, id, RollbackStatus::Done)?;
    }
    Ok(())
}

/// Leaves again the effects that a rollback had left by decision: it stands again, and so does the decision.
fn leave_again(tx: &Transaction<'_>, now: Timestamp, id: &RollbackId) -> Result<()> {
    let steps = steps::of_rollback(tx, id)?;
    let told = steps.iter().flat_map(|step| &step.detail.compensations);
    for (one, _) in told.filter(|(_, state)| state == CompensationState::Skipped.as_str()) {
        let one = effects::get(tx, one)?;
        if one.state.is_open() {
            let why = format!("the rollback {} left it, and stands again", id.short());
            effects::mark_left(tx, &effects::finish(tx, now, &one, CompensationEnd::Skipped(&why))?, id)?;
        }
    }
    Ok(())
}
