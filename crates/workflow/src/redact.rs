//! Removes a secret from what is known about a step.

use ic_base::Result;
use ic_ledger::Transaction;
use ic_ledger::events::Event;

/// Removes the reason of a step's failure from its row and its workflow's, if a redacted event named the step's dispatch. The log is a file
/// beside the ledger, and stays.
pub fn redact(tx: &Transaction<'_>, event: &Event) -> Result<()> {
    let (Some(dispatch), Some(run), "dispatch") = (&event.subject_id, &event.run_id, event.source.as_str()) else {
        return Ok(());
    };
    tx.execute(
        "UPDATE workflows SET error = NULL WHERE run_id = $1 AND failed_step IN \
         (SELECT step FROM workflow_steps WHERE run_id = $1 AND dispatch_id = $2)",
        &[&run.as_str(), dispatch],
    )?;
    tx.execute(
        "UPDATE workflow_steps SET error = NULL WHERE run_id = $1 AND dispatch_id = $2",
        &[&run.as_str(), dispatch],
    )
    .map(|_| ())
}
