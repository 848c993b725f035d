//! Codex: its payloads are those of Claude Code, with `turn_id`. It runs no hook that its person does not trust.

mod trust;
mod trust_removal;

use std::time::Duration;

use ic_base::Result;
use ic_dispatch::dispatch::TokenCounts;
use serde_json::Value;

use crate::conversation::{self, ConversationCut, Conversations};

use super::{Client, Dialect, RecordFormat, ServerList, USUAL, claude_code, decide, lines_with, number, text_of};

pub(super) static CLIENT: Client = Client {
    name: "codex",
    title: "Codex",
    events: claude_code::EVENTS,
    dialect: &Codex,
    shell_variable: Some("CODEX_THREAD_ID"),
    // Not in config.toml, which Codex itself writes, too: there we edit the server alone.
    hook_files: [".codex/hooks.json", ".codex/hooks.json"],
    server_files: [".codex/config.toml", ".codex/config.toml"],
    server_list: ServerList::Toml,
    readers: "close_agent list_mcp_resource_templates list_mcp_resources read_mcp_resource request_user_input resume_agent send_input \
        spawn_agent update_plan view_image wait wait_agent web_search",
    editors: "apply_patch",
    directory: ".codex",
    directory_variable: Some("CODEX_HOME"),
    records: &["sessions", "log", "tmp", "history.jsonl"],
    record: Some(RecordFormat { tokens: of_totals, person_text }),
    conversations: Some(&Codex),
    listens_at_begin: true,
    trust: Some(&trust::CodexTrust),
    ..USUAL
};

#[derive(Debug)]
struct Codex;

impl Dialect for Codex {
    fn claims(&self, payload: &Value) -> bool {
        // Payloads of Claude Code have no `turn_id`, and no record that is named `rollout-...`.
        let transcript = payload["transcript_path"].as_str().and_then(|path| path.rsplit('/').next());
        payload["turn_id"].is_string() || transcript.is_some_and(|name| name.starts_with("rollout-"))
    }

    fn refuse(&self, reason: &str) -> Value {
        // Codex puts its own full stop behind it.
        decide("deny", reason.trim_end_matches('.'))
    }

    fn patience(&self, event: &str) -> Duration {
        // Codex cuts a longer limit to 3 seconds, and warns of it at every start.
        Duration::from_secs(if event == "SessionEnd" { 3 } else { 30 })
    }
}

impl Conversations for Codex {
    fn before(&self, cut: &ConversationCut<'_>) -> Result<Vec<String>> {
        let (path, text) = cut.record()?;
        let begins = |line: &Value| line["payload"]["type"] == "task_started";
        let is_prompt = |line: &Value| begins(line) && cut.prompt.is_some_and(|id| line["payload"]["turn_id"] == id);
        // The copy ends where the line before that of the prompt ends.
        let mut end = 0;
        let mut turn = None;
        for (after, line) in conversation::lines(text) {
            if is_prompt(&line) {
                turn = Some(end);
                break;
            }
            end = after;
        }
        // Where the turn is not found: it was begun when the hook was called, and ends empty in the copy.
        let kept = turn.and_then(|end| text.get(..end)).map_or_else(|| cut.earlier(), Ok)?;
        if !conversation::lines(kept).any(|(_, line)| begins(&line)) {
            return Ok(conversation::words(["codex"]));
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Without the id in its name, the copy would have the name of the record.
        if !name.contains(cut.session) {
            return Err(conversation::unknown("The client's record is not named after its session."));
        }
        let copy = path.with_file_name(name.replace(cut.session, cut.new_id));
        conversation::write_copy(&copy, &conversation::renamed(kept, cut.session, cut.new_id))?;
        Ok(conversation::words(["codex", "resume", cut.new_id]))
    }
}

/// `{"payload": {"type": "message", "role": "user", "content": [...]}}`.
fn person_text(line: &Value) -> Option<String> {
    (line["payload"]["role"] == "user").then(|| text_of(&line["payload"]["content"])).flatten()
}

/// Codex writes the totals of the session after each answer, with what that answer added. Its input includes what it read from a cache.
fn of_totals(record: &[u8]) -> Option<TokenCounts> {
    let mut ends: Option<(Value, Value)> = None;
    for mut line in lines_with(record, b"\"token_count\"") {
        if line["payload"]["type"] != "token_count" || !line["payload"]["info"].is_object() {
            continue;
        }
        let info = line["payload"]["info"].take();
        // Totals grow, so the first and the last are enough.
        ends = Some(match ends {
            None => (info.clone(), info),
            Some((first, _)) => (first, info),
        });
    }
    let (first, last) = ends?;
    let added = |key: &str| {
        // The totals before the first answer of this prompt are its own totals without what it added.
        let before = number(&first["total_token_usage"], key) - number(&first["last_token_usage"], key);
        (number(&last["total_token_usage"], key) - before).max(0)
    };
    let (all, cache) = (added("input_tokens"), added("cached_input_tokens"));
    Some(TokenCounts { input: (all - cache).max(0), output: added("output_tokens"), cache })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_the_part_that_is_read() {
        let line = |total: (u32, u32, u32), last: (u32, u32, u32)| {
            let usage = |(input, cached, output): (u32, u32, u32)| {
                format!(r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output}}}"#)
            };
            format!(
                r#"{{"payload":{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{}}}}}}}"#,
                usage(total),
                usage(last)
            )
        };
        let lines = [
            line((110, 40, 27), (10, 4, 7)),
            r#"{"payload":{"type":"token_count","info":null}}"#.to_owned(),
            line((130, 44, 37), (20, 4, 10)),
        ];
        let found = of_totals(lines.join("\n").as_bytes());
        assert_eq!(found, Some(TokenCounts { input: 22, output: 17, cache: 8 }));
        assert_eq!(of_totals(b"\"token_count\""), None);
    }

    #[test]
    fn texts_of_a_person_are_read() {
        let text = |line: &str| person_text(&serde_json::from_str(line).expect("JSON"));
        let line = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"b"}]}}"#;
        assert_eq!(text(line).as_deref(), Some("b"));
        assert_eq!(text(r#"{"type":"response_item","payload":{"role":"assistant","content":[{"text":"b"}]}}"#), None);
    }
}
