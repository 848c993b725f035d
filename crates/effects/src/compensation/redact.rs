//! Removes a secret from what is known about an undo.

use ic_base::{CompensationId, Result};
use ic_ledger::Transaction;

/// Takes description, command and error out of a compensation: the event that registered it, or armed it again, was redacted.
pub fn redact(tx: &Transaction<'_>, id: &CompensationId) -> Result<()> {
    // The command may hold the secret, so the whole action goes: from now on nothing is run for this effect. Kind and
    // `args` are those of `EffectAction::Skip`, so that the row can still be read.
    tx.execute(
        "UPDATE compensations SET description = NULL, last_error = NULL, outputs = NULL, kind = 'skip', \
         args = '{\"do\":\"skip\",\"reason\":\"[redacted]\"}' WHERE id = $1",
        &[&id.as_str()],
    )
    .map(|_| ())
}

/// Removes the reason why the last attempt of a compensation failed: an event that repeats it was redacted.
pub fn redact_error(tx: &Transaction<'_>, id: &CompensationId) -> Result<()> {
    tx.execute("UPDATE compensations SET last_error = NULL WHERE id = $1", &[&id.as_str()]).map(|_| ())
}
