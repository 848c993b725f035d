//! What a rollback says about the effects that it undid.

use ic_base::{Result, RollbackId, RunId};
use ic_events::Cut;
use ic_store::{Snapshot, Transaction};

use super::{Compensation, State, list};

/// Marks the effects that are undone as part of a rollback. What was left as it is, is not rolled back.
pub fn mark_rolled_back(tx: &Transaction<'_>, run: &RunId, rollback: &RollbackId) -> Result<()> {
    tx.execute(
        "UPDATE compensations SET rolled_back_by = $1 WHERE run_id = $2 AND rolled_back_by IS NULL \
         AND state = 'done'",
        &[&rollback.as_str(), &run.as_str()],
    )
    .map(|_| ())
}

/// The undone effects that a rollback takes back, in the order in which they were begun.
pub fn taken_back(snapshot: &Snapshot<'_>, cut: &Cut) -> Result<Vec<Compensation>> {
    let mut all = list(snapshot, &cut.run_id)?;
    all.retain(|c| c.state == State::Done && c.rolled_back_by.is_none() && cut.covers(c.seq, &c.phase));
    Ok(all)
}

/// Marks effects as undone by a rollback. `undone` is what [`taken_back`] found in the same transaction.
pub fn mark(tx: &Transaction<'_>, undone: &[Compensation], rollback: &RollbackId) -> Result<()> {
    let sql = "UPDATE compensations SET rolled_back_by = $1 WHERE id = $2 AND rolled_back_by IS NULL";
    undone.iter().try_for_each(|one| tx.execute_one(sql, &[&rollback.as_str(), &one.id.as_str()]))
}

/// Takes the marks of a rollback off again. No effect is made again: it stays done.
pub fn unmark(tx: &Transaction<'_>, rollback: &RollbackId) -> Result<usize> {
    let sql = "UPDATE compensations SET rolled_back_by = NULL WHERE rolled_back_by = $1";
    tx.execute(sql, &[&rollback.as_str()])
}
