//! `hooks.log`: what hooks did, a line each, beside the ledger. It is bounded, and only ever read by `ic hooks doctor`.

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

/// The file is begun anew with its newer half when it is longer.
const LONGEST: u64 = 512 * 1024;

/// One call of a hook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// When it ended, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The client.
    pub(crate) client: String,
    /// Its event.
    pub(crate) event: String,
    /// How long it took.
    pub(crate) ms: u64,
    /// The code of what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl Line {
    pub(crate) fn new(client: &str, event: &str, took: Duration) -> Self {
        Self {
            at: crate::environment::Environment::context().now().millis(),
            client: title(client),
            event: title(event),
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            code: None,
            message: None,
        }
    }

    /// The same, with what went wrong. What is said first stays, save a note beside a failure.
    pub(crate) fn saying(self, code: &str, message: &str) -> Self {
        // A line has little room: of what was left out, the names are what is kept.
        let message = title(message.strip_prefix(LEFT_OUT).unwrap_or(message));
        let said = Self { code: Some(code.to_owned()), message: Some(message), ..self.clone() };
        if self.code.is_none() || self.is_note() && !said.is_note() { said } else { self }
    }

    /// Whether nothing failed: what is said is so by a rule.
    pub(crate) fn is_note(&self) -> bool {
        let is_unread =
            self.message.as_ref().is_some_and(|message| is_left_out_for(message, Reason::Unreadable));
        self.code.as_deref() == Some("left_out") && !is_unread
    }

    /// Of a note, what is left out.
    pub(crate) fn left_out(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// When it ended.
    pub(crate) fn ended_at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// Adds a line. What cannot be written is lost: an agent is not held up for it.
pub(crate) fn append(store: &Path, line: &Line) {
    let path = store.join("hooks.log");
    if fs::metadata(&path).is_ok_and(|found| found.len() > LONGEST) {
        let newer = read(store);
        let text: String = newer[newer.len() / 2..]
            .iter()
            .filter_map(|line| serde_json::to_string(line).ok())
            .map(|line| line + "\n")
            .collect();
        let fresh = store.join("hooks.log.new");
        if fs::write(&fresh, text).is_ok() {
            let _ = fs::rename(&fresh, &path);
        }
    }
    let Ok(mut text) = serde_json::to_vec(line) else { return };
    text.push(b'\n');
    // One write at the end of the file: lines of hooks that run at once do not mix.
    // What lies there in its place is neither waited for nor followed.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut how = File::options();
    how.create(true).append(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    if let Ok(mut file) = how.open(&path)
        && file.metadata().is_ok_and(|found| found.is_file())
    {
        let _ = file.write_all(&text);
    }
}

/// The lines, oldest first. What is no line of ours is passed over.
pub(crate) fn read(store: &Path) -> Vec<Line> {
    let text = fs::read(store.join("hooks.log")).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_hides_no_failure_of_the_same_call() {
        let line = Line::new("codex", "Stop", Duration::ZERO);
        let noted = line.clone().saying("left_out", &format!("{LEFT_OUT}.env (secret)"));
        assert_eq!((noted.is_note(), noted.left_out()), (true, ".env (secret)"));
        let failed = noted.clone().saying("checkpoint_failed", "the disk is full");
        assert_eq!((failed.is_note(), failed.code.as_deref()), (false, Some("checkpoint_failed")));
        assert_eq!(failed.clone().saying("left_out", ".env (secret)").code, failed.code);
        // What could not be read was to be captured.
        assert!(!line.saying("left_out", &format!("{LEFT_OUT}key (unreadable)")).is_note());
    }
}
