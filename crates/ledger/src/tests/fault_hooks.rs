//! What builds for tests do before a statement: abort, log it, or say that another transaction is in the way.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

use crate::faults::FaultMode;

static LEFT: AtomicI64 = AtomicI64::new(0);
static LOG: Mutex<Option<File>> = Mutex::new(None);
/// A bit for each [`Mode`].
static MODES: AtomicU8 = AtomicU8::new(0);

pub(super) fn turn_on(mode: FaultMode) {
    MODES.fetch_or(1 << mode as u8, Ordering::Relaxed);
}

pub(super) fn is_on(mode: FaultMode) -> bool {
    MODES.load(Ordering::Relaxed) & 1 << mode as u8 != 0
}

pub(super) fn abort_before(n: i64) {
    LEFT.store(n, Ordering::Relaxed);
}

pub(super) fn log_to(file: File) {
    if let Ok(mut log) = LOG.lock() {
        *log = Some(file);
    }
}

static UNTIL_CONFLICT: AtomicI64 = AtomicI64::new(0);

pub(super) fn conflict_before(n: i64) {
    UNTIL_CONFLICT.store(n, Ordering::Relaxed);
}

static CHANCE: AtomicU64 = AtomicU64::new(0);

/// Whether one of twenty comes, by chance.
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

pub(super) fn is_conflict_due() -> bool {
    if is_on(FaultMode::Serializable) && is_one_of_twenty() {
        return true;
    }
    UNTIL_CONFLICT.load(Ordering::Relaxed) > 0 && UNTIL_CONFLICT.fetch_sub(1, Ordering::Relaxed) == 1
}

pub(super) fn statement(sql: &str) {
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
