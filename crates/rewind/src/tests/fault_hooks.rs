//! What builds for tests do before a statement of a rewind: log it, fail, or abort.

use std::cell::{Cell, RefCell};

use ic_base::{Code, Diagnosis, Result};

#[derive(Clone, Copy)]
enum InjectedFault {
    Fail,
    Abort,
}

thread_local! {
    static LEFT: Cell<(u64, InjectedFault)> = const { Cell::new((0, InjectedFault::Fail)) };
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The process aborts before the `n`-th statement of this thread from now on, counted from 1; 0: never.
pub fn abort_before(n: u64) {
    arm(n, InjectedFault::Abort);
}

/// The `n`-th statement of this thread from now on fails with `io_error`, counted from 1; 0: none does.
pub fn fail_before(n: u64) {
    arm(n, InjectedFault::Fail);
}

fn arm(n: u64, fault: InjectedFault) {
    LEFT.set((n, fault));
    LOG.take();
}

/// The statements of this thread since the last call, or since a fault was asked for.
pub fn log() -> Vec<String> {
    LOG.take()
}

/// Called before each statement and before each step that changes a file.
pub(crate) fn statement(sql: &str) -> Result<()> {
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
