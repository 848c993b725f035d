//! Crashes on demand and a record of the statements that ran, for the tests' own builds.
//!
//! In any other build every function here is empty and the statements cost nothing.

#[cfg(feature = "test-hooks")]
#[path = "tests/fault_hooks.rs"]
mod hooks;

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
