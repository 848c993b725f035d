//! A session that works in several places. In each but the first it has a row of its own, with its own run and its own prompts, so that its
//! work there is captured and undone there. The client's name in such a row contains the place; no client's own name has a space.

use std::path::Path;

use ic_base::Result;
use ic_ledger::Snapshot;

use crate::prompt::{self, Prompt};
use crate::table::{self, AgentSession};

/// The text between the client's own name of a session and the place.
const IN: &str = " in ";

/// The beginning of the name in other places of a prompt without a name.
const OF: &str = "of ";

/// The name of a client's session in another place than the one that it began in.
pub fn name_in(client_id: &str, place: &Path) -> String {
    // One session of Claude Code that also worked in /feat, with a prompt of its own name `p-1`:
    //
    //   client_id      project_dir   prompt_id
    //   5f2c           /shop         p-1, or NULL where the client names no prompts
    //   5f2c in /feat  /feat         p-1, or `of DISPATCH`: the work of that prompt in /shop
    format!("{client_id}{IN}{}", place.to_string_lossy())
}

/// The client's own name of a session, wherever that is.
pub fn own_name(client_id: &str) -> &str {
    // The first separator counts: a place may contain it, and no client's own name does.
    client_id.split_once(IN).map_or(client_id, |(own, _)| own)
}

/// The key that tells a prompt from all others of its session, in each of its places.
pub fn key_of(prompt: &Prompt) -> String {
    prompt.prompt_id.clone().unwrap_or_else(|| format!("{OF}{}", prompt.dispatch_id))
}

/// The session of a client as it works in a place: the row of that place, else that of the place where it began.
pub fn at(snapshot: &Snapshot<'_>, client: &str, client_id: &str, place: &Path) -> Result<Option<AgentSession>> {
    match table::by_client(snapshot, client, &name_in(client_id, place))? {
        Some(there) => Ok(Some(there)),
        // It has not worked there yet.
        None => table::by_client(snapshot, client, client_id),
    }
}

/// As [`table::resolve`]. Named by its client's own name, it is the session as it works in this place; an id names one row.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str, place: &Path) -> Result<AgentSession> {
    let found = table::resolve(snapshot, text)?;
    if !found.client_id.starts_with(text) {
        return Ok(found);
    }
    Ok(at(snapshot, &found.client, own_name(&found.client_id), place)?.unwrap_or(found))
}

/// The rows of a client's session in other places than the one that it began in.
pub fn elsewhere(snapshot: &Snapshot<'_>, client: &str, client_id: &str) -> Result<Vec<AgentSession>> {
    table::named_from(snapshot, client, &format!("{client_id}{IN}"))
}

/// The same prompt in the other places in which its session works.
pub fn twins(snapshot: &Snapshot<'_>, prompt: &Prompt) -> Result<Vec<(AgentSession, Prompt)>> {
    let own = table::get(snapshot, &prompt.session_id)?;
    let (client, name, key) = (&own.client, own_name(&own.client_id), key_of(prompt));
    let mut found = Vec::new();
    let all = table::by_client(snapshot, client, name)?.into_iter().chain(elsewhere(snapshot, client, name)?);
    for session in all.filter(|session| session.id != own.id) {
        // In the place where it began, a prompt without a name has no `prompt_id`. In the others its key is the name.
        let twin = match prompt::by_prompt_id(snapshot, &session.id, &key)? {
            None => unnamed(snapshot, &session, &key)?,
            twin => twin,
        };
        found.extend(twin.map(|twin| (session, twin)));
    }
    Ok(found)
}

/// The prompt without a name that has this key.
fn unnamed(snapshot: &Snapshot<'_>, session: &AgentSession, key: &str) -> Result<Option<Prompt>> {
    let Some(dispatch) = key.strip_prefix(OF) else { return Ok(None) };
    let found = prompt::of_dispatch(snapshot, &ic_base::DispatchId::from_ledger(dispatch.to_owned()))?;
    // The key is the same in all places, and the work is of one of them.
    Ok(found.filter(|found| found.session_id == session.id))
}
