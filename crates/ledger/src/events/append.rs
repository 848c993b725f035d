//! The only code that adds to the order of events.

use crate::Transaction;
use ic_base::mask::mask;
use ic_base::{Result, RunId, Seq, Timestamp};
use serde_json::Value;

use crate::actor::Actor;
use crate::events::chain::hash_of;
use crate::events::event::{Event, EventType};
use crate::events::list;

/// An event to be recorded. The source follows from the type.
#[derive(Debug, Clone)]
pub struct NewEvent<'a> {
    /// The run it belongs to.
    pub run_id: Option<&'a RunId>,
    /// What happened; it also decides the source of the event.
    pub event_type: EventType,
    /// The id of the thing it is about, where that is not the run.
    pub subject_id: Option<&'a str>,
    /// The phase or status before.
    pub from: Option<&'a str>,
    /// The phase or status after.
    pub to: Option<&'a str>,
    /// The epoch of the run at the event; `None` for an event outside of runs.
    pub epoch: Option<i64>,
    /// `pass`, `fail` or `none`.
    pub gate_result: Option<&'a str>,
    /// `hard`, `soft` or `none`.
    pub gate_tier: Option<&'a str>,
    /// Why, in the words of who asked for it; tokens in it are masked when it is recorded.
    pub reason: Option<&'a str>,
    /// Facts, as a JSON object, recorded unchanged: secrets in them are not masked.
    pub payload: Option<Value>,
}

impl<'a> NewEvent<'a> {
    /// An event of this type in a run, at the run's epoch; the rest is empty.
    pub fn of(run_id: &'a RunId, epoch: i64, event_type: EventType) -> Self {
        Self { run_id: Some(run_id), epoch: Some(epoch), ..Self::without_run(event_type) }
    }

    /// An event of this type that belongs to no run.
    pub fn without_run(event_type: EventType) -> Self {
        Self {
            run_id: None,
            epoch: None,
            event_type,
            subject_id: None,
            from: None,
            to: None,
            gate_result: None,
            gate_tier: None,
            reason: None,
            payload: None,
        }
    }
}

/// Records an event and returns its seq: one more than the last, in the caller's transaction.
pub fn append(tx: &Transaction<'_>, now: Timestamp, new: &NewEvent<'_>) -> Result<Seq> {
    // From the head row, not from the newest event: if the newest is removed, the gap shows.
    // The transaction remembers the head after its first event: a second one needs no query.
    let (last, before) = match tx.head() {
        Some(head) => head,
        None => list::head(tx)?,
    };
    let mut event = Event {
        seq: last + 1,
        run_id: new.run_id.cloned(),
        source: new.event_type.source().as_str().to_owned(),
        event_type: new.event_type.as_str().to_owned(),
        subject_id: new.subject_id.map(str::to_owned),
        from: new.from.map(str::to_owned),
        to: new.to.map(str::to_owned),
        epoch: new.epoch,
        gate_result: new.gate_result.map(str::to_owned),
        gate_tier: new.gate_tier.map(str::to_owned),
        reason: new.reason.map(|reason| mask(reason).into_owned()),
        payload: new.payload.as_ref().map(Value::to_string),
        actor: tx.actor(),
        created_at: now,
        prev_hash: before,
        hash: before,
        reason_hash: None,
        payload_hash: None,
    };
    // After the masking: the chain must hold over the text that is stored.
    event.hash = hash_of(&event, &before);
    insert(tx, &event)?;
    // After the event: a trigger refuses an event whose number is not one more than that of the head.
    tx.execute_one("UPDATE event_head SET seq = $1, hash = $2 WHERE one = 1", &[&event.seq, &event.hash])?;
    tx.appended((event.seq, event.hash));
    Ok(event.seq)
}

fn insert(tx: &Transaction<'_>, event: &Event) -> Result<()> {
    tx.execute_one(
        "INSERT INTO events (seq, run_id, source, type, subject_id, from_state, to_state, epoch, \
         gate_result, gate_tier, reason, payload, actor, created_at, prev_hash, hash) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        &[
            &event.seq,
            &event.run_id.as_ref().map(RunId::as_str),
            &event.source,
            &event.event_type,
            &event.subject_id,
            &event.from,
            &event.to,
            &event.epoch,
            &event.gate_result,
            &event.gate_tier,
            &event.reason,
            &event.payload,
            &event.actor.as_ref().map(Actor::to_text),
            &event.created_at.millis(),
            &event.prev_hash,
            &event.hash,
        ],
    )
}
