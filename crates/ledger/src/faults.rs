//! Crashes on demand and a record of the statements that ran, for the tests' own builds.
//!
//! In any other build every function here is empty and the statements cost nothing.

#[cfg(feature = "test-hooks")]
#[path = "tests/fault_hooks.rs"]
mod hooks;

#[cfg(not(feature = "test-hooks"))]
mod hooks {
    use crate::faults::FaultMode;

    /// Does nothing in this build.
    pub fn abort_before(_: i64) {}
    /// Does nothing in this build.
    pub fn log_to(_: std::fs::File) {}
    /// Does nothing in this build.
    pub fn turn_on(_: FaultMode) {}
    /// Does nothing in this build.
    pub fn conflict_before(_: i64) {}
    pub(crate) fn is_on(_: FaultMode) -> bool {
        false
    }
    #[cfg(feature = "server")]
    pub(crate) fn is_conflict_due() -> bool {
        false
    }
    #[inline]
    pub(crate) fn statement(_: &str) {}
}

#[cfg(feature = "server")]
pub(crate) use hooks::is_conflict_due;
pub use hooks::{abort_before, conflict_before, log_to, turn_on};
pub(crate) use hooks::{is_on, statement};

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

/// As before each statement, for the crates above: before each step that changes files.
#[inline]
pub fn step(what: &str) {
    statement(what);
}
