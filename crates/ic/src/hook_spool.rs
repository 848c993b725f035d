//! `unsent.jsonl`: events that hooks could not record in the ledger in time, one a line, in the project's own store. The ledger's server did
//! not answer, or other processes wrote the ledger for too long.
//!
//! A line is on the disk before the hook ends, because nothing else remembers it. The file is bounded: of the events beyond its limit only
//! the number is kept, as the length of `unsent.more`. The next hook that reaches the ledger records the lines in their order. After each,
//! it writes how many are recorded to `unsent.done`. So a hook that is killed repeats one line at most, which the ledger recognizes. A hook
//! that writes or replays holds `unsent.lock`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result, Timestamp};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::hook_log::open;

/// In bytes: some thousand events, more than a working day of an agent.
const LONGEST: u64 = 2 * 1024 * 1024;

/// An event of a client that the ledger does not have, or has in part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Unsent {
    /// When it came, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The client that told it, as `claude-code`.
    pub(crate) client: String,
    /// The client's name of the event.
    pub(crate) event: String,
    /// The top of the work tree that it is of.
    #[serde(default)]
    pub(crate) root: Option<PathBuf>,
    /// The client's id of the session.
    pub(crate) session: Option<String>,
    /// The client's id of the prompt, or the time of it.
    pub(crate) prompt: Option<String>,
    /// The beginning of the prompt: one short line, masked.
    pub(crate) title: Option<String>,
    /// The tool that was called.
    pub(crate) tool: Option<String>,
    /// The client's id of the call.
    pub(crate) call: Option<String>,
    /// The code of the error that kept it from being recorded.
    pub(crate) code: String,
}

/// The events that wait in a store.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The path of `unsent.jsonl`.
    pub(crate) file: PathBuf,
    /// The events in it, oldest first.
    pub(crate) events: Vec<Unsent>,
    /// How many more events came when it was full; they are lost.
    pub(crate) more: u64,
}

impl Waiting {
    /// The warning for people; `None` if no event waits.
    pub(crate) fn said(&self) -> Option<String> {
        let last = self.events.last()?;
        let count = self.events.len() as u64 + self.more;
        let events = ic_base::display::counted(usize::try_from(count).unwrap_or(usize::MAX), "event");
        Some(format!(
            "{events} of hooks could not be recorded in the ledger, the last at {}. {} keeps {}, and the next hook that reaches the ledger \
             records what is kept.",
            ic_base::display::second(Timestamp(last.at)),
            self.file.display(),
            match (self.more, count) {
                (0, 1) => "it".to_owned(),
                (0, _) => "them".to_owned(),
                _ => format!("the first {}", self.events.len()),
            },
        ))
    }
}

/// Keeps an event. If it cannot be written it is lost, and `hooks.log` names it, because an agent waits.
pub(crate) fn keep(store: &Path, event: &Unsent) {
    // Also without the lock, after [`PATIENCE`]: a line that is repeated or out of order is better than one that is lost.
    let lock = lock(store);
    let path = store.join("unsent.jsonl");
    if fs::metadata(&path).is_ok_and(|found| found.len() >= LONGEST) {
        // A byte for each: appending needs no read, so that two hooks at the same time count both.
        if let Some(mut file) = open(&store.join("unsent.more")) {
            let _ = file.write_all(b".");
        }
        return;
    }
    let Ok(mut text) = serde_json::to_vec(event) else { return };
    text.push(b'\n');
    // One write at the end of the file: lines of hooks that run at the same time do not mix.
    if let Some(mut file) = open(&path) {
        let length = file.metadata().map(|found| found.len());
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        // The next event would be appended to half a line. Without the lock that half may be followed by another line.
        if let (Err(_), Ok(length), Some(_)) = (written, length, lock) {
            let _ = file.set_len(length);
        }
    }
}

/// The events that wait in a store. Lines that ic did not write are skipped.
pub(crate) fn read(store: &Path) -> Waiting {
    // unsent.jsonl  {"at":1764000000000,"client":"codex",...}  an event a line
    // unsent.more   ...                                        a byte for each event that came when the file was full
    // unsent.done   {"first":"{\"at\":...","count":2}           the first two lines are recorded
    let file = store.join("unsent.jsonl");
    let lines = lines(store).unwrap_or_default();
    let events = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let more = fs::metadata(store.join("unsent.more")).map_or(0, |found| found.len());
    Waiting { file, events, more }
}

/// How many lines of a file are recorded. `first` is its first line: a progress of a file that was removed is not used for a new one.
#[derive(Debug, Serialize, Deserialize)]
struct Progress {
    first: String,
    count: usize,
}

/// The events that wait, locked for this process.
#[derive(Debug)]
pub(crate) struct TakenEvents {
    store: PathBuf,
    lines: Vec<String>,
    done: usize,
    is_begun: bool,
    _lock: File,
}

/// How long a hook waits for another process that writes or replays.
const PATIENCE: Duration = Duration::from_secs(2);

fn lock(store: &Path) -> Option<File> {
    let file = open(&store.join("unsent.lock"))?;
    let since = Instant::now();
    loop {
        // The lock is tried again and again, because a call that blocks has no limit of time.
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(file),
            Err(_) if since.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return None,
        }
    }
}

/// Locks and reads the events that wait; `None` if there are none. Errors: `busy` while another hook records them.
pub(crate) fn take(store: &Path) -> Result<Option<TakenEvents>> {
    // This is asked without the lock: most hooks find no file, and should not wait.
    if !store.join("unsent.jsonl").is_file() {
        return Ok(None);
    }
    let busy = || Diagnosis::new(Code::Busy, "Another hook records the events that waited.");
    let lock = lock(store).ok_or_else(busy)?;
    let Some(lines) = lines(store) else { return Ok(None) };
    let progress = fs::read(store.join("unsent.done")).unwrap_or_default();
    let progress: Option<Progress> = serde_json::from_slice(&progress).ok();
    let of_this = progress.filter(|progress| lines.first() == Some(&progress.first));
    // Without a count all lines are recorded again: the ledger recognizes those that it has.
    let done = of_this.map_or(0, |progress| progress.count);
    Ok(Some(TakenEvents { store: store.to_owned(), lines, done, is_begun: done > 0, _lock: lock }))
}

fn lines(store: &Path) -> Option<Vec<String>> {
    // The text is not read as UTF-8: a full disk cuts a line anywhere, and one line must not keep the others waiting.
    let text = fs::read(store.join("unsent.jsonl")).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

impl TakenEvents {
    /// The oldest event that is not recorded. Lines that `ic` did not write are skipped.
    pub(crate) fn oldest(&mut self) -> Option<Unsent> {
        loop {
            if self.done == self.lines.len() {
                // A hook that waited too long for the lock adds its line without it.
                self.lines = lines(&self.store).filter(|now| now.len() > self.done)?;
            }
            match serde_json::from_str(&self.lines[self.done]) {
                Ok(event) => return Some(event),
                Err(_) => self.done += 1,
            }
        }
    }

    /// Whether some of it was recorded before. A file with no line of ours in it is left for a person to look at.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Writes down that the oldest event is recorded.
    pub(crate) fn is_recorded(&mut self) {
        self.done += 1;
        let first = self.lines.first().cloned().unwrap_or_default();
        let Ok(text) = serde_json::to_vec(&Progress { first, count: self.done }) else { return };
        // The count is not flushed: if a power loss removes it, the ledger recognizes the lines that come again.
        let (new, path) = (self.store.join("unsent.done.new"), self.store.join("unsent.done"));
        // Written whole and renamed: half a number would make the next hook record everything again.
        let _ = fs::write(&new, text).and_then(|()| fs::rename(new, path));
    }

    /// Removes the files when everything is recorded. The lines go first: `unsent.done` without them means nothing, but not the reverse.
    pub(crate) fn end(self) {
        for name in ["unsent.jsonl", "unsent.done", "unsent.more"] {
            let _ = fs::remove_file(self.store.join(name));
        }
    }
}
