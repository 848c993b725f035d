//! Taking a secret out of the record, visibly, without breaking the chain.

use crate::Transaction;
use ic_base::{Code, Diagnosis, Result, Seq, Timestamp};

use crate::events::append::NewEvent;
use crate::events::chain::hash_of_text;
use crate::events::event::EventType;
use crate::events::{append, list};

/// Takes reason and payload out of event `seq`, leaves their hashes in the chain, and records that it was done.
///
/// Returns the seq of the redaction's own event. Errors: `event_not_found`; `nothing_to_redact` if nothing is left to redact.
pub fn redact(tx: &Transaction<'_>, now: Timestamp, seq: Seq, reason: &str) -> Result<Seq> {
    let event = list::get(tx, seq)?;
    if event.reason.is_none() && event.payload.is_none() {
        return Err(Diagnosis::new(
            Code::NothingToRedact,
            format!("Event {seq} has neither reason nor payload to redact."),
        ));
    }
    // An event that was redacted in part before keeps the hash that its first redaction left.
    let reason_hash = event.reason.as_deref().map(hash_of_text).or(event.reason_hash);
    let payload_hash = event.payload.as_deref().map(hash_of_text).or(event.payload_hash);
    // The event's own hash stays valid: the chain covers the hash of a text, and not the text itself.
    tx.execute_one(
        "UPDATE events SET reason = NULL, payload = NULL, reason_hash = $1, payload_hash = $2 WHERE seq = $3",
        &[&reason_hash, &payload_hash, &seq],
    )?;
    append(
        tx,
        now,
        &NewEvent {
            run_id: event.run_id.as_ref(),
            epoch: event.epoch,
            event_type: EventType::Redacted,
            subject_id: Some(&seq.to_string()),
            from: None,
            to: None,
            gate_result: None,
            gate_tier: None,
            reason: Some(reason),
            payload: None,
        },
    )
}
