//! Sessions of coding agents.

use ic_dispatch::Dispatch;
use ic_session::{Call, Session};
use serde::Serialize;

use super::{CallJson, DispatchJson, exact};

/// A session of a coding agent (`session list`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionJson {
    id: String,
    short_id: String,
    /// The client: claude-code, codex or gemini.
    client: String,
    /// What the client calls it.
    client_session_id: String,
    run_id: String,
    /// Whether the run was made for it, and ends with it.
    owns_run: bool,
    project_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_dir_b64: Option<String>,
    /// The client's own record of it.
    transcript: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript_b64: Option<String>,
    seq: i64,
    created_at: String,
    /// When the client said that it is over.
    finished_at: Option<String>,
}

impl From<&Session> for SessionJson {
    fn from(session: &Session) -> Self {
        let transcript = session.transcript.as_deref();
        Self {
            id: session.id.to_string(),
            short_id: session.id.short().to_owned(),
            client: session.client.clone(),
            client_session_id: session.client_id.clone(),
            run_id: session.run_id.to_string(),
            owns_run: session.owns_run,
            project_dir: session.project_dir.to_string_lossy().into_owned(),
            project_dir_b64: exact(&session.project_dir),
            transcript: transcript.map(|path| path.to_string_lossy().into_owned()),
            transcript_b64: transcript.and_then(exact),
            seq: session.seq,
            created_at: session.created_at.to_string(),
            finished_at: session.ended_at.map(|at| at.to_string()),
        }
    }
}

/// A session with its prompts (`session show`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionShowJson {
    #[serde(flatten)]
    session: SessionJson,
    /// The work that each prompt began, oldest first; its name is the prompt's title.
    prompts: Vec<DispatchJson>,
    /// What subagents did for them, oldest first of each prompt; `parent_id` is the prompt's.
    subagents: Vec<DispatchJson>,
    /// How many tool calls that may change files its prompts made.
    call_count: usize,
    /// Those calls, oldest first, with `--calls`; else null.
    calls: Option<Vec<CallJson>>,
}

/// Whether this is the work of a subagent, and not of a prompt, whatever began that.
pub(crate) fn is_subagent(work: &Dispatch, all: &[(Dispatch, Vec<Call>)]) -> bool {
    work.work.parent_id.as_ref().is_some_and(|parent| all.iter().any(|(other, _)| other.id == *parent))
}

impl SessionShowJson {
    /// `all`: the work of its prompts, each followed by that of its subagents, with their calls.
    pub(crate) fn new(session: &Session, all: &[(Dispatch, Vec<Call>)], with_calls: bool) -> Self {
        let calls = all.iter().flat_map(|(_, calls)| calls);
        let works = |of_subagents: bool| {
            let works = all.iter().map(|(work, _)| work);
            works.filter(|work| is_subagent(work, all) == of_subagents).map(DispatchJson::from).collect()
        };
        Self {
            session: session.into(),
            prompts: works(false),
            subagents: works(true),
            call_count: calls.clone().count(),
            calls: with_calls.then(|| calls.map(CallJson::from).collect()),
        }
    }
}
