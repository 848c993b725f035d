//! Faults on demand, in builds for tests: before its `n`-th statement a rewind fails, or its process dies.
//!
//! In any other build every function here is empty. The countdown belongs to the thread, because an engine works in one thread.

#[cfg(any(test, feature = "test-hooks"))]
#[path = "tests/fault_hooks.rs"]
mod hooks;

#[cfg(not(any(test, feature = "test-hooks")))]
mod hooks {
    /// Does nothing in this build.
    pub fn abort_before(_: u64) {}
    /// Does nothing in this build.
    pub fn fail_before(_: u64) {}
    /// Nothing is logged in this build.
    pub fn log() -> Vec<String> {
        Vec::new()
    }
    #[inline]
    #[allow(clippy::unnecessary_wraps, reason = "it fails in tests")]
    pub(crate) fn statement(_: &str) -> ic_base::Result<()> {
        Ok(())
    }
}

pub(crate) use hooks::statement;
pub use hooks::{abort_before, fail_before, log};
