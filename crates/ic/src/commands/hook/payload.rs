//! The payload of an event, with the keys of Claude Code.

use std::borrow::Cow;
use std::path::Path;

use ic_session::clients::{self, is_news};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::tools;

/// Whether a prompt is a command of ic itself, such as `/ic:undo` or `ic log`.
fn is_command(text: &str) -> bool {
    text.starts_with("/ic:") || text == "ic" || text.strip_prefix("ic ").is_some_and(is_verb_with_arguments)
}

/// Whether a text is a verb with nothing but flags and references after it, and so no sentence that begins with "ic".
fn is_verb_with_arguments(text: &str) -> bool {
    // `undo @~2 --yes` is a command, and `should write a test` is not.
    let is_argument =
        |word: &str| word.starts_with('-') || word.contains([':', '@']) || word.contains(|c: char| c.is_ascii_digit());
    text.lines().count() <= 1 && text.split_whitespace().skip(1).all(is_argument)
}

/// Whether a text may be the id of a session: only characters that are safe in a file name, a terminal and a reference.
pub(super) fn is_id(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (1..=128).contains(&text.len()) && text.chars().all(is_plain)
}

/// A client's id of a call, unchanged if it is a safe id, else its hash. Two ids never become the same.
pub(super) fn plain_id(text: &str) -> Cow<'_, str> {
    if is_id(text) { Cow::Borrowed(text) } else { Cow::Owned(ic_ledger::events::hex(&Sha256::digest(text).into())) }
}

/// The payload of one event.
pub(super) struct Payload<'p>(pub(super) &'p Value);

impl<'p> Payload<'p> {
    pub(super) fn text(&self, key: &str) -> Option<&'p str> {
        // An empty text names nothing, so it counts as absent.
        self.0[key].as_str().filter(|text| !text.is_empty())
    }

    /// The client's id of the subagent that made this event; `None`: the agent itself did.
    pub(super) fn agent_id(&self) -> Option<&'p str> {
        self.text("agent_id").filter(|id| is_id(id))
    }

    pub(super) fn tool(&self) -> &'p str {
        self.text("tool_name").unwrap_or("?")
    }

    /// Reads the tool call, in a tree with this root. `directory`: where the call runs if the payload has no `cwd`.
    pub(super) fn call(&self, directory: &Path, root: &Path) -> tools::ClientCall {
        let directory = self.text("cwd").map_or(directory, Path::new);
        tools::ClientCall::read(&self.0["tool_input"], directory, root)
    }

    /// The client's id of the prompt; `None` if the client has none.
    pub(super) fn prompt_id(&self) -> Option<&'p str> {
        self.text("prompt_id").or_else(|| self.text("turn_id"))
    }

    /// What distinguishes this prompt from every other one of its session: a hook that is called twice for it finds what the first call
    /// recorded.
    pub(super) fn own_id(&self) -> Option<String> {
        let at = || match &self.0["timestamp"] {
            // Without a name the client's time of the event must do: two hooks of one prompt are told the same.
            Value::String(at) if at.len() <= 64 => Some(format!("at {at}")),
            Value::Number(at) => Some(format!("at {at}")),
            _ => None,
        };
        self.prompt_id().map(str::to_owned).or_else(at)
    }

    /// Whether a person typed a command of ic.
    pub(super) fn is_command(&self) -> bool {
        self.text("agent_id").is_none() && self.typed().is_some_and(is_command)
    }

    /// Whether the turn was not begun by a prompt of a person, but by a message that a task has ended, or by a command of ic.
    pub(super) fn is_unprompted(&self) -> bool {
        let is_one = |text: &str| is_news(text) || is_command(text);
        self.text("agent_id").is_none() && self.typed().is_some_and(is_one)
    }

    /// The text of the prompt, without what our own hooks added to it.
    fn typed(&self) -> Option<&'p str> {
        self.text("prompt").map(|text| clients::typed(text.trim()))
    }

    /// The prompt that a person typed; `None` for what clients send themselves: a subagent's task, a message that one ended, a command of
    /// ic.
    pub(super) fn prompt(&self) -> Option<&'p str> {
        let text = self.typed()?;
        let is_of_agent = self.text("agent_id").is_some();
        (!text.is_empty() && !is_command(text) && !is_news(text) && !is_of_agent).then_some(text)
    }
}
