//! Asking the person at the client whether a plan is to be carried out, where the client can ask.
//!
//! Older clients are sent a request; the newer era knows no requests to a client, and is answered that input is required: it calls again with
//! the person's answer. What the call carries back is the hash of the plan, and nothing is believed of it but that: no other plan is carried out.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};

/// A person may look for so long.
const PATIENCE: Duration = Duration::from_mins(10);

/// So much of a plan is shown: more is no question.
const LONGEST: usize = 4000;

/// What the request is called in an answer that wants input.
const QUESTION: &str = "approve";

/// How the person at this client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a request.
    Request,
    /// By an answer that wants input.
    Answer,
}

/// How the person at this client can be asked; `None`: not at all.
pub(crate) fn way(context: &RequestContext<RoleServer>) -> Option<Way> {
    let asked = context.client_capabilities()?.elicitation?;
    // Only a page is offered by a client that names that alone.
    if asked.url.is_some() && asked.form.is_none() {
        return None;
    }
    let is_new = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    Some(if is_new { Way::Answer } else { Way::Request })
}

/// Asks by a request. A client that does not answer says no.
pub(crate) async fn request(context: &RequestContext<RoleServer>, plan: &str) -> bool {
    let asked = ServerRequest::ElicitRequest(question(plan));
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let Ok(handle) = context.peer.send_request_with_option(asked, options).await else { return false };
    match handle.await_response().await {
        Ok(ClientResult::ElicitResult(result)) => result.action == ElicitationAction::Accept,
        _ => false,
    }
}

/// The answer that wants the person's. `hash`: of the plan.
pub(crate) fn input_required(plan: &str, hash: &str) -> InputRequiredResult {
    let requests = BTreeMap::from([(QUESTION.to_owned(), InputRequest::Elicitation(question(plan)))]);
    InputRequiredResult::new(Some(requests), Some(hash.to_owned()))
}

/// The hash of the plan that a person was shown, and whether they accepted it; `None`: nobody was asked.
pub(crate) fn answered(request: &CallToolRequestParams) -> Option<(&str, bool)> {
    let hash = request.request_state.as_deref()?;
    let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
    Some((hash, answer.is_some_and(|answer| answer["action"] == "accept")))
}

fn question(plan: &str) -> ElicitRequest {
    let end = plan.floor_char_boundary(LONGEST);
    let cut = if end < plan.len() {
        "\n... (the plan is longer: ic log and ic undo --dry-run show it all)"
    } else {
        ""
    };
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{}{cut}\n\nCarry out this plan?", plan[..end].trim_end()),
        // Yes or no is all that is asked.
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    })
}
