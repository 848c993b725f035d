//! One connection to the ledger's file: how it is opened, how it waits, how it is configured.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnosis, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{NO_ROOM, diagnose, is_busy};
use crate::{log, private};

/// How a ledger is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// How long a call waits for other writers before it fails with `busy`.
    pub busy_timeout: Duration,
    /// How long a ledger on a server is waited for; `None`: as long as its URL and `busy_timeout` say.
    pub patience: Option<Patience>,
}

/// How long a caller that must not be delayed, such as a hook, waits for a server.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until it has answered once: the address, the connection, TLS and the password included.
    pub silence: Duration,
    /// For all its answers together. A server that answered once is up, but may be far away or busy.
    pub all: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        // A writer's turn takes milliseconds: after this long, the lock is held by a stopped process or a foreign
        // transaction.
        Self { busy_timeout: Duration::from_secs(5), patience: None }
    }
}

/// An open connection, which waits politely.
pub(crate) struct OpenedLedger {
    pub(crate) connection: Connection,
    pub(crate) in_a_hurry: InAHurry,
    /// Set if the disk had no room for the shared memory of the log: then no other process has the file open, and nothing is written.
    pub(crate) alone: Option<Alone>,
}

/// The files that this process has open alone, each with the thread that opened it. Another connection of the same thread would wait for
/// the first, which only that thread closes; those of other threads take turns.
static HELD_ALONE: Mutex<Vec<(ThreadId, PathBuf)>> = Mutex::new(Vec::new());

/// A file that this process has open alone, for as long as this lives.
pub(crate) struct Alone((ThreadId, PathBuf));

impl Alone {
    fn hold(path: &Path) -> Self {
        let held = (thread::current().id(), path.to_owned());
        held_alone().push(held.clone());
        Self(held)
    }

    /// Whether this thread has it open alone.
    fn is_held(path: &Path) -> bool {
        let here = thread::current().id();
        held_alone().iter().any(|(thread, held)| *thread == here && held == path)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let mut held = held_alone();
        if let Some(at) = held.iter().position(|one| *one == self.0) {
            held.swap_remove(at);
        }
    }
}

fn held_alone() -> MutexGuard<'static, Vec<(ThreadId, PathBuf)>> {
    HELD_ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens and configures a connection to the ledger; waits out other processes' start and end.
pub(crate) fn connect(path: &Path, options: OpenOptions) -> Result<OpenedLedger> {
    let opened = open(path, options, &format!("opening the ledger {}", path.display()))?;
    configure(&opened.connection)?;
    Ok(opened)
}

/// Opens a database with a write-ahead log, also on a disk that is full to its last byte.
///
/// The first process that opens the database makes a file of shared memory beside it. Without room for that file, a process can still read
/// if it has the database for itself: it keeps that index in its own memory. If another process has it open, the file exists, and the first
/// try succeeds.
pub(crate) fn open(path: &Path, options: OpenOptions, doing: &str) -> Result<OpenedLedger> {
    if Alone::is_held(path) {
        return Err(no_room(path));
    }
    let started = Instant::now();
    let mut state = u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    loop {
        match open_with(path, options, doing, false) {
            Err(error) if error.code() == Code::DiskFull => {}
            opened => return opened,
        }
        // The disk is full, so the file of shared memory cannot be made. Reading alone needs none.
        match open_with(path, options, doing, true) {
            // Two processes that come here at once hold the file shared, and neither would ever have it alone. So each closes it before it
            // tries again, after a random pause.
            Err(error) if error.code() == Code::Busy && started.elapsed() < options.busy_timeout => {
                state = next_random(state);
                thread::sleep(Duration::from_micros(500 + state % 20_000));
            }
            opened => return opened,
        }
    }
}

/// `is_alone`: to look only. A process that wrote here would keep all others away for as long as it lives, and there is no room anyway.
fn open_with(path: &Path, options: OpenOptions, doing: &str, is_alone: bool) -> Result<OpenedLedger> {
    ic_sys::directory_sync::once_a_log();
    // An earlier call under a umask that takes bits from the owner left files that refuse every write.
    for suffix in ["-wal", "-shm"] {
        // An error is ignored: most often neither file is there. One that stays unusable shows by what SQLite reports.
        let _ = private::mend(&log::sibling(path, suffix));
    }
    // Without SQLITE_OPEN_CREATE: a mistyped path must not become an empty database. NO_MUTEX, because one
    // thread at a time uses a connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|e| diagnose(e, doing))?;
    let in_a_hurry = wait_politely(&mut connection, options.busy_timeout)?;
    // Before the first access: only then does SQLite keep the index of the log in its own memory
    // (<https://sqlite.org/wal.html#noshm>).
    if is_alone {
        connection
            .execute_batch("PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=ON")
            .map_err(|e| diagnose(e, doing))?;
    }
    // Two processes that waited here to have the file alone would wait for each other.
    in_a_hurry.store(is_alone, Relaxed);
    // A database that cannot be read is closed unchanged: at a usual close SQLite would play the log in, which may be another file's.
    log::leave(&connection);
    first_look(&connection, doing)?;
    log::fold_at_end(&connection);
    in_a_hurry.store(false, Relaxed);
    Ok(OpenedLedger { connection, in_a_hurry, alone: is_alone.then(|| Alone::hold(path)) })
}

/// The first statement that reads the file: it sets up the log.
fn first_look(connection: &Connection, doing: &str) -> Result<()> {
    connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i32>(0)).map_err(|e| diagnose(e, doing))?;
    Ok(())
}

/// The refusal of a write to a database that could be opened only for reading, because the disk is full.
pub(crate) fn no_room(path: &Path) -> Diagnosis {
    Diagnosis::new(Code::DiskFull, format!("There is no room to write {}.", path.display())).hint(NO_ROOM)
}

/// Set while a connection is not to wait for any lock.
pub(crate) type InAHurry = Arc<AtomicBool>;

/// Waits for locks by polling every 0.2 to 3 ms, and the more often the longer it has waited: see [`pause`].
pub(crate) fn wait_politely(connection: &mut Connection, timeout: Duration) -> Result<InAHurry> {
    let in_a_hurry = InAHurry::default();
    let hurries = in_a_hurry.clone();
    let mut started = Instant::now();
    // Seeded by the process, so that two waiting processes do not look in step; odd, because xorshift never leaves 0.
    let mut state = u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    connection
        .busy_handler(Some(move |calls: i32| {
            // SQLite counts the calls of each wait from 0, so every wait has the whole timeout.
            if calls == 0 {
                started = Instant::now();
            }
            state = next_random(state);
            let waited = started.elapsed();
            let pause = pause(waited, timeout, state);
            // A pause that would end after the timeout is not begun: the caller learns in time that the lock is held.
            if waited + pause > timeout || hurries.load(Relaxed) {
                return false;
            }
            thread::sleep(pause);
            true
        }))
        .map_err(|e| diagnose(e, "configuring the ledger"))?;
    Ok(in_a_hurry)
}

/// One step of xorshift, which never leaves 0.
pub(crate) fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

/// How long to wait before the next look at a lock.
///
/// The first process that looks after a release gets the lock. If all of a crowd looked equally often, one of them would have no luck until
/// the timeout. So a process that has waited for a quarter of the timeout looks more and more often, up to 60 times as often.
fn pause(waited: Duration, timeout: Duration, random: u64) -> Duration {
    let usual = Duration::from_micros(200 + random % 2_800);
    // A timeout of zero must not divide by zero.
    let left = timeout.saturating_sub(waited).as_secs_f64() / timeout.as_secs_f64().max(f64::MIN_POSITIVE);
    let hurry = (left / 0.75).min(1.0);
    usual.mul_f64(hurry * hurry).max(Duration::from_micros(50))
}

/// The settings that every connection has: strict, durable, distrustful of the schema.
pub(crate) fn configure(connection: &Connection) -> Result<()> {
    let set = |config, on| connection.set_db_config(config, on).map(|_| ());
    // The file may come from elsewhere: its schema must not call functions, nor may SQL write into the
    // schema. recursive_triggers, because REPLACE deletes rows without firing the triggers that refuse a
    // DELETE unless it is on. Without QPSG a kept statement would be prepared anew each time that a value is bound which its plan might
    // depend on.
    set(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)
        .and_then(|()| set(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true))
        .and_then(|()| set(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false))
        .and_then(|()| set(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true))
        .and_then(|()| connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON;"))
        .map_err(|e| diagnose(e, "configuring the ledger"))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Runs a statement that has no values, as those around a transaction, and keeps it prepared: there may be a thousand small reads in a second.
pub(crate) fn run_kept(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// Switches the file to write-ahead logging. The busy handler does not cover this switch, so it is tried again here.
pub(crate) fn use_wal(connection: &Connection, timeout: Duration) -> Result<()> {
    let started = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).and_then(|mode| {
            if mode.as_str() == "wal" {
                Ok(mode)
            } else {
                crate::faults::statement("PRAGMA journal_mode=WAL");
                connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))
            }
        });
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            // SQLite reports no error where it cannot switch: it answers with the mode that stays.
            Ok(mode) => {
                return Err(Diagnosis::new(
                    Code::UnsupportedFs,
                    format!("The ledger cannot use a write-ahead log here (it stays in {mode} mode)."),
                )
                .hint("keep the ledger on a local disk: ic init --store DIR"));
            }
            Err(e) if is_busy(&e) && started.elapsed() < timeout => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(diagnose(e, "switching the ledger to a write-ahead log")),
        }
    }
}

/// What is wrong with a database that SQLite finds sound and refuses to write. Its header names the format for writing; a database with a
/// number that SQLite does not know is only read (<https://sqlite.org/fileformat.html#file_format_version_numbers>).
pub(crate) fn marked_read_only(connection: &Connection, path: &Path) -> Option<&'static str> {
    let may_write = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    // A file that this user may not write is opened read-only too. That is a matter of rights, not of the header.
    // The directory counts as well, because SQLite makes the log in it.
    let is_marked = connection.is_readonly(rusqlite::MAIN_DB).unwrap_or(false)
        && may_write(path)
        && path.parent().is_some_and(may_write);
    is_marked.then_some(
        "its header names a format that can only be read: byte 18 is damaged, or a later SQLite wrote it; restore it from a backup",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_longer_looks_more_often() {
        let timeout = Duration::from_secs(5);
        let at = |seconds: f64| pause(Duration::from_secs_f64(seconds), timeout, 1_400);
        assert_eq!(at(0.0), Duration::from_micros(1_600));
        assert_eq!(at(1.25), at(0.0), "most wait for less");
        assert!(at(2.0) < at(1.3) && at(3.0) < at(2.0) && at(4.0) < at(3.0));
        assert!(at(4.0) < at(0.0) / 10, "{:?}", at(4.0));
        assert_eq!(at(5.0), Duration::from_micros(50));
        for random in [0, 2_799, u64::MAX] {
            let pause = pause(Duration::ZERO, Duration::ZERO, random);
            assert!(pause >= Duration::from_micros(50) && pause < Duration::from_millis(3), "{pause:?}");
        }
    }
}
