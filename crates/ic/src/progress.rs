//! Shows progress while something takes long: one line on the terminal, cleared at the end. Nothing is printed to a pipe.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Work that takes less than this shows nothing.
const QUIET_FOR: Duration = Duration::from_millis(400);
const EVERY: Duration = Duration::from_millis(120);

/// Runs `work`. If it takes long and standard error is a terminal, shows what `describe` returns, again and again.
pub(crate) fn shown<T>(wanted: bool, describe: impl Fn() -> String + Sync, work: impl FnOnce() -> T) -> T {
    if !wanted || !io::stderr().is_terminal() {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut is_shown = false;
            // Parked instead of asleep, so that the end of the work wakes it at once.
            std::thread::park_timeout(QUIET_FOR);
            // Relaxed is enough: the flag carries no data, and the end of the scope waits for this thread.
            while !done.load(Relaxed) {
                is_shown |= write!(anstream::stderr(), "\r\u{1b}[2K{}", describe()).is_ok();
                std::thread::park_timeout(EVERY);
            }
            if is_shown {
                // If the terminal was closed, there is nothing to clear.
                let _ = write!(anstream::stderr(), "\r\u{1b}[2K");
            }
        });
        let result = work();
        // The order matters: a watcher that wakes before the flag is set would park once more.
        done.store(true, Relaxed);
        watcher.thread().unpark();
        result
    })
}
