//! Events that could not be recorded in time, on a server or in a ledger that others write: how long a hook waits, what it keeps, and how the
//! next one records it.

use std::path::Path;
use std::time::Duration;

use ic_base::title;
use ic_ledger::{LedgerLocation, Patience};
use ic_ops::hooks::Teller;
use ic_session::clients::Client;
use serde_json::json;

use super::payload::{Payload, is_id};
use super::{Event, Hook, PATIENCE_TO_WRITE};
use crate::commands::prelude::*;
use crate::environment::CliEnvironment;
use crate::hook_spool::{self, Unsent};

/// How long a hook waits for a server, while an agent and its person wait for the hook. Without any answer it stops before they notice. A
/// server that answers may be far away, and gets longer, because what it does not record is not in the ledger.
const PATIENCE: Patience = Patience { silence: Duration::from_millis(300), all: Duration::from_secs(2) };

/// The patience of a hook; `None` in tests of other things, which wait as long as it takes.
pub(super) fn patience() -> Option<Patience> {
    CliEnvironment::has_little_patience().then_some(PATIENCE)
}

/// Keeps an event that could not be recorded: on a server, or because others wrote the ledger for too long. An event that the ledger would
/// refuse anyway is dropped.
pub(super) fn keep(place: &LedgerLocation, event: &Event, (name, payload): (&str, &Payload<'_>), error: &Diagnosis) {
    // `invalid_value` is the payload itself, which fails each time. For a ledger in a file only `busy` passes by
    // itself; a server may fail in other ways and recover.
    let may_succeed_later = error.code() == Code::Busy || place.server.is_some() && error.code() != Code::InvalidValue;
    if !may_succeed_later {
        return;
    }
    // The texts are masked and cut: the file is outside of the ledger, so no redaction reaches it.
    let named = |text: Option<&str>| text.map(title);
    let unsent = Unsent {
        at: CliEnvironment::context().now().millis(),
        client: event.client.name.to_owned(),
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

/// Records the waiting events in their order, before this call's own. The tree is not captured: it has changed since they came. Returns how
/// many were recorded.
///
/// Errors: those of a server that does not answer, or of a ledger that others write; `busy` while another hook records them. The rest keeps
/// waiting, and this call's own event has to wait behind it.
pub(super) fn replay(session: &mut CliSession, place: &LedgerLocation, directory: &Path) -> Result<usize> {
    let Some(mut taken) = hook_spool::take(&place.store)? else { return Ok(0) };
    let mut count = 0;
    while let Some(unsent) = taken.oldest() {
        // Recording changes the session's directory to that of the event, and it is set back afterwards.
        let replayed = replay_one(session, &unsent, directory);
        session.for_hook(directory.to_owned(), PATIENCE_TO_WRITE, patience());
        match replayed {
            // The order of events matters, so none may overtake one that waits.
            Err(error) if error.kind() == ic_base::ErrorKind::Failure => return Err(error),
            // The ledger would have refused it then, too, so it does not keep the others waiting.
            Err(_) | Ok(()) => taken.is_recorded(),
        }
        count += 1;
    }
    if count > 0 || taken.is_begun() {
        taken.end();
    }
    Ok(count)
}

fn replay_one(session: &mut CliSession, unsent: &Unsent, directory: &Path) -> Result<()> {
    let unknown = || Diagnosis::new(Code::InvalidValue, "The event is not known.");
    let client = Client::parse(&unsent.client).ok_or_else(unknown)?;
    let occasion = client.occasion(&unsent.event).ok_or_else(unknown)?;
    let id = unsent.session.as_deref().filter(|id| is_id(id)).ok_or_else(unknown)?;
    // The work tree may have been removed since; the event is still recorded, from here.
    let root = unsent.root.as_deref().filter(|root| root.is_dir()).unwrap_or(directory);
    session.for_hook(root.to_owned(), PATIENCE_TO_WRITE, patience());
    let payload = json!({
        "session_id": id, "cwd": root, "prompt_id": unsent.prompt, "prompt": unsent.title,
        "tool_name": unsent.tool, "tool_use_id": unsent.call,
    });
    let hook = Hook { client: unsent.client.clone(), event: unsent.event.clone(), is_late: true };
    let teller = Teller { client: client.name, client_id: id };
    hook.record(session, teller, client, occasion, &Payload(&payload)).map(drop)
}
