//! Removes a secret from what is known about an undo.

use ic_base::{CompensationId, Result, RunId, Seq};
use ic_ledger::Transaction;

/// Takes description, command and error out of the compensation that event `seq` of a run registered, if it did one.
pub fn redact(tx: &Transaction<'_>, run: &RunId, seq: Seq) -> Result<()> {
    tx.execute(
        "UPDATE compensations SET description = NULL, last_error = NULL, outputs = NULL, kind = 'skip', \
         args = '{\"do\":\"skip\",\"reason\":\"[redacted]\"}' WHERE run_id = $1 AND seq = $2",
        &[&run.as_str(), &seq],
    )
    .map(|_| ())
}

/// Removes the reason why the last attempt of a compensation failed: an event that repeats it was redacted.
pub fn redact_error(tx: &Transaction<'_>, id: &CompensationId) -> Result<()> {
    tx.execute("UPDATE compensations SET last_error = NULL WHERE id = $1", &[&id.as_str()]).map(|_| ())
}
