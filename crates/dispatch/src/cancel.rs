//! What a rollback does to dispatches.

use ic_base::{Result, RollbackId, RunId, Timestamp};
use ic_ledger::events::{Cut, EventType};
use ic_ledger::{Snapshot, Transaction};
use serde_json::json;

use crate::dispatch::{Dispatch, DispatchEnding, append_change, finish, unfinished};
use crate::status::DispatchStatus;

/// The dispatches that a rollback covers: begun after the cut (recorded, if they were not begun), or in a rolled-back phase. Oldest
/// first.
pub fn taken_back(snapshot: &Snapshot<'_>, cut: &Cut) -> Result<Vec<Dispatch>> {
    let sql = format!(
        "SELECT {} FROM dispatches WHERE run_id = $1 AND rolled_back_by IS NULL ORDER BY seq",
        Dispatch::COLUMNS
    );
    let mut dispatches = snapshot.query_all(&sql, &[&cut.run_id.as_str()], Dispatch::from_row)?;
    dispatches.retain(|d| cut.covers(d.place(), &d.phase, Some(&d.id)));
    Ok(dispatches)
}

/// Cancels the dispatches of the rolled-back phases (seed 001: `CancelByPhases`). Each is marked. Those that had not ended are cancelled
/// with an event that names the rollback and its `reason`, so that a reader of one dispatch need not look elsewhere. No process is
/// signalled.
///
/// `dispatches` is what [`taken_back`] found in the same transaction.
pub fn cancel_by_phases(
    tx: &Transaction<'_>,
    now: Timestamp,
    dispatches: &[Dispatch],
    rollback: &RollbackId,
    reason: Option<&str>,
) -> Result<()> {
    for dispatch in dispatches {
        // Work that has ended keeps its status, so an undo of the rollback only has to remove the mark.
        let (status, finished_seq) = if dispatch.status.is_finished() {
            (dispatch.status, dispatch.finished_seq)
        } else {
            let payload = Some(json!({ "rollback_id": rollback.as_str() }));
            let to = DispatchStatus::Cancelled;
            let seq = append_change(tx, now, dispatch, to, EventType::DispatchCancelled, reason, payload)?;
            (to, Some(seq))
        };
        // Work that had ended keeps the time of its end.
        let finished_at = dispatch.finished_at.unwrap_or(now);
        // Exactly one row must change: work that another rollback has marked since is an error, and its mark stays.
        tx.execute_one(
            "UPDATE dispatches SET status = $1, finished_at = $2, finished_seq = $3, rolled_back_by = $4 \
             WHERE id = $5 AND rolled_back_by IS NULL",
            &[&status.as_str(), &finished_at.millis(), &finished_seq, &rollback.as_str(), &dispatch.id.as_str()],
        )?;
    }
    Ok(())
}

/// Takes the marks of a rollback off again. No work is revived: a dispatch that it cancelled stays cancelled.
pub fn unmark(tx: &Transaction<'_>, rollback: &RollbackId) -> Result<usize> {
    tx.execute("UPDATE dispatches SET rolled_back_by = NULL WHERE rolled_back_by = $1", &[&rollback.as_str()])
}

/// Cancels every dispatch of a run that has not ended, and returns them as they were. Used when the run is cancelled, for
/// `reason`: each event repeats it, so that who follows one dispatch need not look elsewhere.
pub fn cancel_unfinished(
    tx: &Transaction<'_>,
    now: Timestamp,
    run_id: &RunId,
    reason: Option<&str>,
) -> Result<Vec<Dispatch>> {
    let dispatches = unfinished(tx, run_id, None)?;
    for dispatch in &dispatches {
        finish(tx, now, dispatch, &DispatchEnding::Cancelled { reason })?;
    }
    Ok(dispatches)
}
