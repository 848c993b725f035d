//! Gemini CLI: its events have names of their own, and it has none for subagents.

use ic_base::Result;
use serde_json::{Value, json};

use crate::conversation::{self, ConversationCut, Conversations};

use super::{Client, Dialect, HookOccasion, USUAL};

pub(super) static CLIENT: Client = Client {
    name: "gemini",
    title: "Gemini",
    events: &[
        ("SessionStart", HookOccasion::SessionBegins),
        ("BeforeAgent", HookOccasion::Prompt),
        ("BeforeTool", HookOccasion::BeforeCall),
        ("AfterTool", HookOccasion::AfterCall),
        ("AfterAgent", HookOccasion::Stops),
        ("SessionEnd", HookOccasion::SessionEnds),
    ],
    dialect: &Gemini,
    // One file for the hooks and the servers.
    hook_files: [".gemini/settings.json", ".gemini/settings.json"],
    server_files: [".gemini/settings.json", ".gemini/settings.json"],
    readers: "activate_skill ask_user codebase_investigator complete_task enter_plan_mode exit_plan_mode get_internal_docs glob \
        google_web_search grep_search list_directory read_file read_many_files search_file_content web_fetch write_todos",
    editors: "replace write_file",
    directory: ".gemini",
    records: &["tmp", "history"],
    conversations: Some(&Gemini),
    // It puts text of a hook before a prompt that it was started with, so that a prompt `/name` would not be read as a command.
    listens_at_begin: false,
    ..USUAL
};

#[derive(Debug)]
struct Gemini;

impl Dialect for Gemini {
    fn typed<'t>(&self, prompt: &'t str) -> &'t str {
        // What its hooks told comes before what the person typed.
        let told = prompt.strip_prefix("<hook_context>").and_then(|rest| rest.split_once("</hook_context>"));
        told.map_or(prompt, |(_, typed)| typed.trim())
    }

    fn refuse(&self, reason: &str) -> Value {
        json!({ "decision": "deny", "reason": reason })
    }

    fn hold(&self, reason: &str) -> Value {
        self.refuse(reason)
    }

    fn timeout(&self, event: &str) -> u64 {
        // In milliseconds.
        self.patience(event).as_secs() * 1000
    }

    fn hook_name(&self, event: &str) -> Option<String> {
        Some(format!("ic-{event}"))
    }
}

impl Conversations for Gemini {
    /// It makes a new session of a file, wherever that lies.
    fn before(&self, cut: &ConversationCut<'_>) -> Result<Vec<String>> {
        let kept = cut.earlier()?;
        if !conversation::lines(kept).any(|(_, line)| line["type"] == "user") {
            return Ok(conversation::words(["gemini"]));
        }
        let copy = cut.store.join(format!("{}.jsonl", cut.new_id));
        // The old id may stay in it, because a new session is made of it.
        conversation::write_copy(&copy, kept)?;
        Ok(conversation::words(["gemini", "--session-file", &copy.to_string_lossy()]))
    }
}
