//! Taking a secret out of an event, and out of the rows that repeat it.

use ic_base::{DispatchId, Result, Seq};
use ic_dispatch::dispatch;
use ic_phase::{run, skip};

use crate::{Kernel, rollback};

/// Takes reason and payload out of event `seq` and out of the row that it recorded; returns the redaction's seq.
///
/// The freed space in the file is wiped. Errors: `event_not_found`, `conflict`, `stale_dispatch`.
pub fn redact(kernel: &Kernel, seq: Seq, reason: &str) -> Result<Seq> {
    let now = kernel.context.now();
    kernel.ledger.write_and_wipe(|tx| {
        kernel.calling_dispatch(tx)?;
        let event = ic_events::get(tx, seq)?;
        let redaction = ic_events::redact(tx, now, seq, reason)?;
        run::redact(tx, seq)?;
        skip::redact(tx, seq)?;
        if let Some(run_id) = &event.run_id {
            rollback::redact(tx, run_id, seq)?;
        }
        if let (Some(id), "dispatch") = (event.subject_id, event.source.as_str()) {
            dispatch::redact(tx, &DispatchId::from_ledger(id))?;
        }
        Ok(redaction)
    })
}
