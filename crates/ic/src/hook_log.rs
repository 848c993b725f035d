//! `hooks.log`: one line for each call of a hook, beside the ledger. Its size is bounded, and only `ic hooks doctor` reads it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use ic_base::{Timestamp, title};
use ic_checkpoint::tree::Reason;
use ic_worktree::{LEFT_OUT, is_left_out_for};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// A longer file, in bytes, is replaced by its newer half.
const LONGEST: u64 = 512 * 1024;

/// One call of a hook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HookLogLine {
    /// When it ended, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The client that called, as `claude-code`.
    pub(crate) client: String,
    /// The client's name of the event.
    pub(crate) event: String,
    /// How long the hook took, in milliseconds.
    pub(crate) ms: u64,
    /// The code of the error or warning; `None` if all went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// The message of that error or warning, in one short line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl HookLogLine {
    pub(crate) fn new(client: &str, event: &str, took: Duration) -> Self {
        Self {
            at: crate::environment::CliEnvironment::context().now().millis(),
            client: title(client),
            event: title(event),
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            code: None,
            message: None,
        }
    }

    /// The same with an error or warning. The first one stays, unless it is only a note and this one is not.
    pub(crate) fn saying(self, code: &str, message: &str) -> Self {
        // A line has little room: of files that were left out, it keeps the names.
        let message = title(message.strip_prefix(LEFT_OUT).unwrap_or(message));
        let said = Self { code: Some(code.to_owned()), message: Some(message), ..self.clone() };
        if self.code.is_none() || self.is_note() && !said.is_note() { said } else { self }
    }

    /// Whether nothing failed: files were left out of a capture by a rule.
    pub(crate) fn is_note(&self) -> bool {
        let is_unread = self.message.as_ref().is_some_and(|message| is_left_out_for(message, Reason::Unreadable));
        self.code.as_deref() == Some("left_out") && !is_unread
    }

    /// The names of the files that were left out, if this is a note.
    pub(crate) fn left_out(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// When the hook ended, by this machine's clock.
    pub(crate) fn ended_at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// Adds a line. If it cannot be written it is lost, because an agent waits.
pub(crate) fn append(store: &Path, line: &HookLogLine) {
    let path = store.join("hooks.log");
    if fs::metadata(&path).is_ok_and(|found| found.len() > LONGEST) {
        // Half of it stays, so that the next calls append again and do not rewrite the file each time.
        let newer = read(store);
        let text: String = newer[newer.len() / 2..]
            .iter()
            .filter_map(|line| serde_json::to_string(line).ok())
            .map(|line| line + "\n")
            .collect();
        // Lines that other hooks write until the rename are lost: the log is for people, and not worth a lock.
        let fresh = store.join("hooks.log.new");
        if fs::write(&fresh, text).is_ok() {
            let _ = fs::rename(&fresh, &path);
        }
    }
    let Ok(mut text) = serde_json::to_vec(line) else { return };
    text.push(b'\n');
    // One write at the end of the file: lines of hooks that run at the same time do not mix.
    if let Some(mut file) = open(&path) {
        let _ = file.write_all(&text);
    }
}

/// Opens a file of the store to append to it; `None` if something other than a regular file is there.
pub(crate) fn open(path: &Path) -> Option<File> {
    // A link in its place is not followed, and opening a pipe does not block.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut how = File::options();
    how.create(true).append(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    // The open file is asked, so that nothing can take its place in between.
    how.open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))
}

/// The lines, oldest first. Lines that ic did not write are skipped.
pub(crate) fn read(store: &Path) -> Vec<HookLogLine> {
    let text = fs::read(store.join("hooks.log")).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_hides_no_failure_of_the_same_call() {
        let line = HookLogLine::new("codex", "Stop", Duration::ZERO);
        let noted = line.clone().saying("left_out", &format!("{LEFT_OUT}.env (secret)"));
        assert_eq!((noted.is_note(), noted.left_out()), (true, ".env (secret)"));
        let failed = noted.clone().saying("checkpoint_failed", "the disk is full");
        assert_eq!((failed.is_note(), failed.code.as_deref()), (false, Some("checkpoint_failed")));
        assert_eq!(failed.clone().saying("left_out", ".env (secret)").code, failed.code);
        // What could not be read was to be captured.
        assert!(!line.saying("left_out", &format!("{LEFT_OUT}key (unreadable)")).is_note());
    }
}
