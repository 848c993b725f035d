//! Claude Code: its hooks are entries of its settings, and the payloads of all other clients are translated into its own.

use std::collections::HashMap;

use ic_base::Result;
use ic_dispatch::dispatch::TokenCounts;
use serde_json::{Value, json};

use crate::conversation::{self, ConversationCut, Conversations};

use super::{Client, Dialect, HookOccasion, RecordFormat, USUAL, decide, lines_with, number, text_of};

pub(super) static CLIENT: Client = Client {
    name: "claude-code",
    title: "Claude Code",
    events: EVENTS,
    dialect: &ClaudeCode,
    shell_variable: Some("CLAUDE_CODE_SESSION_ID"),
    // The settings that git does not share, because the entry names this program by its path on this machine.
    hook_files: [".claude/settings.local.json", ".claude/settings.json"],
    server_files: [".mcp.json", ".claude.json"],
    // Those that a team shares in git. A person who has our hooks there put them there by hand.
    more_settings: &[".claude/settings.json"],
    readers: "Agent AskUserQuestion BashOutput EnterPlanMode ExitPlanMode Glob Grep KillBash KillShell LS ListMcpResourcesTool \
        NotebookRead Read ReadMcpResourceTool Skill SlashCommand Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate \
        TodoWrite ToolSearch WebFetch WebSearch",
    editors: "Edit MultiEdit NotebookEdit Write",
    directory: ".claude",
    directory_variable: Some("CLAUDE_CONFIG_DIR"),
    records: &["plans", "todos", "projects", "tasks", "file-history", "shell-snapshots", "session-env", "debug"],
    record: Some(RecordFormat { tokens: |record| Some(of_messages(record)), person_text }),
    conversations: Some(&ClaudeCode),
    listens_at_begin: true,
    server_note: "Claude Code asks you at its start whether the server of a project may run.\n",
    ..USUAL
};

/// Its events. Some other clients call theirs the same.
pub(super) const EVENTS: &[(&str, HookOccasion)] = &[
    ("SessionStart", HookOccasion::SessionBegins),
    ("UserPromptSubmit", HookOccasion::Prompt),
    ("PreToolUse", HookOccasion::BeforeCall),
    ("PostToolUse", HookOccasion::AfterCall),
    ("SubagentStop", HookOccasion::SubagentStops),
    ("Stop", HookOccasion::Stops),
    ("SessionEnd", HookOccasion::SessionEnds),
];

#[derive(Debug)]
pub(super) struct ClaudeCode;

impl Dialect for ClaudeCode {
    fn is_news(&self, prompt: &str) -> bool {
        prompt.starts_with("<task-notification>")
    }

    fn ask(&self, reason: &str) -> Option<Value> {
        Some(decide("ask", reason))
    }

    fn server(&self, program: &str) -> Value {
        json!({ "type": "stdio", "command": program, "args": ["mcp"] })
    }
}

impl Conversations for ClaudeCode {
    /// Its flags that resume at a message (`--resume-session-at`) are heard only without a terminal, so the record is copied.
    fn before(&self, cut: &ConversationCut<'_>) -> Result<Vec<String>> {
        let (path, text) = cut.record()?;
        let is_prompt = |line: &Value| line["type"] == "user" && cut.prompt.is_some_and(|id| line["promptId"] == id);
        let kept = match conversation::lines(text).find(|(_, line)| is_prompt(line)) {
            // Nothing was said before it.
            Some((_, line)) if line["parentUuid"].is_null() => return Ok(conversation::words(["claude"])),
            // Cut after the line that it answers: in a record with branches, one that was left may stand between the two.
            Some((_, line)) => {
                let parent = conversation::lines(text).find(|(_, earlier)| earlier["uuid"] == line["parentUuid"]);
                let (end, _) = parent.ok_or_else(|| conversation::unknown("The client's record is not whole."))?;
                &text[..end]
            }
            None => cut.earlier()?,
        };
        // The record had no line yet when the prompt was given.
        if kept.is_empty() {
            return Ok(conversation::words(["claude"]));
        }
        conversation::write_copy(&path.with_file_name(format!("{}.jsonl", cut.new_id)), kept)?;
        Ok(conversation::words(["claude", "--resume", cut.new_id]))
    }
}

/// `{"type": "user", "message": {"content": ...}}`, with a text or a list of parts.
fn person_text(line: &Value) -> Option<String> {
    (line["type"] == "user").then(|| text_of(&line["message"]["content"])).flatten()
}

/// Claude Code writes a line for each part of an answer, each with the usage of the whole answer so far: the last line of an answer counts.
fn of_messages(record: &[u8]) -> TokenCounts {
    let mut answers: HashMap<String, TokenCounts> = HashMap::new();
    for line in lines_with(record, b"\"usage\"") {
        let message = &line["message"];
        let (Some(id), usage @ Value::Object(_)) = (message["id"].as_str(), &message["usage"]) else {
            continue;
        };
        let tokens = TokenCounts {
            input: number(usage, "input_tokens").saturating_add(number(usage, "cache_creation_input_tokens")),
            output: number(usage, "output_tokens"),
            cache: number(usage, "cache_read_input_tokens"),
        };
        // A later line of the same answer replaces the earlier one, so that nothing is counted twice.
        answers.insert(id.to_owned(), tokens);
    }
    answers.into_values().fold(TokenCounts::default(), TokenCounts::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_several_lines_is_counted_once_and_last() {
        let part = |id: &str, out: u32| {
            format!(
                r#"{{"message":{{"id":"{id}","usage":{{"input_tokens":5,"cache_creation_input_tokens":2,"cache_read_input_tokens":90,"output_tokens":{out}}}}}}}"#
            )
        };
        let (a, b, c) = (part("one", 1), part("one", 8), part("two", 3));
        let all = [a.as_str(), "{\"usage\": not json", b.as_str(), "", c.as_str()];
        assert_eq!(of_messages(all.join("\n").as_bytes()), TokenCounts { input: 14, output: 11, cache: 180 });
        assert_eq!(of_messages(b"{\"message\":{\"usage\":{\"input_tokens\":5}}}"), TokenCounts::default(), "no id");
    }

    #[test]
    fn texts_of_a_person_are_read() {
        let text = |line: &str| person_text(&serde_json::from_str(line).expect("JSON"));
        let read = |line: &str, expected: &str| assert_eq!(text(line).as_deref(), Some(expected), "{line}");
        read(r#"{"type":"user","message":{"role":"user","content":"one\ntwo"}}"#, "one\ntwo");
        read(r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"image"}]}}"#, "a");
        assert_eq!(text(r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"c"}]}}"#), None);
        assert_eq!(text(r#"{"type":"assistant","message":{"content":"d"}}"#), None);
    }
}
