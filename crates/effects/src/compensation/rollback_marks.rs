//! The marks that a rollback leaves on the effects that it undid.

use ic_base::{Result, RollbackId, RunId, Timestamp};
use ic_ledger::events::{Cut, EventType, NewEvent};
use ic_ledger::{Snapshot, Transaction};
use serde_json::json;

use super::state::CompensationState;
use super::{Compensation, CompensationEvent, list, next};

/// Marks the effects that are undone as part of a rollback. An effect that was left is not rolled back.
pub fn mark_rolled_back(tx: &Transaction<'_>, run: &RunId, rollback: &RollbackId) -> Result<()> {
    tx.execute(
        "UPDATE compensations SET rolled_back_by = $1 WHERE run_id = $2 AND rolled_back_by IS NULL \
         AND state = 'done'",
        &[&rollback.as_str(), &run.as_str()],
    )
    .map(|_| ())
}

/// The undone effects that a rollback covers, in the order in which they were begun.
pub fn taken_back(snapshot: &Snapshot<'_>, cut: &Cut) -> Result<Vec<Compensation>> {
    let mut all = list(snapshot, &cut.run_id)?;
    all.retain(|c| {
        c.state == CompensationState::Done
            && c.rolled_back_by.is_none()
            && cut.covers(c.seq, &c.phase, c.dispatch_id.as_ref())
    });
    Ok(all)
}

/// Marks effects as undone by a rollback. `undone` is what [`taken_back`] found in the same transaction.
pub fn mark(tx: &Transaction<'_>, undone: &[Compensation], rollback: &RollbackId) -> Result<()> {
    let sql = "UPDATE compensations SET rolled_back_by = $1 WHERE id = $2 AND rolled_back_by IS NULL";
    undone.iter().try_for_each(|one| tx.execute_one(sql, &[&rollback.as_str(), &one.id.as_str()]))
}

/// Marks an effect that was left by a decision that belongs to a rollback.
pub fn mark_left(tx: &Transaction<'_>, left: &Compensation, rollback: &RollbackId) -> Result<()> {
    let sql = "UPDATE compensations SET rolled_back_by = $1 WHERE id = $2 AND state = 'skipped'";
    tx.execute_one(sql, &[&rollback.as_str(), &left.id.as_str()])
}

/// Removes the marks of a rollback. No effect is made again: it stays done. An effect that was left can be undone again, because the
/// decision ends with its rollback.
pub fn unmark(tx: &Transaction<'_>, now: Timestamp, run: &RunId, rollback: &RollbackId) -> Result<usize> {
    // This comes before the marks are removed: they tell which of the skipped effects this rollback left.
    let left = list(tx, run)?;
    for one in left
        .iter()
        .filter(|one| one.state == CompensationState::Skipped && one.rolled_back_by.as_ref() == Some(rollback))
    {
        arm_again(tx, now, one, rollback)?;
    }
    let sql = "UPDATE compensations SET rolled_back_by = NULL WHERE rolled_back_by = $1";
    tx.execute(sql, &[&rollback.as_str()])
}

/// Arms an effect again that a rollback had undone or left, when that rollback is itself undone or aborted: it can be undone again.
pub fn arm_again(tx: &Transaction<'_>, now: Timestamp, one: &Compensation, rollback: &RollbackId) -> Result<()> {
    // The mark of the rollback is not removed here: `unmark` removes it from all rows at once.
    let payload = json!({ "step": one.step, "rollback_id": rollback.as_str() });
    let state = next(one.state, CompensationEvent::ArmedAgain)?;
    let event = one.event(EventType::CompensationArmed, state);
    ic_ledger::events::append(tx, now, &NewEvent { payload: Some(payload), ..event })?;
    tx.execute_one(
        "UPDATE compensations SET state = $1, last_error = NULL, updated_at = $2 WHERE id = $3",
        &[&state.as_str(), &now.millis(), &one.id.as_str()],
    )
}
