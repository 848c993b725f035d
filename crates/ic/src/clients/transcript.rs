//! Counts the tokens of a prompt in the record that a client itself keeps of a session. Seen with Claude Code 2.1.330 and Codex 0.169.0;
//! the records of the other clients are not read.
//!
//! The path of the record comes from a payload, so it is opened with care: it must be a regular file of this user below the client's own
//! directory. Only the numbers are kept.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ic_dispatch::dispatch::TokenCounts;
use serde_json::Value;

use super::Client;

/// If a prompt's part of the record is longer, its tokens are not counted: the agent waits for this hook, and a part would give a wrong
/// number.
const LONGEST: u64 = 32 * 1024 * 1024;

/// A client's record of a session, whose path was checked.
pub(crate) struct Transcript {
    client: Client,
    path: PathBuf,
}

impl Transcript {
    /// The record at `path`; `None` for a client whose record is not read, and for a path that is not below its directory.
    pub(crate) fn of(client: Client, path: Option<&str>, home: Option<&Path>) -> Option<Self> {
        let (variable, directory) = match client {
            Client::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
            Client::Codex => ("CODEX_HOME", ".codex"),
            Client::Gemini | Client::Copilot | Client::OpenCode => return None,
        };
        let path = Path::new(path?);
        let own = crate::environment::directory_in(variable);
        let allowed = own.into_iter().chain(home.map(|home| home.join(directory)));
        let parent = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
        // Both sides without links, so that no link in the directory leads elsewhere.
        let is_below = |directory: PathBuf| {
            let directory = std::fs::canonicalize(directory).ok();
            directory.zip(parent.as_ref()).is_some_and(|(directory, parent)| parent.starts_with(directory))
        };
        allowed.into_iter().any(is_below).then(|| Self { client, path: path.to_owned() })
    }

    /// Its length in bytes; 0 if it does not exist yet, `None` if it is no regular file of this user.
    pub(crate) fn size(&self) -> Option<u64> {
        match self.path.symlink_metadata() {
            Ok(found) => is_own(&found).then_some(found.len()),
            Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(0),
        }
    }

    /// The tokens that were used from byte `start` to its end; `None` if the record was replaced, is too long, or cannot be read.
    pub(crate) fn tokens_since(&self, start: u64) -> Option<TokenCounts> {
        let (mut file, length) = self.open_at(start)?;
        if length > LONGEST {
            return None;
        }
        let mut text = Vec::new();
        (&mut file).take(length).read_to_end(&mut text).ok()?;
        let lines = text.split(|byte| *byte == b'\n');
        match self.client {
            Client::ClaudeCode => Some(of_messages(lines)),
            Client::Codex => of_totals(lines),
            Client::Gemini | Client::Copilot | Client::OpenCode => None,
        }
    }

    /// The first texts of a person from byte `start` on; empty if the record was replaced, or cannot be read.
    pub(crate) fn texts_since(&self, start: u64) -> Vec<String> {
        /// A prompt comes right after the place where its hook was called, with few lines in between.
        const READ: u64 = 4 * 1024 * 1024;
        let mut text = Vec::new();
        let read = self.open_at(start).and_then(|(file, _)| file.take(READ).read_to_end(&mut text).ok());
        let lines = text.split(|byte| *byte == b'\n').filter(|line| read.is_some() && contains(line, b"\"user"));
        lines.filter_map(|line| person_text(&serde_json::from_slice(line).ok()?)).take(FIRST_TEXTS).collect()
    }

    /// The record from byte `start` on, and the number of bytes to its end.
    fn open_at(&self, start: u64) -> Option<(File, u64)> {
        let mut file = File::options().read(true).custom_flags(NO_FOLLOW).open(&self.path).ok()?;
        let found = file.metadata().ok()?;
        let length = found.len().checked_sub(start)?;
        // Checked again on the open file: another one may have taken its place since the hook before.
        if !is_own(&found) {
            return None;
        }
        file.seek(SeekFrom::Start(start)).ok()?;
        Some((file, length))
    }
}

/// The most texts of a person that are looked at: a client adds some of its own, such as the state of its editor.
const FIRST_TEXTS: usize = 20;

/// What a person typed, as a line of the record has it. Claude Code: `{"type": "user", "message": {"content": ...}}`, with a text or a list
/// of parts. Codex: `{"payload": {"type": "message", "role": "user", "content": [...]}}`.
fn person_text(line: &Value) -> Option<String> {
    let content = match (line["type"].as_str(), line["payload"]["role"].as_str()) {
        (Some("user"), _) => &line["message"]["content"],
        (_, Some("user")) => &line["payload"]["content"],
        _ => return None,
    };
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let parts: Vec<&str> = content.as_array()?.iter().filter_map(|part| part["text"].as_str()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

// A link in the place of the record is not followed, and opening a pipe does not block the hook.
const NO_FOLLOW: i32 = (rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits()).cast_signed();

fn is_own(found: &Metadata) -> bool {
    found.is_file() && found.uid() == rustix::process::getuid().as_raw()
}

fn number(of: &Value, key: &str) -> i64 {
    of[key].as_i64().filter(|n| *n >= 0).unwrap_or(0)
}

/// Claude Code writes a line for each part of an answer, each with the usage of the whole answer so far: the last line of an answer counts.
fn of_messages<'t>(lines: impl Iterator<Item = &'t [u8]>) -> TokenCounts {
    let mut answers: HashMap<String, TokenCounts> = HashMap::new();
    for line in lines.filter(|line| contains(line, b"\"usage\"")) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
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

/// Codex writes the totals of the session after each answer, with what that answer added. Its input includes what it read from a cache.
fn of_totals<'t>(lines: impl Iterator<Item = &'t [u8]>) -> Option<TokenCounts> {
    let mut ends: Option<(Value, Value)> = None;
    for line in lines.filter(|line| contains(line, b"\"token_count\"")) {
        let Ok(mut line) = serde_json::from_slice::<Value>(line) else { continue };
        if line["payload"]["type"] != "token_count" || !line["payload"]["info"].is_object() {
            continue;
        }
        let info = line["payload"]["info"].take();
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

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn claude(lines: &[&str]) -> TokenCounts {
        of_messages(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn an_answer_in_several_lines_is_counted_once_and_last() {
        let part = |id: &str, out: u32| {
            format!(
                r#"{{"message":{{"id":"{id}","usage":{{"input_tokens":5,"cache_creation_input_tokens":2,"cache_read_input_tokens":90,"output_tokens":{out}}}}}}}"#
            )
        };
        let (a, b, c) = (part("one", 1), part("one", 8), part("two", 3));
        let all = [a.as_str(), "{\"usage\": not json", b.as_str(), "", c.as_str()];
        assert_eq!(claude(&all), TokenCounts { input: 14, output: 11, cache: 180 });
        assert_eq!(claude(&["{\"message\":{\"usage\":{\"input_tokens\":5}}}"]), TokenCounts::default(), "no id");
    }

    #[test]
    fn texts_of_a_person_are_read_from_both_formats() {
        let text = |line: &str| person_text(&serde_json::from_str(line).expect("JSON"));
        let read = |line: &str, expected: &str| assert_eq!(text(line).as_deref(), Some(expected), "{line}");
        read(r#"{"type":"user","message":{"role":"user","content":"one\ntwo"}}"#, "one\ntwo");
        read(r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"image"}]}}"#, "a");
        read(r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"b"}]}}"#, "b");
        assert_eq!(text(r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"c"}]}}"#), None);
        assert_eq!(text(r#"{"type":"assistant","message":{"content":"d"}}"#), None);
    }

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
        let found = of_totals(lines.iter().map(String::as_bytes));
        assert_eq!(found, Some(TokenCounts { input: 22, output: 17, cache: 8 }));
        assert_eq!(of_totals([b"\"token_count\"".as_slice()].into_iter()), None);
    }

    #[test]
    fn only_a_file_of_the_clients_own_directory_is_read() {
        let home = tempfile::tempdir().expect("a directory");
        let below = home.path().join(".claude/projects/shop");
        std::fs::create_dir_all(&below).expect("directories");
        let of = |path: &Path| Transcript::of(Client::ClaudeCode, path.to_str(), Some(home.path()));
        let own = of(&below.join("s.jsonl")).expect("a record");
        assert_eq!((own.size(), own.tokens_since(0)), (Some(0), None), "it is not there yet");
        let line = r#"{"message":{"id":"a","usage":{"input_tokens":1,"output_tokens":2}}}"#;
        let mut file = File::create(below.join("s.jsonl")).expect("a record");
        writeln!(file, "{line}").expect("a line");
        let size = own.size().expect("a size");
        assert_eq!(own.tokens_since(0), Some(TokenCounts { input: 1, output: 2, cache: 0 }));
        assert_eq!(own.tokens_since(size), Some(TokenCounts::default()));
        assert_eq!(own.tokens_since(size + 1), None, "it was cut");
        let secret = home.path().join("secret.jsonl");
        std::fs::write(&secret, line).expect("a file elsewhere");
        assert!(of(&secret).is_none() && of(&below.join("../../../secret.jsonl")).is_none());
        std::os::unix::fs::symlink(&secret, below.join("link.jsonl")).expect("a link");
        let through = of(&below.join("link.jsonl")).expect("its directory is right");
        assert_eq!((through.size(), through.tokens_since(0)), (None, None));
        assert!(Transcript::of(Client::Gemini, below.join("s.jsonl").to_str(), Some(home.path())).is_none());
    }
}
