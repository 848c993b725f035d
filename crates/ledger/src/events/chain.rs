//! The hash chain: what exactly is hashed.
//!
//! Canonical form, version 1: the line `ic-event-1`, the hash before, then every field in the order of the table.
//! A field is one byte (0: NULL, 1: present), its length as 8 bytes big-endian, and its bytes; numbers are 8 bytes
//! big-endian. Reason and payload stand as the SHA-256 of their text, so that a redacted text leaves the chain whole.

use sha2::{Digest, Sha256};

use crate::actor::Actor;
use crate::events::event::Event;
use crate::hash::Hash;

/// The hash that `event` must carry, given the one before it.
///
/// A redacted text counts with the hash that it left; `event.prev_hash` and `event.hash` are not read.
pub(crate) fn hash_of(event: &Event, before: &Hash) -> Hash {
    let mut form = Sha256::new();
    form.update(b"ic-event-1\n");
    form.update(before);
    number(&mut form, Some(event.seq));
    text(&mut form, event.run_id.as_ref().map(ic_base::RunId::as_str));
    text(&mut form, Some(&event.source));
    text(&mut form, Some(&event.event_type));
    text(&mut form, event.subject_id.as_deref());
    text(&mut form, event.from.as_deref());
    text(&mut form, event.to.as_deref());
    number(&mut form, event.epoch);
    text(&mut form, event.gate_result.as_deref());
    text(&mut form, event.gate_tier.as_deref());
    let reason = event.reason.as_deref().map(hash_of_text).or(event.reason_hash);
    field(&mut form, reason.as_ref().map(<[u8; 32]>::as_slice));
    let payload = event.payload.as_deref().map(hash_of_text).or(event.payload_hash);
    field(&mut form, payload.as_ref().map(<[u8; 32]>::as_slice));
    text(&mut form, event.actor.as_ref().map(Actor::to_text).as_deref());
    number(&mut form, Some(event.created_at.millis()));
    form.finalize().into()
}

/// The digest that stands for a text in the chain.
pub(crate) fn hash_of_text(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

fn text(form: &mut Sha256, value: Option<&str>) {
    field(form, value.map(str::as_bytes));
}

fn number(form: &mut Sha256, value: Option<i64>) {
    field(form, value.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
}

fn field(form: &mut Sha256, value: Option<&[u8]>) {
    match value {
        None => form.update([0]),
        Some(bytes) => {
            form.update([1]);
            // With its length, so that no byte can move from one field to the next under the same hash.
            form.update((bytes.len() as u64).to_be_bytes());
            form.update(bytes);
        }
    }
}
