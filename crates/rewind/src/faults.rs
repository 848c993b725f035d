//! Faults on demand, in builds for tests: before its `n`-th statement a rewind fails, or its process dies.
//!
//! In any other build every function here is empty. The countdown belongs to the thread, because an engine works in one thread.

use ic_base::Result;

#[cfg(any(test, feature = "test-hooks"))]
#[path = "tests/fault_hooks.rs"]
mod hooks;

/// The process aborts before the `n`-th statement of this thread from now on, counted from 1; 0: never.
pub fn abort_before(n: u64) {
    #[cfg(any(test, feature = "test-hooks"))]
    hooks::arm(n, hooks::InjectedFault::Abort);
    #[cfg(not(any(test, feature = "test-hooks")))]
    let _ = n;
}

/// The `n`-th statement of this thread from now on fails with `io_error`, counted from 1; 0: none does.
pub fn fail_before(n: u64) {
    #[cfg(any(test, feature = "test-hooks"))]
    hooks::arm(n, hooks::InjectedFault::Fail);
    #[cfg(not(any(test, feature = "test-hooks")))]
    let _ = n;
}

/// The statements of this thread since the last call, or since a fault was asked for. Empty in other builds.
pub fn log() -> Vec<String> {
    #[cfg(any(test, feature = "test-hooks"))]
    return hooks::log();
    #[cfg(not(any(test, feature = "test-hooks")))]
    Vec::new()
}

/// Called before each statement and before each step that changes a file.
#[inline]
#[cfg_attr(not(any(test, feature = "test-hooks")), allow(clippy::unnecessary_wraps, reason = "it fails in tests"))]
pub(crate) fn statement(sql: &str) -> Result<()> {
    #[cfg(any(test, feature = "test-hooks"))]
    return hooks::statement(sql);
    #[cfg(not(any(test, feature = "test-hooks")))]
    {
        let _ = sql;
        Ok(())
    }
}
