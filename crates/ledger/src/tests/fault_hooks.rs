//! What builds for tests do before a statement: abort, log it, or say that another transaction is in the way.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
#[cfg(feature = "server")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use crate::faults::FaultMode;

static LEFT: AtomicI64 = AtomicI64::new(0);
static LOG: Mutex<Option<File>> = Mutex::new(None);
/// A bit for each [`FaultMode`].
static MODES: AtomicU8 = AtomicU8::new(0);

/// From now on this process works in this mode, too.
pub fn turn_on(mode: FaultMode) {
    MODES.fetch_or(1 << mode as u8, Ordering::Relaxed);
}

/// Whether [`turn_on`] was called with it.
pub(crate) fn is_on(mode: FaultMode) -> bool {
    MODES.load(Ordering::Relaxed) & 1 << mode as u8 != 0
}

/// The process aborts before its `n`-th statement from now on, counted from 1.
pub fn abort_before(n: i64) {
    LEFT.store(n, Ordering::Relaxed);
}

/// Every statement is written to `file`, one a line.
pub fn log_to(file: File) {
    if let Ok(mut log) = LOG.lock() {
        *log = Some(file);
    }
}

static UNTIL_CONFLICT: AtomicI64 = AtomicI64::new(0);

/// Another transaction is in the way of the `n`-th statement from now on that goes to a server, counted from 1.
pub fn conflict_before(n: i64) {
    UNTIL_CONFLICT.store(n, Ordering::Relaxed);
}

#[cfg(feature = "server")]
static CHANCE: AtomicU64 = AtomicU64::new(0);

/// Whether one of twenty comes, by chance.
#[cfg(feature = "server")]
fn is_one_of_twenty() -> bool {
    let mut x = CHANCE.load(Ordering::Relaxed);
    if x == 0 {
        // Seeded by the process, so that each has other conflicts; not 0, which xorshift never leaves.
        x = u64::from(std::process::id()) | 1 << 40;
    }
    x = crate::connection::next_random(x);
    CHANCE.store(x, Ordering::Relaxed);
    (x >> 32).is_multiple_of(20)
}

/// Whether another transaction is in the way of the statement that comes now, as [`conflict_before`] or [`FaultMode::Serializable`] say.
#[cfg(feature = "server")]
pub(crate) fn is_conflict_due() -> bool {
    if is_on(FaultMode::Serializable) && is_one_of_twenty() {
        return true;
    }
    UNTIL_CONFLICT.load(Ordering::Relaxed) > 0 && UNTIL_CONFLICT.fetch_sub(1, Ordering::Relaxed) == 1
}

/// Called before each statement, once more after each commit, and before each step of making a ledger.
pub(crate) fn statement(sql: &str) {
    if LEFT.load(Ordering::Relaxed) > 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        std::process::abort();
    }
    if let Ok(mut log) = LOG.lock()
        && let Some(file) = log.as_mut()
    {
        // A lost line would only make the test that reads the log fail.
        let _ = writeln!(file, "{}", sql.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}
