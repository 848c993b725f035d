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

/// How often is looked whether the time is over.
const EACH: Duration = Duration::from_millis(20);

/// As long as this lives, git ends with the limit.
#[derive(Debug)]
pub struct Limited(());

/// Lets git end with a limit; `None`: there is none.
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

/// The limit of now.
pub(super) fn limit() -> Option<Limit> {
    LIMIT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Works with a child, which must not be waited for in there, and ends it and its own children once the time is over. The child leads a
/// process group where there is a limit.
pub(super) fn watching<T>(
    child: &Child,
    limit: Option<&Limit>,
    work: impl FnOnce() -> T,
) -> (T, Option<Diagnosis>) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (Some(limit), Some(group)) = (limit, group) else { return (work(), None) };
    std::thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let watch = scope.spawn(move || {
            while is_done.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                if let Err(over) = limit.check() {
                    // Nobody has waited for it yet, so its number is still its own.
                    let _ = kill_process_group(group, Signal::KILL);
                    return Some(over);
                }
            }
            None
        });
        let worked = work();
        drop(done);
        (worked, watch.join().unwrap_or_default())
    })
}
