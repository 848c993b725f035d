//! Crashes on demand and a record of the statements that ran, for the tests' own builds.
//!
//! In any other build every function here is empty and the statements cost nothing.

#[cfg(feature = "test-hooks")]
mod hooks {
    use std::fs::File;
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

    static LEFT: AtomicI64 = AtomicI64::new(0);
    static LOG: Mutex<Option<File>> = Mutex::new(None);

    pub(super) fn abort_before(n: i64) {
        LEFT.store(n, Ordering::Relaxed);
    }

    pub(super) fn log_to(file: File) {
        if let Ok(mut log) = LOG.lock() {
            *log = Some(file);
        }
    }

    static ONE_HOST: AtomicBool = AtomicBool::new(false);

    pub(super) fn one_host() {
        ONE_HOST.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_one_host() -> bool {
        ONE_HOST.load(Ordering::Relaxed)
    }

    static UNTIL_CONFLICT: AtomicI64 = AtomicI64::new(0);

    pub(super) fn conflict_before(n: i64) {
        UNTIL_CONFLICT.store(n, Ordering::Relaxed);
    }

    static SERIALIZABLE: AtomicBool = AtomicBool::new(false);
    static CHANCE: AtomicU64 = AtomicU64::new(0);

    pub(super) fn serializable() {
        // Each process has conflicts of its own; a number that is not 0.
        CHANCE.store(u64::from(std::process::id()) | 1 << 40, Ordering::Relaxed);
        SERIALIZABLE.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_serializable() -> bool {
        SERIALIZABLE.load(Ordering::Relaxed)
    }

    /// Whether one of twenty comes, by chance.
    fn is_one_of_twenty() -> bool {
        let mut x = CHANCE.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        CHANCE.store(x, Ordering::Relaxed);
        (x >> 32).is_multiple_of(20)
    }

    pub(super) fn is_conflict_due() -> bool {
        if is_serializable() && is_one_of_twenty() {
            return true;
        }
        UNTIL_CONFLICT.load(Ordering::Relaxed) > 0 && UNTIL_CONFLICT.fetch_sub(1, Ordering::Relaxed) == 1
    }

    static RERUN: AtomicBool = AtomicBool::new(false);

    pub(super) fn rerun() {
        RERUN.store(true, Ordering::Relaxed);
    }

    pub(super) fn reruns() -> bool {
        RERUN.load(Ordering::Relaxed)
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

/// A ledger on a server counts as one machine's own from now on.
pub fn one_host() {
    #[cfg(feature = "test-hooks")]
    hooks::one_host();
}

/// Whether [`one_host`] was called.
pub(crate) fn has_one_host() -> bool {
    #[cfg(feature = "test-hooks")]
    let is_so = hooks::has_one_host();
    #[cfg(not(feature = "test-hooks"))]
    let is_so = false;
    is_so
}

/// From now on write transactions on a server are serializable, and another one is in the way of one statement of twenty.
pub fn serializable() {
    #[cfg(feature = "test-hooks")]
    hooks::serializable();
}

/// Whether [`serializable`] was called.
pub(crate) fn is_serializable() -> bool {
    #[cfg(feature = "test-hooks")]
    let is_so = hooks::is_serializable();
    #[cfg(not(feature = "test-hooks"))]
    let is_so = false;
    is_so
}

/// Another transaction is in the way of the `n`-th statement from now on that goes to a server, counted from 1.
pub fn conflict_before(n: i64) {
    #[cfg(feature = "test-hooks")]
    hooks::conflict_before(n);
    #[cfg(not(feature = "test-hooks"))]
    let _ = n;
}

/// Whether another transaction is in the way of the statement that comes now, as [`conflict_before`] or [`serializable`] say.
pub(crate) fn is_conflict_due() -> bool {
    #[cfg(feature = "test-hooks")]
    let is_due = hooks::is_conflict_due();
    #[cfg(not(feature = "test-hooks"))]
    let is_due = false;
    is_due
}

/// Every write transaction is run twice from now on, the first time in vain.
pub fn rerun() {
    #[cfg(feature = "test-hooks")]
    hooks::rerun();
}

/// Whether [`rerun`] was called.
pub(crate) fn reruns() -> bool {
    #[cfg(feature = "test-hooks")]
    let is_so = hooks::reruns();
    #[cfg(not(feature = "test-hooks"))]
    let is_so = false;
    is_so
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
