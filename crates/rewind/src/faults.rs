//! Faults on demand, in builds for tests: before its `n`-th statement a rewind fails, or its process dies.
//!
//! In any other build every function here is empty. The countdown belongs to the thread, because an engine works in one thread.

use ic_base::Result;

#[cfg(any(test, feature = "test-hooks"))]
mod hooks {
    use std::cell::{Cell, RefCell};

    use ic_base::{Code, Diagnosis, Result};

    #[derive(Clone, Copy)]
    pub(super) enum InjectedFault {
        Fail,
        Abort,
    }

    thread_local! {
        static LEFT: Cell<(u64, InjectedFault)> = const { Cell::new((0, InjectedFault::Fail)) };
        static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn arm(n: u64, fault: InjectedFault) {
        LEFT.set((n, fault));
        LOG.take();
    }

    pub(super) fn log() -> Vec<String> {
        LOG.take()
    }

    pub(super) fn statement(sql: &str) -> Result<()> {
        LOG.with_borrow_mut(|log| log.push(sql.to_owned()));
        let (left, fault) = LEFT.get();
        LEFT.set((left.saturating_sub(1), fault));
        match fault {
            // 1 is the next statement. A countdown of 0 stays 0, so nothing fails.
            _ if left != 1 => Ok(()),
            InjectedFault::Abort => std::process::abort(),
            InjectedFault::Fail => Err(Diagnosis::new(Code::Io, format!("A fault was asked for before: {sql}"))),
        }
    }
}

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
