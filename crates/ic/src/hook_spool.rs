//! `unsent.jsonl`: what hooks could not tell the server of the ledger, an event a line, in the project's own store.
//!
//! A line is on the disk before the hook ends, because nothing else remembers it. The file is bounded: of what comes beyond, the number is
//! kept, as the length of `unsent.more`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ic_base::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// Some thousand events: more than a working day of an agent.
const LONGEST: u64 = 2 * 1024 * 1024;

/// An event of a client that the ledger does not have, or has in part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Unsent {
    /// When it came, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The client.
    pub(crate) client: String,
    /// Its event.
    pub(crate) event: String,
    /// Its session, as the client calls it.
    pub(crate) session: Option<String>,
    /// Its prompt, as the client calls it.
    pub(crate) prompt: Option<String>,
    /// What the prompt says: one short line, masked.
    pub(crate) title: Option<String>,
    /// The tool that was called.
    pub(crate) tool: Option<String>,
    /// The call, as the client calls it.
    pub(crate) call: Option<String>,
    /// The code of what stood in the way.
    pub(crate) code: String,
}

/// What waits in a store.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The file.
    pub(crate) file: PathBuf,
    /// The events in it, oldest first.
    pub(crate) events: Vec<Unsent>,
    /// How many came that it had no room for.
    pub(crate) more: u64,
}

impl Waiting {
    /// What is to be said of it; `None`: there is nothing.
    pub(crate) fn said(&self) -> Option<String> {
        let last = self.events.last()?;
        let count = self.events.len() as u64 + self.more;
        let events = ic_base::said::counted(usize::try_from(count).unwrap_or(usize::MAX), "event");
        Some(format!(
            "{events} of hooks could not be recorded in the ledger on its server, the last at {}. {} keeps {}; remove it when you have read it.",
            ic_base::said::second(Timestamp(last.at)),
            self.file.display(),
            if self.more == 0 { "them".to_owned() } else { format!("the first {}", self.events.len()) },
        ))
    }
}

fn open(path: &Path) -> Option<File> {
    // What lies there in its place is neither waited for nor followed.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut how = File::options();
    how.create(true).append(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    how.open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))
}

/// Keeps an event. What cannot be written is lost, and `hooks.log` names it: an agent is not held up for it.
pub(crate) fn keep(store: &Path, event: &Unsent) {
    let path = store.join("unsent.jsonl");
    if fs::metadata(&path).is_ok_and(|found| found.len() >= LONGEST) {
        if let Some(mut file) = open(&store.join("unsent.more")) {
            let _ = file.write_all(b".");
        }
        return;
    }
    let Ok(mut text) = serde_json::to_vec(event) else { return };
    text.push(b'\n');
    // One write at the end of the file: lines of hooks that run at once do not mix.
    if let Some(mut file) = open(&path) {
        let _ = file.write_all(&text).and_then(|()| file.sync_data());
    }
}

/// What waits in a store. What is no line of ours is passed over.
pub(crate) fn read(store: &Path) -> Waiting {
    let file = store.join("unsent.jsonl");
    let text = fs::read(&file).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let events = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let more = fs::metadata(store.join("unsent.more")).map_or(0, |found| found.len());
    Waiting { file, events, more }
}
