//! Copilot CLI. It reads hooks in the format of Claude Code, those that Claude Code itself is given included, and in one of its own.

use std::path::Path;

use ic_base::Result;
use serde_json::{Value, json};

use crate::conversation::{self, ConversationCut, Conversations};

use super::{Client, Dialect, USUAL, claude_code, decide};

pub(super) static CLIENT: Client = Client {
    name: "copilot",
    title: "Copilot",
    events: claude_code::EVENTS,
    dialect: &Copilot,
    shell_variable: Some("COPILOT_AGENT_SESSION_ID"),
    // It reads every file of that directory, so ours is one of its own.
    hook_files: [".github/hooks/ic.json", ".copilot/hooks/ic.json"],
    server_files: [".github/mcp.json", ".copilot/mcp-config.json"],
    readers: "ask fetch_copilot_cli_documentation grep list_agents list_bash read_agent read_bash report_intent rg stop_bash task \
        update_todo view",
    editors: "create edit str_replace_editor",
    directory: ".copilot",
    directory_variable: Some("COPILOT_HOME"),
    record_file: Some("session-state/@SESSION@/events.jsonl"),
    conversations: Some(&Copilot),
    // It ignores text that a hook adds to a prompt.
    listens_at_prompts: false,
    ..USUAL
};

#[derive(Debug)]
struct Copilot;

impl Dialect for Copilot {
    fn claims(&self, payload: &Value) -> bool {
        // It sends a timestamp, which Claude Code does not, and a path of its own or none.
        let is_own = payload["transcript_path"].as_str().is_none_or(|path| path.contains("/.copilot/"));
        is_own && !payload["timestamp"].is_null()
    }

    fn translated(&self, mut payload: Value) -> Value {
        let Some(keys) = payload.as_object_mut() else { return payload };
        for (own, known) in [
            ("sessionId", "session_id"),
            ("transcriptPath", "transcript_path"),
            ("toolName", "tool_name"),
            ("toolArgs", "tool_input"),
            ("agentId", "agent_id"),
            ("agentType", "agent_type"),
            ("parentAgentId", "parent_agent_id"),
        ] {
            if let Some(value) = keys.remove(own) {
                keys.insert(known.to_owned(), value);
            }
        }
        // A subagent has a session of its own, and its work belongs to the one that began it.
        if let Some(parent) = keys.get("parent_agent_id").filter(|parent| parent.is_string()).cloned() {
            keys.insert("session_id".to_owned(), parent);
        }
        payload
    }

    fn known_event<'e>(&self, event: &'e str) -> &'e str {
        match event {
            "sessionStart" => "SessionStart",
            "userPromptSubmitted" => "UserPromptSubmit",
            "preToolUse" => "PreToolUse",
            "postToolUse" => "PostToolUse",
            "agentStop" => "Stop",
            "subagentStop" => "SubagentStop",
            "sessionEnd" => "SessionEnd",
            _ => event,
        }
    }

    fn refuse(&self, reason: &str) -> Value {
        // In the format of Claude Code and in its own: which one it reads depends on how the hook was configured.
        let mut both = json!({ "permissionDecision": "deny", "permissionDecisionReason": reason });
        both["hookSpecificOutput"] = decide("deny", reason)["hookSpecificOutput"].take();
        both
    }

    fn server(&self, program: &str) -> Value {
        json!({ "type": "local", "command": program, "args": ["mcp"], "tools": ["*"] })
    }
}

impl Conversations for Copilot {
    fn before(&self, cut: &ConversationCut<'_>) -> Result<Vec<String>> {
        let (path, _) = cut.record()?;
        let kept = cut.earlier()?;
        if !conversation::lines(kept).any(|(_, line)| line["type"] == "user.message") {
            return Ok(conversation::words(["copilot"]));
        }
        // session-state/SESSION/events.jsonl
        let sessions = path.parent().and_then(Path::parent);
        let sessions = sessions.ok_or_else(|| conversation::unknown("The client's record lies in no directory."))?;
        let copy = sessions.join(cut.new_id).join("events.jsonl");
        conversation::write_copy(&copy, &conversation::renamed(kept, cut.session, cut.new_id))?;
        Ok(conversation::words(["copilot", &format!("--resume={}", cut.new_id)]))
    }
}
