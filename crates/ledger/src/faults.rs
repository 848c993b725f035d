//! Crashes on demand and a record of the statements that ran, for the tests' own builds.
//!
//! In any other build every function here is empty and the statements cost nothing.

#[cfg(feature = "test-hooks")]
mod hooks {
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
}

/// The process aborts before its `n`-th statement from now on, counted from 1.
pub fn abort_before(n: i64) {
    #[cfg(feature = "test-hooks")]
    hooks::abort_before(n);
    #[cfg(not(feature = "test-hooks"))]
    let _ = n;
}

/// Every statement is written to `file`, one a line.
pub fn log_to(file: std::fs::File) {
    #[cfg(feature = "test-hooks")]
    hooks::log_to(file);
    #[cfg(not(feature = "test-hooks"))]
    drop(file);
}

/// What a call does differently, so that tests find out about it.
#[derive(Debug, Clone, Copy)]
pub enum FaultMode {
    /// A ledger on a server counts as one machine's own.
    OneHost,
    /// Every write transaction is run twice, and the first one is rolled back.
    Rerun,
    /// Write transactions on a server are serializable, and another one is in the way of one statement of twenty.
    Serializable,
}

/// From now on this process works in this mode, too.
pub fn turn_on(mode: FaultMode) {
    #[cfg(feature = "test-hooks")]
    hooks::turn_on(mode);
    #[cfg(not(feature = "test-hooks"))]
    let _ = mode;
}

/// Whether [`turn_on`] was called with it.
pub(crate) fn is_on(mode: FaultMode) -> bool {
    #[cfg(feature = "test-hooks")]
    let is_so = hooks::is_on(mode);
    #[cfg(not(feature = "test-hooks"))]
    let (is_so, _) = (false, mode);
    is_so
}

/// Another transaction is in the way of the `n`-th statement from now on that goes to a server, counted from 1.
pub fn conflict_before(n: i64) {
    #[cfg(feature = "test-hooks")]
    hooks::conflict_before(n);
    #[cfg(not(feature = "test-hooks"))]
    let _ = n;
}

/// Whether another transaction is in the way of the statement that comes now, as [`conflict_before`] or [`FaultMode::Serializable`] say.
#[cfg(feature = "server")]
pub(crate) fn is_conflict_due() -> bool {
    #[cfg(feature = "test-hooks")]
    let is_due = hooks::is_conflict_due();
    #[cfg(not(feature = "test-hooks"))]
    let is_due = false;
    is_due
}

/// As before each statement, for the crates above: before each step that changes files.
#[inline]
pub fn step(what: &str) {
    statement(what);
}

/// Called before each statement, once more after each commit, and before each step of making a ledger.
#[inline]
pub(crate) fn statement(sql: &str) {
    #[cfg(feature = "test-hooks")]
    hooks::statement(sql);
    #[cfg(not(feature = "test-hooks"))]
    let _ = sql;
}
