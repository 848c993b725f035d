//! From before which prompts clients can continue a conversation.

use ic_base::{Code, Diagnosis, Result};
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::Snapshot;

use crate::clients::Client;
use crate::prompt::{self, Prompt};
use crate::table::{self, AgentSession};

/// A prompt, from before which its client can continue the conversation.
#[derive(Debug, Clone)]
pub struct ConversationPoint {
    /// The session in which it was given.
    pub session: AgentSession,
    /// The prompt, from which on the copy knows nothing.
    pub prompt: Prompt,
    /// The client of the session.
    pub client: &'static Client,
}

/// The prompt that work is, or that began it; `None` if it is of no prompt, or of a client that cannot continue a conversation.
pub fn find(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<ConversationPoint>> {
    // The search goes up from the work: a subagent has no conversation that could be continued, but its prompt has.
    for one in dispatch::with_parents(snapshot, work)? {
        let Some(prompt) = prompt::of_dispatch(snapshot, &one.id)? else { continue };
        let session = table::get(snapshot, &prompt.session_id)?;
        let client = Client::parse(&session.client).filter(|client| client.conversations.is_some());
        return Ok(client.map(|client| ConversationPoint { session, prompt, client }));
    }
    Ok(None)
}

/// As [`find`]. Errors: `no_conversation` where there is none.
pub fn of_work(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<ConversationPoint> {
    find(snapshot, work)?.ok_or_else(|| {
        let message = format!("The work {} is of no prompt of a coding agent.", work.id.short());
        Diagnosis::new(Code::NoConversation, message).hint("name a prompt of a coding agent: ic log")
    })
}

/// The first prompt of each session among this work, where no later prompt of its session stands.
pub fn first_of(snapshot: &Snapshot<'_>, works: &[&Dispatch]) -> Result<Vec<ConversationPoint>> {
    let mut first: Vec<ConversationPoint> = Vec::new();
    for work in works {
        // The prompt of a subagent that was undone by itself stands.
        let Some(point) = find(snapshot, work)?.filter(|point| point.prompt.dispatch_id == work.id) else { continue };
        let newest = prompt::latest(snapshot, &point.session.id)?;
        // From before a prompt in the middle, the agent would forget later ones whose files stay.
        let is_last = newest.is_some_and(|newest| works.iter().any(|one| one.id == newest.dispatch_id));
        // The works may come in any order; the earliest prompt of each session is kept.
        match first.iter_mut().find(|known| known.session.id == point.session.id) {
            Some(known) if point.prompt.seq < known.prompt.seq => *known = point,
            None if is_last => first.push(point),
            Some(_) | None => {}
        }
    }
    Ok(first)
}
