//! Git that a capture asks ends with the capture: one that hangs on a slow disk would keep a hook, and its agent, beyond any limit.
//!
//! The limit is the process's own, and holds as long as its capture: calls of git that come after that have their time.

use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use ic_base::Diagnosis;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::limit::Limit;

static LIMIT: RwLock<Option<Limit>> = RwLock::new(None);

/// The interval between two looks at the time.
const EACH: Duration = Duration::from_millis(20);

/// While this lives, git ends when the limit is reached.
#[derive(Debug)]
pub struct Limited(());

/// Ends git when the limit is reached; `None`: there is no limit.
pub fn limited(limit: &Limit) -> Option<Limited> {
    limit.is_any().then(|| {
        *LIMIT.write().unwrap_or_else(PoisonError::into_inner) = Some(limit.clone());
        Limited(())
    })
}

impl Drop for Limited {
    fn drop(&mut self) {
        *LIMIT.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The limit that is in force.
pub(super) fn limit() -> Option<Limit> {
    LIMIT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs `work` with a child, and ends the child and its children once the time is over. `work` must not wait for the child. Where there
/// is a limit, the child leads a process group.
pub(super) fn watching<T>(child: &Child, limit: Option<&Limit>, work: impl FnOnce() -> T) -> (T, Option<Diagnosis>) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (Some(limit), Some(group)) = (limit, group) else { return (work(), None) };
    std::thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let watch = scope.spawn(move || {
            // An interrupt only sets a flag, which wakes no thread: the limit has to be polled.
            while is_done.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                if let Err(over) = limit.check() {
                    // No thread has waited for the child yet, so no other process has its number.
                    let _ = kill_process_group(group, Signal::KILL);
                    return Some(over);
                }
            }
            None
        });
        let worked = work();
        // The watch wakes by this, and not only at its next look.
        drop(done);
        (worked, watch.join().unwrap_or_default())
    })
}
