//! The conversation of an agent as it was before a prompt, in a copy of the client's own record: the client continues that one, and does not
//! know of the prompt. The record itself is never changed.
//!
//! ```text
//!   record:  session ── prompt 1 ── answer ── prompt 2 ── answer ── prompt 3        is not changed
//!   copy:    session ── prompt 1 ── answer                                          before prompt 2, under a new id
//! ```

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use serde_json::Value;

/// Before which prompt of which session a conversation is cut.
#[derive(Debug, Clone, Copy)]
pub struct ConversationCut<'a> {
    /// The client's name of the session.
    pub session: &'a str,
    /// The client's name of the prompt, if it has one.
    pub prompt: Option<&'a str>,
    /// The size of the record when the prompt was given, in bytes.
    pub start: Option<u64>,
    /// The file of the record, and its text; `None`: the client keeps none, or it is gone.
    pub record: Option<(&'a Path, &'a [u8])>,
    /// A new id for the copy.
    pub new_id: &'a str,
    /// Where copies are kept that the client takes from anywhere.
    pub store: &'a Path,
    /// The project in which the session worked.
    pub project: &'a Path,
    /// The directory in which the conversation is to be continued.
    pub place: &'a Path,
}

/// A client that can continue a conversation from before one of its prompts.
pub trait Conversations: std::fmt::Debug + Sync {
    /// The client's own command that continues it, after the copy that the command needs was made. The name of its program alone: nothing
    /// was said before the prompt.
    ///
    /// Errors: `no_conversation` if the record is gone, or does not tell where the prompt begins.
    fn before(&self, cut: &ConversationCut<'_>) -> Result<Vec<String>>;
}

impl ConversationCut<'_> {
    /// The record's file and text. Errors: `no_conversation`.
    pub(crate) fn record(&self) -> Result<(&Path, &[u8])> {
        self.record.ok_or_else(|| unknown("The client's own record of the session is gone."))
    }

    /// The part of the record that was there when the prompt was given. Errors: `no_conversation`.
    pub(crate) fn earlier(&self) -> Result<&[u8]> {
        let (_, text) = self.record()?;
        let start = self.start.and_then(|start| usize::try_from(start).ok());
        start
            // A record that is shorter now than it was then is another one.
            .and_then(|start| text.get(..start))
            .ok_or_else(|| unknown("It is not known where the prompt begins in the client's record."))
    }
}

/// The lines of a record as JSON, each with the byte after its end.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, Value)> {
    let mut end = 0;
    text.split_inclusive(|byte| *byte == b'\n').filter_map(move |line| {
        // The line is counted before it is parsed: a line that is not JSON is left out, and the next one still ends where it does.
        end += line.len();
        Some((end, serde_json::from_slice(line).ok()?))
    })
}

/// A copy of a record below a new id, in its first line too: a client that finds the old one there takes the copy for the session itself.
pub(crate) fn renamed(text: &[u8], old: &str, new: &str) -> Vec<u8> {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let mut copy = String::from_utf8_lossy(first).replace(old, new).into_bytes();
    // The rest is unchanged: what was said may have the id in it.
    copy.extend_from_slice(rest);
    copy
}

/// Writes a copy that only its user can read, with the directories above it. Errors: `io_error`; a file of this name is left alone.
pub(crate) fn write_copy(path: &Path, text: &[u8]) -> Result<()> {
    let doing = || format!("writing {}", path.display());
    if let Some(parent) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).while_doing(doing)?;
    }
    // `create_new` writes through neither a file nor a link that is there already.
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).while_doing(doing)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a conversation is worse than none; what failed is told below.
        let _ = std::fs::remove_file(path);
    }
    written.while_doing(doing)
}

pub(crate) fn unknown(why: &str) -> Diagnosis {
    Diagnosis::new(Code::NoConversation, why)
        .hint("the files can be undone without it; in the client, its own command to rewind or to begin anew goes back")
}

pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
