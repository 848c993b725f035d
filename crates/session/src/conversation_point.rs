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

/// The prompt that work is, or that began it. Errors: `no_conversation` if it is of no prompt, or of a client that cannot.
pub fn of_work(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<ConversationPoint> {
    let mut next = Some(work.clone());
    while let Some(one) = next {
        if let Some(prompt) = prompt::of_dispatch(snapshot, &one.id)? {
            let session = table::get(snapshot, &prompt.session_id)?;
            return match Client::parse(&session.client).filter(|client| client.conversations.is_some()) {
                Some(client) => Ok(ConversationPoint { session, prompt, client }),
                None => Err(no_conversation(work, &format!("is of {}, which has no conversation", session.client))),
            };
        }
        next = one.work.parent_id.map(|parent| dispatch::get(snapshot, &parent)).transpose()?;
    }
    Err(no_conversation(work, "is of no prompt"))
}

/// The first prompt of each session among this work, where no later prompt of its session stands.
pub fn first_of(snapshot: &Snapshot<'_>, works: &[&Dispatch]) -> Result<Vec<ConversationPoint>> {
    let mut first: Vec<ConversationPoint> = Vec::new();
    for work in works {
        let Some(prompt) = prompt::of_dispatch(snapshot, &work.id)? else { continue };
        let Ok(point) = of_work(snapshot, work) else { continue };
        let newest = prompt::latest(snapshot, &prompt.session_id)?;
        // From before a prompt in the middle, the agent would forget later ones whose files stay.
        let is_last = newest.is_some_and(|newest| works.iter().any(|one| one.id == newest.dispatch_id));
        match first.iter_mut().find(|known| known.session.id == point.session.id) {
            Some(known) if point.prompt.seq < known.prompt.seq => *known = point,
            None if is_last => first.push(point),
            Some(_) | None => {}
        }
    }
    Ok(first)
}

fn no_conversation(work: &Dispatch, why: &str) -> Diagnosis {
    Diagnosis::new(Code::NoConversation, format!("The work {} {why}.", work.id.short()))
        .hint("name a prompt of a coding agent: ic log")
}
