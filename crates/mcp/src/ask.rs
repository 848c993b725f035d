//! Asking the person at the client whether a plan is to be carried out, where the client can ask.
//!
//! Older clients are sent a request; the newer era knows no requests to a client, and is answered that input is required: it calls again with
//! the person's answer. What the call carries back is the hash of the plan, and no other plan is carried out; and when the person was asked,
//! which decides no more than what the model is told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest,
    InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::Value;

/// A person may look for so long.
const PATIENCE: Duration = Duration::from_mins(10);

/// No person reads a plan and answers sooner: what comes sooner a client without one says by itself.
const AT_ONCE: Duration = Duration::from_secs(1);

/// So much of a plan is shown: more is no question.
const LONGEST: usize = 4000;

/// What the request is called in an answer that wants input, and the one field of its form.
const APPROVE: &str = "approve";

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

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The person approved.
    Yes,
    /// The person did not.
    No,
    /// The client declined at once.
    Declined,
    /// No person decided: at once it was cancelled, or an empty form was accepted.
    Nobody,
}

/// Asks by a request.
pub(crate) async fn request(context: &RequestContext<RoleServer>, plan: &str) -> Decision {
    let asked = ServerRequest::ElicitRequest(question(plan));
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let began = Instant::now();
    let answer = match context.peer.send_request_with_option(asked, options).await {
        Ok(handle) => handle.await_response().await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(ClientResult::ElicitResult(result)) => serde_json::to_value(result).unwrap_or_default(),
        _ => Value::Null,
    };
    decision(&answer, began.elapsed() < AT_ONCE)
}

/// The answer that wants the person's. What comes back with it is the plan's hash, and when it was asked: `age` is how long the server runs.
pub(crate) fn input_required(plan: &str, hash: &str, age: Duration) -> InputRequiredResult {
    let requests = BTreeMap::from([(APPROVE.to_owned(), InputRequest::Elicitation(question(plan)))]);
    InputRequiredResult::new(Some(requests), Some(format!("{hash}@{}", age.as_millis())))
}

/// The hash of the plan that a person was to be shown, and what came of it; `None`: nobody was asked.
pub(crate) fn answered(request: &CallToolRequestParams, age: Duration) -> Option<(&str, Decision)> {
    let state = request.request_state.as_deref()?;
    // What is not known to have come at once is a person's.
    let (hash, asked) = state.split_once('@').unwrap_or((state, ""));
    let asked = asked.parse().ok().map(Duration::from_millis);
    let is_at_once = asked.and_then(|asked| age.checked_sub(asked)).is_some_and(|took| took < AT_ONCE);
    let answer = request.input_responses.as_ref().and_then(|answers| answers.get(APPROVE));
    Some((hash, decision(answer.unwrap_or(&Value::Null), is_at_once)))
}

fn question(plan: &str) -> ElicitRequest {
    let end = plan.floor_char_boundary(LONGEST);
    let cut = if end < plan.len() {
        "\n... (the plan is longer: ic log and ic undo --dry-run show it all)"
    } else {
        ""
    };
    // A client that accepts by itself what it is asked sends an empty form: that is nobody's yes.
    let schema = ElicitationSchema::builder().required_bool_property(APPROVE, |approve| {
        approve.title("Carry out this plan").description("Yes carries it out. Otherwise nothing changes.")
    });
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{}{cut}\n\nCarry out this plan?", plan[..end].trim_end()),
        requested_schema: schema.build_unchecked(),
    })
}

/// What an answer says. A yes is accepted, and the question is answered.
fn decision(answer: &Value, is_at_once: bool) -> Decision {
    match (answer["action"].as_str(), answer["content"][APPROVE].as_bool()) {
        (Some("accept"), Some(true)) => Decision::Yes,
        (Some("accept"), Some(false)) => Decision::No,
        _ if !is_at_once => Decision::No,
        (Some("decline"), _) => Decision::Declined,
        _ => Decision::Nobody,
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
            (
                json!({ "action": "decline", "content": { "approve": true } }),
                Decision::Declined,
                Decision::No,
            ),
            (json!({ "action": "decline" }), Decision::Declined, Decision::No),
            (json!({ "action": "accept" }), Decision::Nobody, Decision::No),
            (json!({ "action": "accept", "content": {} }), Decision::Nobody, Decision::No),
            (json!({ "action": "accept", "content": { "approve": "true" } }), Decision::Nobody, Decision::No),
            (json!({ "action": "cancel" }), Decision::Nobody, Decision::No),
            (json!(null), Decision::Nobody, Decision::No),
        ] {
            assert_eq!((decision(&answer, true), decision(&answer, false)), (at_once, later), "{answer}");
        }
    }
}
