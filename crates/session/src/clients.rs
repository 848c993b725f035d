//! The coding agents that call `ic hook`: one file each, with what is known of it. All other code asks [`Client`] and [`Dialect`].
//!
//! Seen with the real programs: Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0, Copilot CLI 1.0.102, `OpenCode` 1.18.33.

mod claude_code;
mod codex;
mod copilot;
mod gemini;
mod opencode;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::Result;

use crate::conversation::Conversations;
use ic_dispatch::dispatch::TokenCounts;
use serde_json::{Value, json};

/// What happens in a client that is recorded or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOccasion {
    /// A session begins, or is resumed.
    SessionBegins,
    /// A person typed a prompt.
    Prompt,
    /// The agent is about to use a tool.
    BeforeCall,
    /// The agent has used a tool.
    AfterCall,
    /// The agent stopped, and waits for the next prompt.
    Stops,
    /// A subagent stopped, and its result goes back to the agent that began it.
    SubagentStops,
    /// The session is over.
    SessionEnds,
}

impl HookOccasion {
    /// Whether the tree is captured at this event. `may_write`: whether the tool of the call may change files.
    pub fn looks(self, may_write: bool) -> bool {
        match self {
            // The first prompt has its own look, and a session without a prompt needs none.
            Self::SessionBegins => false,
            Self::BeforeCall | Self::AfterCall => may_write,
            Self::Prompt | Self::Stops | Self::SubagentStops | Self::SessionEnds => true,
        }
    }
}

/// A coding agent: where its settings lie, and what it can do. How it speaks is its [`Dialect`].
#[derive(Debug)]
pub struct Client {
    // Data, and no methods of a trait: every call of ic looks at all clients, to find the session that it is called from.
    /// Its name on the command line, in JSON and in rows.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The events that its hooks are configured for, in the order in which they come, each with its meaning here.
    pub events: &'static [(&'static str, HookOccasion)],
    /// Its payloads and its answers.
    pub dialect: &'static dyn Dialect,
    /// The environment variable that holds the session's id in its shell; `None`: the client sets none.
    pub shell_variable: Option<&'static str>,
    /// The files of its hooks, relative: the first to the project, the second to the home directory.
    pub hook_files: [&'static str; 2],
    /// The script that it loads as its hooks, with `@PROGRAM@` and `@EVENTS@` in it; `None`: its hooks are entries of its settings.
    pub script: Option<&'static str>,
    /// The files of its MCP servers, relative: the first to the project, the second to the home directory.
    pub server_files: [&'static str; 2],
    /// The form in which they are listed there.
    pub server_list: ServerList,
    /// More settings that a person or the client itself writes into a project.
    pub more_settings: &'static [&'static str],
    /// The tools that change no file of the project by themselves, with spaces between them. What a subagent does is told by its own calls.
    pub readers: &'static str,
    /// The tools that change only files which their input names.
    pub editors: &'static str,
    /// Its directory in the home directory.
    pub directory: &'static str,
    /// The environment variable that names another such directory.
    pub directory_variable: Option<&'static str>,
    /// What it writes of itself below its directory: plans, lists of what is to be done, histories.
    pub records: &'static [&'static str],
    /// How the record is read that it keeps of a session; `None`: it is not read.
    pub record: Option<RecordFormat>,
    /// The file of that record below its directory, with `@SESSION@` in it, for payloads that name none.
    pub record_file: Option<&'static str>,
    /// How a conversation is continued from before a prompt; `None`: this client cannot.
    pub conversations: Option<&'static dyn Conversations>,
    /// Whether text of a hook at the beginning of a session stays apart from the prompt.
    pub listens_at_begin: bool,
    /// Whether the model reads what a hook adds to a prompt. Where it does not, the next tool call is refused once, with that text as the
    /// reason.
    pub listens_at_prompts: bool,
    /// Whether a hook can keep its agent from stopping.
    pub can_hold: bool,
    /// How a person's trust in our hooks is given and removed; `None`: it runs all hooks of its settings.
    pub trust: Option<&'static dyn HookTrust>,
    /// What a person has to know after an installation of the MCP server in a project; empty: nothing.
    pub server_note: &'static str,
}

/// How a client's record of a session is read: lines of JSON.
#[derive(Debug)]
pub struct RecordFormat {
    /// Counts the tokens in a part of the record; `None`: they cannot be told.
    pub tokens: fn(&[u8]) -> Option<TokenCounts>,
    /// What a person typed, as a line of the record has it.
    pub person_text: fn(&Value) -> Option<String>,
}

/// How a client's settings list its MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerList {
    /// In JSON, under this key.
    Json(&'static str),
    /// In TOML, each as a table below `mcp_servers`.
    Toml,
}

/// How a client speaks: its payloads, translated into those of Claude Code, and the answers that it obeys. What is given here is what most
/// clients do.
pub trait Dialect: Debug + Sync {
    /// Whether this client sent a payload under the name of Claude Code, whose hooks it loads, too.
    fn claims(&self, _payload: &Value) -> bool {
        false
    }

    /// The payload with the keys of Claude Code.
    fn translated(&self, payload: Value) -> Value {
        payload
    }

    /// The name of an event in [`Client::events`], for one of a second format.
    fn known_event<'e>(&self, event: &'e str) -> &'e str {
        event
    }

    /// What a person typed of a prompt: without what our own hooks added to it.
    fn typed<'t>(&self, prompt: &'t str) -> &'t str {
        prompt
    }

    /// Whether a prompt is the client's own message that a task has ended.
    fn is_news(&self, _prompt: &str) -> bool {
        false
    }

    /// The answer that refuses a tool call; its reason reaches the model.
    fn refuse(&self, reason: &str) -> Value {
        // `{"continue": false}` is ignored by Codex and Copilot: the tool runs.
        decide("deny", reason)
    }

    /// The answer that makes an agent continue instead of stopping; the model reads the reason.
    fn hold(&self, reason: &str) -> Value {
        json!({ "decision": "block", "reason": reason })
    }

    /// The answer that lets the person decide about a tool call; `None`: the hooks of this client know only yes and no.
    fn ask(&self, _reason: &str) -> Option<Value> {
        None
    }

    /// How long the client waits for a hook of this event.
    fn patience(&self, _event: &str) -> Duration {
        Duration::from_secs(30)
    }

    /// The same in the unit of its settings.
    fn timeout(&self, event: &str) -> u64 {
        self.patience(event).as_secs()
    }

    /// The name of a hook in its settings; `None`: its hooks have none.
    fn hook_name(&self, _event: &str) -> Option<String> {
        None
    }

    /// The entry of our MCP server in its settings in JSON.
    fn server(&self, program: &str) -> Value {
        json!({ "command": program, "args": ["mcp"] })
    }
}

/// A client's own list of the hooks that it runs.
pub trait HookTrust: Debug + Sync {
    /// Makes the client trust the hooks of `file` that run these commands, and no others.
    ///
    /// Errors: `config_not_changed` if the client cannot be asked, or does not list these hooks.
    fn grant(&self, file: &Path, project: &Path, commands: &BTreeSet<String>) -> Result<()>;

    /// The client's settings, and their text without its trust in our hooks; `None` if it trusts none of them. `hooks`: their events, each
    /// with the index of our entry in its list in `file`. `directory`: that of the client.
    fn without(&self, file: &Path, hooks: &[(String, usize)], directory: &Path) -> Option<(PathBuf, String)>;

    /// What a person has to know after an installation.
    fn note(&self) -> &'static str;
}

/// What holds for most clients. A client's file names what differs.
const USUAL: Client = Client {
    name: "",
    title: "",
    events: &[],
    // Most clients took over the answers of Claude Code.
    dialect: &claude_code::ClaudeCode,
    shell_variable: None,
    hook_files: ["", ""],
    script: None,
    server_files: ["", ""],
    server_list: ServerList::Json("mcpServers"),
    more_settings: &[],
    readers: "",
    editors: "",
    directory: "",
    directory_variable: None,
    records: &[],
    record: None,
    record_file: None,
    conversations: None,
    listens_at_begin: false,
    listens_at_prompts: true,
    can_hold: true,
    trust: None,
    server_note: "",
};

impl Client {
    /// Every client, in the order in which they are listed to people.
    pub const ALL: [&'static Self; 5] =
        [&claude_code::CLIENT, &codex::CLIENT, &gemini::CLIENT, &copilot::CLIENT, &opencode::CLIENT];

    /// Their names, in the same order.
    pub const WORDS: [&'static str; Self::ALL.len()] = {
        // The loop goes by index, because a constant cannot use an iterator.
        let mut words = [""; Self::ALL.len()];
        let mut at = 0;
        while at < words.len() {
            words[at] = Self::ALL[at].name;
            at += 1;
        }
        words
    };

    /// The client with this name; `None`: there is none.
    pub fn parse(name: &str) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|client| client.name == name)
    }

    /// The client that really sent a payload: some load the hooks of Claude Code, which then call `ic hook claude-code`.
    pub fn speaking(&'static self, payload: &Value) -> &'static Self {
        // A client's own name is believed: nothing but a shared file of hooks gives a wrong one.
        let is_shared = self.name == claude_code::CLIENT.name;
        Self::ALL.into_iter().find(|client| is_shared && client.dialect.claims(payload)).unwrap_or(self)
    }

    /// The meaning of an event with this name; `None`: the event is ignored.
    pub fn occasion(&self, event: &str) -> Option<HookOccasion> {
        let event = self.dialect.known_event(event);
        self.events.iter().find(|(name, _)| *name == event).map(|(_, occasion)| *occasion)
    }

    /// How long a capture in a hook of this event may take: four fifths of the client's limit. The rest is for the record, and for a busy
    /// machine.
    pub fn capture_limit(&self, event: &str) -> Duration {
        self.dialect.patience(event) * 4 / 5
    }
}

/// The answer that adds text to what the model reads.
pub fn tell(event: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
}

/// The answer that decides about a tool call, as Claude Code reads it.
fn decide(decision: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    } })
}

/// Whether calls of a tool may change files. The tree is captured around every tool that no client lists, because it may do anything.
pub fn may_write(tool: &str) -> bool {
    !Client::ALL.iter().any(|client| client.readers.split_whitespace().any(|reader| reader == tool))
}

/// Whether calls of a tool change only files that their input names.
pub fn edits_what_it_names(tool: &str) -> bool {
    Client::ALL.iter().any(|client| client.editors.split_whitespace().any(|editor| editor == tool))
}

/// What a person typed of a prompt, whichever client sent it.
pub fn typed(prompt: &str) -> &str {
    // All are asked, because a plugin in the format of one client is loaded by others.
    Client::ALL.iter().fold(prompt, |prompt, client| client.dialect.typed(prompt))
}

/// Whether a prompt is a client's own message that a task has ended.
pub fn is_news(prompt: &str) -> bool {
    Client::ALL.iter().any(|client| client.dialect.is_news(prompt))
}

/// Whether a path of a project is a file of settings that `ic install`, a client or a person writes for a client.
pub fn is_settings(path: &[u8]) -> bool {
    Client::ALL.iter().any(|client| {
        // The second of each pair is in the home directory, where no restore writes.
        let own = [client.hook_files[0], client.server_files[0]];
        own.iter().chain(client.more_settings).any(|file| file.as_bytes() == path)
    })
}

/// A content that is a text, or a list of parts of which some are texts.
fn text_of(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let parts: Vec<&str> = content.as_array()?.iter().filter_map(|part| part["text"].as_str()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The lines of a record in JSON that contain these bytes. A line that is cut off is left out.
pub fn lines_with<'r>(record: &'r [u8], part: &'r [u8]) -> impl Iterator<Item = Value> + 'r {
    let lines = record.split(|byte| *byte == b'\n');
    // Searched before they are parsed: most lines are long, and say nothing of tokens.
    let lines = lines.filter(move |line| line.windows(part.len()).any(|window| window == part));
    lines.filter_map(|line| serde_json::from_slice(line).ok())
}

fn number(of: &Value, key: &str) -> i64 {
    // The record is the client's: it may hold anything.
    of[key].as_i64().filter(|n| *n >= 0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_named_once_and_a_shell_is_none() {
        let mut all: Vec<&str> = Client::ALL.iter().flat_map(|client| client.readers.split_whitespace()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for writer in ["Bash", "Write", "Edit", "apply_patch", "run_shell_command", "invoke_agent", "mcp__x__y", "bash"]
        {
            assert!(may_write(writer), "{writer}");
        }
    }

    #[test]
    fn every_client_is_found_by_its_name_and_has_files_of_its_own() {
        for (client, name) in Client::ALL.into_iter().zip(Client::WORDS) {
            assert_eq!(Client::parse(name).map(|found| found.title), Some(client.title));
            assert!(!client.events.is_empty() && !client.readers.is_empty() && !client.directory.is_empty(), "{name}");
            for file in client.hook_files.iter().chain(&client.server_files) {
                assert!(!file.is_empty() && !Path::new(file).is_absolute(), "{name}");
            }
            assert!(is_settings(client.hook_files[0].as_bytes()) && is_settings(client.server_files[0].as_bytes()));
        }
    }
}
