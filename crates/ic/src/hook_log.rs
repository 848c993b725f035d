//! `hooks.log`: what hooks did, a line each, beside the ledger. It is bounded, and only ever read by `ic hooks doctor`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use ic_base::{Timestamp, title};
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

    /// The same, with what went wrong. What is said first stays.
    pub(crate) fn saying(self, code: &str, message: &str) -> Self {
        match self.code {
            Some(_) => self,
            None => Self { code: Some(code.to_owned()), message: Some(title(message)), ..self },
        }
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
