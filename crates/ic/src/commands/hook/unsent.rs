//! What cannot be recorded in time on a server: how long it is waited for, and what is kept of it.

use std::time::Duration;

use ic_base::{Code, Diagnosis, title};
use ic_store::{Patience, Place};

use super::Event;
use super::payload::Payload;
use crate::environment::Environment;
use crate::hook_spool::{self, Unsent};

/// How long a server is waited for: an agent, and the person before it, wait with us. One that does not answer is left before they notice;
/// one that does may be far away, and what it does not record is not in the ledger.
const PATIENCE: Patience = Patience { silence: Duration::from_millis(300), all: Duration::from_secs(2) };

/// The patience of a hook; tests that are about other things have more, where all is slow.
pub(super) fn patience() -> Option<Patience> {
    Environment::has_little_patience().then_some(PATIENCE)
}

/// Keeps an event that could not be recorded on a server. A payload that says nothing to us is no loss.
pub(super) fn keep(place: &Place, event: &Event, (name, payload): (&str, &Payload<'_>), error: &Diagnosis) {
    if place.server.is_none() || error.code() == Code::InvalidValue {
        return;
    }
    let named = |text: Option<&str>| text.map(title);
    let unsent = Unsent {
        at: Environment::context().now().millis(),
        client: event.client.as_str().to_owned(),
        event: title(name),
        session: named(payload.text("session_id")),
        prompt: named(payload.own_id().as_deref()),
        title: named(payload.prompt()),
        tool: named(payload.text("tool_name")),
        call: named(payload.text("tool_use_id")),
        code: error.code().as_str().to_owned(),
    };
    hook_spool::keep(&place.store, &unsent);
}
