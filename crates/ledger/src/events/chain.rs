//! The hash chain: what exactly is hashed.
//!
//! Canonical form, version 1: the line `ic-event-1`, the hash before, then every field in the order of the table.
//! A field is one byte (0: NULL, 1: present), its length as 8 bytes big-endian, and its bytes; numbers are 8 bytes
//! big-endian. Reason and payload stand as the SHA-256 of their text, so that a redacted text leaves the chain whole.

use sha2::{Digest, Sha256};

use crate::actor::Actor;
use crate::events::event::Event;

/// A SHA-256 digest: of an event and all before it, or of one text.
pub type Hash = [u8; 32];

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

/// A hash in lower-case hex.
pub fn hex(hash: &Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Every event of a list has one: digits are written as bytes, which are all of ASCII.
    let mut out = vec![0; 64];
    for (pair, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(hash) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    String::from_utf8(out).unwrap_or_default()
}

/// A hash from 64 hex digits; `None` if it is anything else.
pub fn parse_hex(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    // Checked first: `from_str_radix` accepts a `+` as well, and a slice must not cut a character.
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(hash)
}
