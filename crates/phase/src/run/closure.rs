//! Closing a run while what it did is rolled back, and opening it again.

use ic_base::{Code, Diagnosis, Result, RunId, Timestamp};
use ic_ledger::Transaction;
use ic_ledger::events::{EventType, NewEvent};

use super::row::{Run, RunStatus};

/// Closes a run for a rollback over several layers, one epoch later. Until [`settle_rollback`] or [`reopen`] the run does not advance, and
/// no work in it is completed.
pub fn fence(tx: &Transaction<'_>, now: Timestamp, id: &RunId) -> Result<()> {
    //   run ── fence, epoch + 1 ──▶ rolling_back ── settle_rollback ──▶ active, at the target
    //   run ── close_for_rollback ──▶ rolling_back ── reopen ──▶ the status that it had
    //   rolling_back ── undo_rollback, epoch + 1 ──▶ the status and the phase that it had
    //
    // The epoch rises if the run moves: an advance that was decided before is then refused. The undo of some works and a compensation do
    // not move the run. Other work continues there afterwards, so its epoch must not change.
    tx.execute_one(
        "UPDATE runs SET status = 'rolling_back', epoch = epoch + 1, updated_at = $1 WHERE id = $2",
        &[&now.millis(), &id.as_str()],
    )
}

/// Moves the pointer of a fenced run back: the run is active at `to`.
pub fn settle_rollback(tx: &Transaction<'_>, now: Timestamp, id: &RunId, to: &str) -> Result<()> {
    tx.execute_one(
        "UPDATE runs SET phase = $1, status = 'active', completed_at = NULL, updated_at = $2 WHERE id = $3",
        &[&to, &now.millis(), &id.as_str()],
    )
}

/// Reverts a rollback's move of the pointer: the run is where it was, one epoch later.
pub fn undo_rollback(tx: &Transaction<'_>, now: Timestamp, id: &RunId, phase: &str, status: RunStatus) -> Result<()> {
    // The rollback emptied the time of the completion, and no row has it any more.
    let completed_at = (status == RunStatus::Completed).then(|| now.millis());
    tx.execute_one(
        "UPDATE runs SET phase = $1, status = $2, completed_at = $3, epoch = epoch + 1, updated_at = $4 WHERE id = $5",
        &[&phase, &status.as_str(), &completed_at, &now.millis(), &id.as_str()],
    )
}

/// Closes a run while what it did is rolled back: until it is reopened it does not advance, and no work in it is completed.
pub fn close_for_rollback(tx: &Transaction<'_>, now: Timestamp, id: &RunId) -> Result<()> {
    set_status(tx, now, id, RunStatus::RollingBack)
}

/// Gives a run that was closed for a rollback its status back.
pub fn reopen(tx: &Transaction<'_>, now: Timestamp, id: &RunId, status: RunStatus) -> Result<()> {
    set_status(tx, now, id, status)
}

/// Makes a cancelled run active again, where it was, and returns it as it then is.
///
/// The epoch stays: nothing was rolled back, so what was recorded before counts as before. Errors: `run_not_active` for a run that
/// is not cancelled, `rolling_back`.
pub fn reopen_cancelled(tx: &Transaction<'_>, now: Timestamp, run: &Run, reason: &str) -> Result<Run> {
    run.require_settled()?;
    if run.status != RunStatus::Cancelled {
        let (id, status) = (run.id.short(), run.status.as_str());
        return Err(Diagnosis::new(
            Code::RunNotActive,
            format!("The run {id} is {status}; only a cancelled run is reopened."),
        )
        .hint(format!("see where it is: ic run status {id}"))
        .detail("run_id", run.id.as_str())
        .detail("status", status));
    }
    reopen_at(tx, now, run, &run.phase, reason)
}

/// Makes a completed run active again, at the phase before its end, and returns it with its new status: the session that it was made for
/// resumes.
///
/// The epoch stays, as with [`reopen_cancelled`]. Errors: `run_not_active` for a run that is not completed.
pub fn reopen_completed(tx: &Transaction<'_>, now: Timestamp, run: &Run, reason: &str) -> Result<Run> {
    let (names, id) = (run.chain.names(), run.id.short());
    // A chain has at least two phases, so there is always one before the end.
    let before_end = names.iter().rev().nth(1).filter(|_| run.status == RunStatus::Completed).copied();
    let Some(phase) = before_end else {
        return Err(Diagnosis::new(Code::RunNotActive, format!("The run {id} is not completed."))
            .hint(format!("see where it is: ic run status {id}"))
            .detail("run_id", run.id.as_str()));
    };
    reopen_at(tx, now, run, phase, reason)
}

fn reopen_at(tx: &Transaction<'_>, now: Timestamp, run: &Run, phase: &str, reason: &str) -> Result<Run> {
    let event = NewEvent {
        from: Some(run.status.as_str()),
        to: Some(RunStatus::Active.as_str()),
        reason: Some(reason),
        ..NewEvent::of(&run.id, run.epoch, EventType::RunReopened)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "UPDATE runs SET phase = $1, status = 'active', completed_at = NULL, updated_at = $2 WHERE id = $3",
        &[&phase, &now.millis(), &run.id.as_str()],
    )?;
    let (status, completed_at) = (RunStatus::Active, None);
    Ok(Run { phase: phase.to_owned(), status, completed_at, updated_at: now, ..run.clone() })
}

fn set_status(tx: &Transaction<'_>, now: Timestamp, id: &RunId, status: RunStatus) -> Result<()> {
    tx.execute_one(
        "UPDATE runs SET status = $1, updated_at = $2 WHERE id = $3",
        &[&status.as_str(), &now.millis(), &id.as_str()],
    )
}
