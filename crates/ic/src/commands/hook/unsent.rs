//! What cannot be recorded in time on a server: how long it is waited for, what is kept of it, and how it is recorded later.

use std::path::Path;
use std::time::Duration;

use ic_base::title;
use ic_ops::hooks::Teller;
use ic_store::{Patience, Place};
use serde_json::json;

use super::payload::{Payload, is_id};
use super::{Event, Hook, PATIENCE_TO_WRITE};
use crate::clients::Client;
use crate::commands::prelude::*;
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
        root: Some(place.root.clone()),
        session: named(payload.text("session_id")),
        prompt: named(payload.own_id().as_deref()),
        title: named(payload.prompt()),
        tool: named(payload.text("tool_name")),
        call: named(payload.text("tool_use_id")),
        code: error.code().as_str().to_owned(),
    };
    hook_spool::keep(&place.store, &unsent);
}

/// Records what waits, in its order, before the event of this call: with no look at the tree, which is another one by now. Returns how many
/// events it recorded.
///
/// Errors: those of a server that does not answer; what is left waits on, and this call's own event has to wait behind it.
pub(super) fn replay(session: &mut Session, place: &Place, directory: &Path) -> Result<usize> {
    if place.server.is_none() {
        return Ok(0);
    }
    let Some(mut taken) = hook_spool::take(&place.store) else { return Ok(0) };
    let mut count = 0;
    while let Some(unsent) = taken.oldest() {
        let replayed = replay_one(session, &unsent, directory);
        session.for_hook(directory.to_owned(), PATIENCE_TO_WRITE, patience());
        match replayed {
            Err(error) if error.kind() == ic_base::Kind::Failure => return Err(error),
            // What the ledger refuses now it would have refused then.
            Err(_) | Ok(()) => taken.is_recorded(),
        }
        count += 1;
    }
    if count > 0 || taken.is_begun() {
        taken.end();
    }
    Ok(count)
}

fn replay_one(session: &mut Session, unsent: &Unsent, directory: &Path) -> Result<()> {
    let unknown = || Diagnosis::new(Code::InvalidValue, "The event is not known.");
    let client = Client::parse(&unsent.client).ok_or_else(unknown)?;
    let occasion = client.occasion(&unsent.event).ok_or_else(unknown)?;
    let id = unsent.session.as_deref().filter(|id| is_id(id)).ok_or_else(unknown)?;
    let root = unsent.root.as_deref().filter(|root| root.is_dir()).unwrap_or(directory);
    session.for_hook(root.to_owned(), PATIENCE_TO_WRITE, patience());
    let payload = json!({
        "session_id": id, "cwd": root, "prompt_id": unsent.prompt, "prompt": unsent.title,
        "tool_name": unsent.tool, "tool_use_id": unsent.call,
    });
    let hook = Hook { client: unsent.client.clone(), event: unsent.event.clone(), is_late: true };
    let teller = Teller { client: client.as_str(), client_id: id };
    hook.record(session, teller, client, occasion, &Payload(&payload)).map(drop)
}
