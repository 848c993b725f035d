//! Sessions of coding agents.

use ic_base::Timestamp;
use ic_dispatch::Dispatch;
use ic_session::places::own_name;
use ic_session::{AgentSession, ToolCall};

use crate::text::{Cell, TextTable, counted, path_text, plain, style, styled, when};
use crate::views::blame::CallJson;
use crate::views::dispatch::DispatchJson;
use crate::views::exact;

shape! {
    /// A session of a coding agent (`session list`).
    pub(crate) struct SessionJson from session: &AgentSession where
        transcript = session.transcript.as_deref();
    {
        id: String = session.id.to_string(),
        short_id: String = session.id.short().to_owned(),
        /// The client's name, for instance claude-code.
        client: String = session.client.clone(),
        /// The client's id of the session.
        client_session_id: String = own_name(&session.client_id).to_owned(),
        run_id: String = session.run_id.to_string(),
        /// Whether the run was created for the session, and ends with it.
        owns_run: bool = session.owns_run,
        project_dir: String = session.project_dir.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        project_dir_b64: Option<String> = exact(&session.project_dir),
        /// The path of the client's own record of the session.
        transcript: Option<String> = transcript.map(|path| path.to_string_lossy().into_owned()),
        #[serde(skip_serializing_if = "Option::is_none")]
        transcript_b64: Option<String> = transcript.and_then(exact),
        seq: i64 = session.seq,
        created_at: String = session.created_at.to_string(),
        /// When the client ended it; null if it has not.
        finished_at: Option<String> = session.ended_at.map(|at| at.to_string()),
    }

    // `all`: the dispatches of its prompts, each followed by those of its subagents, with their tool calls.
    /// A session with its prompts (`session show`).
    pub(crate) struct SessionShowJson from (
        session: &AgentSession,
        all: &[(Dispatch, Vec<ToolCall>)],
        with_calls: bool,
    ) where
        calls = all.iter().flat_map(|(_, calls)| calls);
        works = |of_subagents: bool| {
            let works = all.iter().map(|(work, _)| work);
            works.filter(|work| is_subagent(work, all) == of_subagents).map(DispatchJson::from).collect()
        };
    {
        #[serde(flatten)]
        session: SessionJson = session.into(),
        /// The dispatch of each prompt, oldest first; its name is the prompt's title.
        prompts: Vec<DispatchJson> = works(false),
        /// The dispatches of subagents, oldest first within each prompt; `parent_id` is the prompt's dispatch.
        subagents: Vec<DispatchJson> = works(true),
        /// The number of tool calls that may change files.
        call_count: usize = calls.clone().count(),
        /// Those calls, oldest first, with `--calls`; else null.
        calls: Option<Vec<CallJson>> = with_calls.then(|| calls.map(CallJson::from).collect()),
    }
}

/// A sentence about a session that was attached to another run.
pub(crate) fn attached(before: &AgentSession, after: &AgentSession) -> String {
    let (id, run) = (after.id.short(), after.run_id.short());
    if before.run_id == after.run_id {
        return format!("Session {id} works in run {run} already\n");
    }
    format!("{} session {id}: its next prompt belongs to run {run}\n", styled(style::GOOD, "attached"))
}

/// Sessions, one a line.
pub(crate) fn sessions(all: &[AgentSession], now: Timestamp) -> String {
    let mut table = TextTable::new(&["SESSION", "CLIENT", "RUN", "BEGAN", "PROJECT"]);
    for session in all {
        table.row(vec![
            Cell::new(style::STRONG, session.id.short()),
            session.client.as_str().into(),
            session.run_id.short().into(),
            Cell::new(style::DIM, &when(now, session.created_at)),
            path_text(&session.project_dir).as_str().into(),
        ]);
    }
    table.render("No sessions.")
}

/// Whether this is a subagent's dispatch, and not a prompt's.
fn is_subagent(work: &Dispatch, all: &[(Dispatch, Vec<ToolCall>)]) -> bool {
    // A prompt may have a parent, too: the dispatch in whose environment its client was started.
    work.work.parent_id.as_ref().is_some_and(|parent| all.iter().any(|(other, _)| other.id == *parent))
}

/// A session with its prompts.
pub(crate) fn session(session: &AgentSession, all: &[(Dispatch, Vec<ToolCall>)], with_calls: bool) -> String {
    let prompts = all.iter().filter(|(work, _)| !is_subagent(work, all)).count();
    let mut out = format!(
        "{}  {}, run {}, {}\n",
        styled(style::STRONG, session.id.short()),
        plain(&session.client),
        session.run_id.short(),
        counted(prompts, "prompt")
    );
    let mut table = TextTable::headless();
    for (prompt, calls) in all {
        let undone = if prompt.rolled_back_by.is_some() { "undone" } else { prompt.status.as_str() };
        let kind = if is_subagent(prompt, all) { "    dispatch" } else { "  prompt" };
        table.row(vec![
            format!("{kind}:{}", prompt.id.short()).into(),
            undone.into(),
            counted(calls.len(), "call").as_str().into(),
            prompt.work.name.as_deref().unwrap_or_default().into(),
        ]);
        for call in calls.iter().filter(|_| with_calls) {
            let by = call.agent_type.as_deref().map_or(String::new(), |agent| format!(" ({agent})"));
            table.row(vec![
                "".into(),
                "".into(),
                format!("{}{by}", call.tool).into(),
                call.line.as_deref().unwrap_or("(redacted)").into(),
            ]);
        }
    }
    out += &table.render("  No prompts.");
    out
}
