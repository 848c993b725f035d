//! Asking the person at the client whether a plan is to be carried out, where the client can ask.
//!
//! A client of an older protocol is sent a request. Newer protocols have no requests to a client: the answer says that input is required,
//! and the client calls again with the person's answer. That call carries the hash of the plan, and no other plan is carried out. It also
//! carries the time of the question, which decides only what the model is told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest,
    InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::Value;

/// How long a person may take to answer.
const PATIENCE: Duration = Duration::from_mins(10);

/// No person reads a plan and answers sooner than this: a client that runs without one answers by itself.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The most bytes of a plan that are shown: a person does not read more than this in a dialog.
const LONGEST: usize = 4000;

/// What the request is called in an answer that wants input, and the one field of its form.
const APPROVE: &str = "approve";

/// How the person at this client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskingWay {
    /// The server sends the client a request, and waits for its answer.
    Request,
    /// The call is answered with a question; the client makes it again with the person's answer.
    Answer,
}

/// How the person at this client can be asked; `None`: not at all.
pub(crate) fn way(context: &RequestContext<RoleServer>) -> Option<AskingWay> {
    let asked = context.client_capabilities()?.elicitation?;
    // A client that names `url` alone can open a page for its person, and shows no form. One that names nothing shows forms.
    if asked.url.is_some() && asked.form.is_none() {
        return None;
    }
    // From this version on, the protocol has no requests from a server to its client.
    let is_new = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    Some(if is_new { AskingWay::Answer } else { AskingWay::Request })
}

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The person accepted, and answered the question with yes.
    Yes,
    /// The person declined, answered no, or took longer than [`PATIENCE`].
    No,
    /// The client declined at once, so perhaps without asking a person.
    Declined,
    /// No person decided: at once it was cancelled, or an empty form was accepted.
    Undecided,
}

/// Sends the question as a request, and waits up to [`PATIENCE`] for the answer.
pub(crate) async fn request(context: &RequestContext<RoleServer>, plan: &str) -> Decision {
    let asked = ServerRequest::ElicitRequest(question(plan));
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let began = Instant::now();
    let answer = match context.peer.send_request_with_option(asked, options).await {
        Ok(handle) => handle.await_response().await,
        Err(error) => Err(error),
    };
    // A client that cannot answer, or breaks off, has approved nothing.
    let answer = match answer {
        Ok(ClientResult::ElicitResult(result)) => serde_json::to_value(result).unwrap_or_default(),
        _ => Value::Null,
    };
    decision(&answer, began.elapsed() < AT_ONCE)
}

/// The answer that asks for input. The client sends its state back: the plan's hash and when it was asked. `age`: how long the server runs.
pub(crate) fn input_required(plan: &str, hash: &str, age: Duration) -> InputRequiredResult {
    let requests = BTreeMap::from([(APPROVE.to_owned(), InputRequest::Elicitation(question(plan)))]);
    // This is the age of the server and not the time of day: a clock that is set does not change how long an answer took.
    InputRequiredResult::new(Some(requests), Some(format!("{hash}@{}", age.as_millis())))
}

/// The hash of the plan that a person was asked about, and the decision; `None` if this call answers no question.
pub(crate) fn answered(request: &CallToolRequestParams, age: Duration) -> Option<(&str, Decision)> {
    let state = request.request_state.as_deref()?;
    // Without a time, the answer counts as a person's: taking a person's no for a client's would be the worse mistake.
    let (hash, asked) = state.split_once('@').unwrap_or((state, ""));
    let asked = asked.parse().ok().map(Duration::from_millis);
    let is_at_once = asked.and_then(|asked| age.checked_sub(asked)).is_some_and(|took| took < AT_ONCE);
    let answer = request.input_responses.as_ref().and_then(|answers| answers.get(APPROVE));
    Some((hash, decision(answer.unwrap_or(&Value::Null), is_at_once)))
}

fn question(plan: &str) -> ElicitRequest {
    // Cut at a character, because the plan names files in any language.
    let end = plan.floor_char_boundary(LONGEST);
    let cut =
        if end < plan.len() { "\n... (the plan is longer: ic log and ic undo --dry-run show it all)" } else { "" };
    // The field is required, because a client that accepts everything by itself sends an empty form, which no person approved.
    let schema = ElicitationSchema::builder().required_bool_property(APPROVE, |approve| {
        approve.title("Carry out this plan").description("Yes carries it out. Otherwise nothing changes.")
    });
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{}{cut}\n\nCarry out this plan?", plan[..end].trim_end()),
        requested_schema: schema.build_unchecked(),
    })
}

/// The decision that an answer holds. Only a form that is accepted and has `approve: true` in it is a yes.
fn decision(answer: &Value, is_at_once: bool) -> Decision {
    match (answer["action"].as_str(), answer["content"][APPROVE].as_bool()) {
        (Some("accept"), Some(true)) => Decision::Yes,
        (Some("accept"), Some(false)) => Decision::No,
        // Only a person takes longer than a moment, and only a clear yes from a person is a yes.
        _ if !is_at_once => Decision::No,
        (Some("decline"), _) => Decision::Declined,
        _ => Decision::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_answered_question_is_a_yes() {
        for (answer, at_once, later) in [
            (json!({ "action": "accept", "content": { "approve": true } }), Decision::Yes, Decision::Yes),
            (json!({ "action": "accept", "content": { "approve": false } }), Decision::No, Decision::No),
            (json!({ "action": "decline", "content": { "approve": true } }), Decision::Declined, Decision::No),
            (json!({ "action": "decline" }), Decision::Declined, Decision::No),
            (json!({ "action": "accept" }), Decision::Undecided, Decision::No),
            (json!({ "action": "accept", "content": {} }), Decision::Undecided, Decision::No),
            (json!({ "action": "accept", "content": { "approve": "true" } }), Decision::Undecided, Decision::No),
            (json!({ "action": "cancel" }), Decision::Undecided, Decision::No),
            (json!(null), Decision::Undecided, Decision::No),
        ] {
            assert_eq!((decision(&answer, true), decision(&answer, false)), (at_once, later), "{answer}");
        }
    }
}
