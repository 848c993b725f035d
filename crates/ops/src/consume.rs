//! Consumers of events: who holds a cursor, and the delivery of events to a command.
//!
//! ```text
//!   next event ──► command ──► exit 0 ──► cursor moves past it ──► next event
//!                     │
//!                     └─ anything else, or the death of `ic` at any moment: the cursor stays before it
//! ```
//!
//! The cursor moves after the command ended and in a transaction of its own, so every event is delivered at least once,
//! in order; twice if `ic` dies between the two. A cursor has one consumer at a time: a lock that the operating system
//! ends with its holder, so that a consumer that was killed never blocks the next.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Label, Result, RunId, Seq};
use ic_ledger::Snapshot;
use ic_ledger::events::Event;
use ic_ledger::events::cursor::{self, CursorKey};
use ic_ledger::events::history::{self, HistoryPlace};
use ic_ledger::lock::{FileLock, LockMode, Rank};
use ic_ledger::{path_bytes, private};
use ic_phase::{Run, RunStatus};
use sha2::{Digest, Sha256};

use ic_kernel::Kernel;

/// How long a follower waits after a first failure; twice as long after each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// A consumer that was mended hears of it within a minute.
const LONGEST_DELAY: Duration = Duration::from_mins(1);
/// How often a follower looks for news, and a waiting one whether it is interrupted.
const POLL: Duration = Duration::from_millis(100);

/// A cursor and the right to move it, until it is dropped.
#[derive(Debug)]
pub struct HeldCursor {
    name: Label,
    run_id: Option<RunId>,
    /// Where this machine remembers what the consumer read last.
    memory: PathBuf,
    _lock: FileLock,
}

/// Where this machine keeps what belongs to a cursor, without an extension.
fn file_of(kernel: &Kernel, name: &Label, run_id: Option<&RunId>) -> PathBuf {
    // Two ledgers in one directory may both have a cursor of this name. The ledger's name keeps their files apart.
    let mut digest = Sha256::new();
    for part in
        [path_bytes(&kernel.ledger.name()), name.as_str().as_bytes(), run_id.map_or("", RunId::as_str).as_bytes()]
    {
        digest.update(part);
        // No part has a zero byte, so `a`, `bc` and `ab`, `c` are different files.
        digest.update([0]);
    }
    kernel.store().join("cursors").join(&ic_ledger::events::hex(&digest.finalize().into())[..32])
}

/// The place is kept beside the ledger. In the ledger it would be restored along with it, and the loss of events go unseen.
fn memory_of(file: &Path) -> PathBuf {
    file.with_extension("read")
}

/// What was read last; `None`: nothing, or it is not known.
fn remembered(memory: &Path) -> Option<HistoryPlace> {
    let text = std::fs::read_to_string(memory).ok()?;
    // A place that cannot be read counts as none: the cursor in the ledger says where to continue.
    let (seq, hash) = text.trim().split_once(' ')?;
    Some(HistoryPlace { seq: seq.parse().ok()?, hash: ic_ledger::events::parse_hex(hash)? })
}

fn remember(memory: &Path, read: HistoryPlace) -> Result<()> {
    let fresh = memory.with_extension("new");
    let write = || {
        let mut how = File::options();
        let mut file = how.create(true).write(true).truncate(true).mode(0o600).open(&fresh)?;
        writeln!(file, "{} {}", read.seq, ic_ledger::events::hex(&read.hash))?;
        // By a rename: if the process is killed, the old place or the new one is there, and never half a line.
        // It is not flushed to the disk: after a crash of the machine an older place is there, and still reveals a lost history.
        std::fs::rename(&fresh, memory)
    };
    write().while_doing(|| format!("writing {}", memory.display()))
}

/// Errors: `history_forked` if the ledger has lost what the consumer of this cursor has read.
pub fn require_history(kernel: &Kernel, name: &Label, run_id: Option<&RunId>) -> Result<Option<HistoryPlace>> {
    let read = remembered(&memory_of(&file_of(kernel, name, run_id)));
    if let Some(read) = read {
        kernel.read(|snapshot| history::require(snapshot, read))?;
    }
    Ok(read)
}

impl HeldCursor {
    /// Takes the cursor of this name and scope. Errors: `busy` while another consumer has it past the timeout.
    pub fn take(kernel: &Kernel, name: Label, run_id: Option<RunId>, timeout: Duration) -> Result<Self> {
        let doing = || format!("locking the cursor {:?}", name.as_str());
        private::directories(&kernel.store().join("cursors")).while_doing(doing)?;
        let path = file_of(kernel, &name, run_id.as_ref());
        // The lock is held while a command handles each event. The command may take any other lock: no process waits
        // for a cursor while it holds one of them (`checkpoint/lock.rs`).
        match FileLock::take(&path, Rank::Cursor, LockMode::Exclusive, timeout).while_doing(doing)? {
            Some(lock) => Ok(Self { name, run_id, memory: memory_of(&path), _lock: lock }),
            None => Err(is_held(&name)),
        }
    }

    fn key<'a>(&'a self, kernel: &'a Kernel) -> CursorKey<'a> {
        CursorKey { name: &self.name, seat: kernel.cursor_seat(), run_id: self.run_id.as_ref() }
    }

    /// The last event that the cursor has consumed.
    pub fn position(&self, kernel: &Kernel) -> Result<Seq> {
        kernel.read(|snapshot| cursor::position(snapshot, self.key(kernel)))
    }

    /// Errors: `history_forked` if the ledger has lost what was read. The cursor is there then, so that it can be moved by its name.
    pub fn require_history(&self, kernel: &Kernel) -> Result<Option<HistoryPlace>> {
        require_history(kernel, &self.name, self.run_id.as_ref()).inspect_err(|_| {
            // The place stays unread either way. If the cursor cannot be registered, it is only missing from the list.
            let _ = register(kernel, &self.name, self.run_id.as_ref());
        })
    }

    /// Moves it forward past an event. A dispatch that was rolled back may still consume: the cursor's record belongs to no work.
    pub fn advance_to(&self, kernel: &Kernel, read: HistoryPlace) -> Result<()> {
        let now = kernel.context.now();
        kernel.ledger.write(|tx| cursor::advance_to(tx, now, self.key(kernel), read.seq))?;
        // The ledger is written first. After a crash in between, the older place is remembered, and the next event is read from the
        // ledger's cursor.
        remember(&self.memory, read)
    }
}

/// The runs of this project that are over, and that a cursor of this name has not read to their end, oldest first.
///
/// `@` names the open run. A consumer that calls with it would never see how a run ended: by then `@` is another run, or none.
pub fn left_behind(kernel: &Kernel, name: &Label) -> Result<Vec<RunId>> {
    let project = &kernel.project;
    let is_here = |run: &Run| {
        let mut levels = project.directory.ancestors().take_while(|level| level.starts_with(&project.root));
        levels.any(|level| level == run.project_dir)
    };
    let is_open = |run: &Run| matches!(run.status, RunStatus::Active | RunStatus::RollingBack);
    kernel.read(|snapshot| {
        let mut left = Vec::new();
        for cursor in of_name(kernel, snapshot, name)? {
            let Some(id) = cursor.run_id else { continue };
            let run = ic_phase::run::get(snapshot, &id)?;
            let has_more = next_in(snapshot, Some(&id), cursor.seq)?.is_some();
            if has_more && is_here(&run) && !is_open(&run) {
                left.push(run);
            }
        }
        left.sort_by_key(|run| run.seq);
        Ok(left.into_iter().map(|run| run.id).collect())
    })
}

/// The cursors of this name that are the caller's own.
fn of_name(kernel: &Kernel, snapshot: &Snapshot<'_>, name: &Label) -> Result<Vec<cursor::Cursor>> {
    let mut cursors = cursor::list(snapshot)?;
    cursors.retain(|cursor| cursor.name == name.as_str() && cursor.seat == kernel.cursor_seat());
    Ok(cursors)
}

fn is_held(name: &Label) -> Diagnosis {
    Diagnosis::new(Code::Busy, format!("Another consumer reads with the cursor {:?}.", name.as_str()))
        .hint("give each consumer a cursor of its own, or wait longer with --busy-timeout")
        .detail("cursor", name.as_str())
}

/// What is to be delivered, and to what.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// Run by `sh -c` in the project, once for each event.
    pub command: &'a str,
    /// The number of events after which it ends; `None`: no limit.
    pub limit: Option<i64>,
    /// Wait for events to come, and try a failed delivery again.
    pub follow: bool,
    /// Set from elsewhere: the running command ends, its event is left, and no other begins.
    pub interrupted: Arc<AtomicBool>,
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// Everything that was asked for was delivered.
    Done,
    /// It was interrupted; the next delivery begins with the event that was left.
    Interrupted,
}

/// Delivers what follows a cursor to a command: the event, as `encode` writes it, on its standard input.
///
/// `failed` hears of each failure that is tried again, and after how long. Errors: `consumer_failed` if the command does not
/// end with 0 and nothing is tried again: the cursor stays before that event.
pub fn deliver(
    kernel: &Kernel,
    held: &HeldCursor,
    delivery: &Delivery<'_>,
    encode: impl Fn(&Event) -> Result<Vec<u8>>,
    mut failed: impl FnMut(&Diagnosis, Duration),
) -> Result<DeliveryEnd> {
    let is_interrupted = || delivery.interrupted.load(Ordering::SeqCst);
    // From now on the cursor is listed, and can be committed or reset by name, even if no event is delivered.
    register(kernel, &held.name, held.run_id.as_ref())?;
    let mut last = held.require_history(kernel)?;
    let mut at = held.position(kernel)?;
    let mut left = delivery.limit.unwrap_or(i64::MAX);
    let mut delay = FIRST_DELAY;
    while left > 0 && !is_interrupted() {
        // The version is read before the event: an event that is recorded in between changes it, and the wait ends at once.
        let version = if delivery.follow { Some(kernel.ledger.data_version()?) } else { None };
        let found = kernel.read(|snapshot| {
            // Without `follow` this was asked once, above. A follower asks in the view that it reads the event from: the
            // ledger may be replaced while it waits.
            if delivery.follow
                && let Some(last) = last
            {
                history::require(snapshot, last)?;
            }
            next_in(snapshot, held.run_id.as_ref(), at)
        });
        let Some(event) = found? else {
            if !delivery.follow {
                return Ok(DeliveryEnd::Done);
            }
            wait_for_news(kernel, version, &is_interrupted)?;
            continue;
        };
        // Outside of any transaction: the command may take minutes, and may itself write to the ledger.
        let status = hand_over(kernel, delivery.command, &event, &encode(&event)?)?;
        // Whatever the command made of it, the event counts as not delivered, and the next delivery begins with it.
        if is_interrupted() {
            break;
        }
        if status.success() {
            let read = HistoryPlace { seq: event.seq, hash: event.hash };
            held.advance_to(kernel, read)?;
            last = Some(read);
            (at, left, delay) = (event.seq, left - 1, FIRST_DELAY);
            continue;
        }
        let failure = failure(held, &event, status);
        if !delivery.follow {
            return Err(failure);
        }
        failed(&failure, delay);
        pause(delay, &is_interrupted);
        delay = LONGEST_DELAY.min(delay * 2);
    }
    Ok(if left == 0 { DeliveryEnd::Done } else { DeliveryEnd::Interrupted })
}

fn next_in(snapshot: &Snapshot<'_>, run_id: Option<&RunId>, at: Seq) -> Result<Option<Event>> {
    let mut found = None;
    ic_ledger::events::each_since(snapshot, run_id, at, 1, |event| {
        found = Some(event);
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Runs the command with the event on its standard input, and waits for its end.
fn hand_over(kernel: &Kernel, command: &str, event: &Event, text: &[u8]) -> Result<ExitStatus> {
    let doing = || "running the command of --each".to_owned();
    // The whole event is in memory before the command begins. With a pipe, a command that reads nothing would block the writer.
    let mut input = ic_sys::memory_file::create().while_doing(doing)?;
    input.write_all(text).and_then(|()| input.rewind()).while_doing(doing)?;
    Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(&kernel.project.root)
        .env("IC_EVENT_SEQ", event.seq.to_string())
        .env("IC_EVENT_TYPE", &event.event_type)
        .stdin(input)
        // A process group of its own, so that Ctrl-C at the terminal reaches `ic` alone, and the command is not cut off in its event.
        .process_group(0)
        .status()
        .while_doing(doing)
}

fn failure(held: &HeldCursor, event: &Event, status: ExitStatus) -> Diagnosis {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    };
    Diagnosis::new(
        Code::ConsumerFailed,
        format!("The command {how} on event {}; the cursor stays before it.", event.seq),
    )
    .hint(format!(
        "run it again once the command works; to skip the event: ic events cursor commit {} {}{}",
        ic_base::shell_word(held.name.as_str()),
        event.seq,
        held.run_id.as_ref().map_or_else(String::new, |run| format!(" --run {}", run.short()))
    ))
    .detail("seq", event.seq)
    .detail("exit_status", status.code())
    .detail("signal", status.signal())
}

/// Sleeps until the ledger is no longer at `version`, or the interruption.
fn wait_for_news(kernel: &Kernel, version: Option<i64>, is_interrupted: &impl Fn() -> bool) -> Result<()> {
    while !is_interrupted() && Some(kernel.ledger.data_version()?) == version {
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn pause(delay: Duration, is_interrupted: &impl Fn() -> bool) {
    let started = Instant::now();
    while !is_interrupted() && started.elapsed() < delay {
        std::thread::sleep(POLL.min(delay));
    }
}

/// Says that everything up to `seq` was handled by a consumer with a loop of its own, and returns the cursor.
///
/// Errors: those of [`cursor::commit`], and `busy` while another consumer has the cursor.
pub fn commit(kernel: &Kernel, held: &HeldCursor, seq: Seq, back: bool) -> Result<cursor::Cursor> {
    let now = kernel.context.now();
    // This writes by the ledger and not by `Kernel::write`, as `HeldCursor::advance_to` does: a cursor belongs to no
    // work.
    let (moved, read) = kernel.ledger.write(|tx| {
        let moved = cursor::commit(tx, now, held.key(kernel), seq, back)?;
        Ok((moved, history::place(tx, seq)?))
    })?;
    // Remembering the place says that this history is the one to continue with.
    match read {
        Some(read) => remember(&held.memory, read)?,
        None => forget(&held.memory)?,
    }
    Ok(moved)
}

fn forget(memory: &Path) -> Result<()> {
    match std::fs::remove_file(memory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.while_doing(|| format!("removing {}", memory.display())),
    }
}

/// Resets every cursor of this name to before the first event, and returns them.
///
/// Errors: `cursor_not_found`, and `busy` while a consumer has one of them: it would move it forward again.
pub fn reset(kernel: &Kernel, name: &Label, timeout: Duration) -> Result<Vec<cursor::Cursor>> {
    let cursors = kernel.read(|snapshot| of_name(kernel, snapshot, name))?;
    // The locks are taken in the order of the list, so that two resets never wait for each other.
    let held: Vec<HeldCursor> = cursors
        .into_iter()
        .map(|cursor| HeldCursor::take(kernel, name.clone(), cursor.run_id, timeout))
        .collect::<Result<_>>()?;
    // The cursors are reset first: after a crash in between, a memory names an event that the ledger still has, which
    // refuses nothing.
    let reset = kernel.write(|tx, now| cursor::reset(tx, now, name, kernel.cursor_seat()))?;
    for held in &held {
        forget(&held.memory)?;
    }
    Ok(reset)
}

/// Makes a cursor that a consumer only peeks with, so that it can be committed. An existing one is left unchanged.
pub fn register(kernel: &Kernel, name: &Label, run_id: Option<&RunId>) -> Result<()> {
    let key = CursorKey { name, seat: kernel.cursor_seat(), run_id };
    // Asked first: a ledger that may only be read can still be peeked at.
    if kernel.read(|snapshot| cursor::exists(snapshot, key))? {
        return Ok(());
    }
    let now = kernel.context.now();
    kernel.ledger.write(|tx| cursor::create(tx, now, key))
}
