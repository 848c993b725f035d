//! Doing what the plan says: pointer, dispatches, artifacts, agents, skips and events in one transaction.

use crate::points::PointGoal;
use ic_base::{Code, Diagnosis, Result, RollbackId, Seq, Timestamp};
use ic_kernel::Kernel;
use ic_kernel::journal::layer::LayerName;
use ic_kernel::journal::table::{self, NewRollback, RollbackRecord, RollbackStatus};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{Snapshot, Transaction};
use ic_phase::{Run, run, skip};
use ic_runtrack::{cancel_agents_by_phases, mark_artifacts_rolled_back};
use serde_json::{Value, json};

use super::events::moved;
use super::outcome::RollbackSummary;
use super::plan::{self, RollbackPlan};
use super::request::{RollbackRequest, RollbackTarget};
use super::rollback_marks;
use super::straddling_work;

/// Takes a run back to an earlier phase, or says what that would do (seed 001: `Rollback`).
///
/// Errors: `unknown_phase`, `phase_ahead`, `already_at_phase`, `run_not_active`, `rolling_back`, `plan_changed`, those of points; the
/// same in a dry run. Whatever the error, nothing is changed.
pub fn rollback(kernel: &Kernel, request: &RollbackRequest<'_>) -> Result<RollbackSummary> {
    rollback_asked_at(kernel, request, None)
}

/// As [`rollback`], for a call that was made at `asked_at`. A rollback to the same phase that another call made since then is no error:
/// callers who ask at once all intend it (seed 001: last writer wins). The clock decides nothing else.
pub fn rollback_asked_at(
    kernel: &Kernel,
    request: &RollbackRequest<'_>,
    asked_at: Option<Timestamp>,
) -> Result<RollbackSummary> {
    if request.dry_run {
        return kernel.read(|snapshot| {
            // A read does not check its caller. Work that was rolled back must be refused here, too, because the real
            // call refuses it.
            kernel.calling_dispatch(snapshot)?;
            planned(kernel, snapshot, request)
        });
    }
    // Read before the write lock is waited for: what others did while this call waited shows by a later epoch.
    let id: RollbackId = kernel.context.new_id();
    let since = match asked_at {
        Some(asked_at) => {
            let epoch = kernel.read(|snapshot| kernel.run(snapshot, request.run))?.epoch;
            Some(Since { asked_at, epoch })
        }
        None => None,
    };
    // Planned again inside of the transaction: the plan must hold for the rows that are written.
    kernel.write(|tx, now| {
        let rollback = match planned(kernel, tx, request) {
            Err(error) if error.code() == Code::AlreadyAtPhase => {
                return at_once(kernel, tx, request, since)?.ok_or(error);
            }
            planned => planned?,
        };
        // The id was made outside: a server may run this transaction again, and each attempt must name the same
        // rollback.
        let seq = apply(tx, now, &rollback, &id, &rollback.plan.to_json())?;
        Ok(RollbackSummary { done: Some((id.clone(), seq)), ..rollback })
    })
}

/// The time at which a call was made, and the epoch of its run before the call waited for others.
#[derive(Clone, Copy)]
struct Since {
    asked_at: Timestamp,
    epoch: i64,
}

/// The rollback to the same phase that another call made since this call was made; `None`: the run was there before.
fn at_once(
    kernel: &Kernel,
    snapshot: &Snapshot<'_>,
    request: &RollbackRequest<'_>,
    since: Option<Since>,
) -> Result<Option<RollbackSummary>> {
    let run = kernel.run(snapshot, request.run)?;
    let newest = table::newest_of(snapshot, &run.id)?;
    let is_it = |one: &RollbackRecord| {
        let is_whole = one.status == RollbackStatus::Done && !one.is_of_works();
        // A later epoch shows that the other rollback came while this call waited for the lock. The clock is needed if
        // that rollback was done after this call was made and before it read the epoch.
        let is_since = since.is_some_and(|since| since.epoch < one.epoch || one.created_at > since.asked_at);
        // Nothing has moved the run since that rollback.
        is_since && is_whole && one.epoch == run.epoch && one.to_phase == run.phase
    };
    // A caller that insists on a plan asked for that plan, and not for what another call did.
    let Some(by) = newest.filter(is_it).filter(|_| request.expect_plan.is_none()) else { return Ok(None) };
    // The caller learns of the other rollback, and that nothing was left for its own.
    let plan = RollbackPlan::of_nothing(run, by.cut_seq);
    let done = Some((by.id, by.seq));
    Ok(Some(RollbackSummary { done, is_at_once: true, ..RollbackSummary::planned(plan, request.reason) }))
}

/// Rolls back the record of a run in the caller's transaction. The caller has undone the effects and opened the run again: its undos are
/// functions of a program, which no journal can hold.
///
/// Errors: those of [`rollback`].
pub fn roll_back_record(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RollbackId,
    run: Run,
    (to_phase, include_target): (&str, bool),
    reason: Option<&str>,
) -> Result<()> {
    let plan = straddling_work::recorded(tx, plan::make(tx, run, to_phase, include_target)?)?;
    let rollback = RollbackSummary::planned(plan, reason);
    let mut remembered = rollback.plan.to_json();
    // What the caller undid besides is not in this row, so an undo of this rollback cannot bring it back.
    remembered["made_by"] = json!("tasks");
    apply(tx, now, &rollback, id, &remembered).map(|_| ())
}

/// The plan of a rollback of the record alone.
fn planned(kernel: &Kernel, snapshot: &Snapshot<'_>, request: &RollbackRequest<'_>) -> Result<RollbackSummary> {
    let plan = straddling_work::recorded(snapshot, planned_by_cut(kernel, snapshot, request)?)?;
    let planned = RollbackSummary::planned(plan, request.reason);
    let plan_hash = planned.plan_hash.as_str();
    if let Some(expected) = request.expect_plan
        && expected != plan_hash
    {
        return Err(Diagnosis::new(
            Code::PlanChanged,
            "The plan is not the expected one: the run has changed since it was made, or it was made with other flags.",
        )
        .hint("look at the new plan: add --dry-run and leave out --expect-plan")
        .detail("expected", expected)
        .detail("plan_hash", plan_hash));
    }
    Ok(planned)
}

/// The plan of what the cut alone covers, without work that began before it. That work is found by the layers.
pub(super) fn planned_by_cut(
    kernel: &Kernel,
    snapshot: &Snapshot<'_>,
    request: &RollbackRequest<'_>,
) -> Result<RollbackPlan> {
    let run = kernel.run(snapshot, request.run)?;
    let goal = match request.to {
        RollbackTarget::Phase { name, include_target } => PointGoal::Phase { name: name.to_owned(), include_target },
        RollbackTarget::Point(text) | RollbackTarget::Thread(text) => crate::points::resolve(snapshot, &run, text)?,
        RollbackTarget::Only(text) => PointGoal::Works(vec![crate::points::work_of(snapshot, &run, text)?]),
        RollbackTarget::Since(text) | RollbackTarget::Exactly(text) => {
            PointGoal::Works(crate::points::thread_since(snapshot, &run, text)?.0)
        }
    };
    let is_exact = matches!(request.to, RollbackTarget::Exactly(_));
    match goal {
        PointGoal::Phase { name, include_target } => plan::make(snapshot, run, &name, include_target),
        PointGoal::Place(place) => plan::make_at(snapshot, run, place),
        PointGoal::Works(chosen) => {
            // A person may have stopped the call in which the newest of them is.
            let in_calls = matches!(request.to, RollbackTarget::Since(_));
            let plan = plan::make_of_works(snapshot, run, &chosen, in_calls)?;
            Ok(RollbackPlan { is_exact, ..plan })
        }
    }
}

fn apply(
    tx: &Transaction<'_>,
    now: Timestamp,
    rollback: &RollbackSummary,
    id: &RollbackId,
    remembered: &Value,
) -> Result<Seq> {
    const LAYERS: [LayerName; 1] = [LayerName::Workflow];
    let plan = &rollback.plan;
    // The event comes first: its number is the place of the row in the order of everything.
    let event = NewEvent {
        subject_id: Some(id.as_str()),
        from: Some(&plan.run.phase),
        to: Some(&plan.to_phase),
        reason: rollback.reason.as_deref(),
        payload: Some(moved(remembered, id, &LAYERS, &rollback.plan_hash)),
        ..NewEvent::of(&plan.run.id, plan.next_epoch(), EventType::Rollback)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    let row = rollback.row(id, seq, &LAYERS, remembered);
    // The rollback is done at once and has no steps: a crash leaves either all of this transaction or nothing to
    // resume.
    table::insert(tx, now, &NewRollback { status: RollbackStatus::Done, ..row })?;
    // An undo of works leaves the run where it is.
    if !plan.cut.is_of_works() {
        run::rollback_phase(tx, now, &plan.run.id, &plan.to_phase)?;
    }
    rollback_marks::off(tx, now, &plan.reinstated)?;
    let reason = rollback.reason.as_deref();
    rollback_marks::call_off(tx, now, plan, id, reason)?;
    mark_artifacts_rolled_back(tx, &plan.artifacts, id)?;
    cancel_agents_by_phases(tx, now, &plan.failed_agents, plan.next_epoch(), id)?;
    cancel_agents_by_phases(tx, now, &plan.marked_agents, plan.next_epoch(), id)?;
    skip::mark_rolled_back(tx, &plan.skips, id)?;
    Ok(seq)
}
