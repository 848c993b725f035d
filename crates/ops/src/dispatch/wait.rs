//! Waiting for the end of work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ic_base::{DispatchId, Result};
use ic_dispatch::dispatch::{self, Dispatch};
use ic_kernel::Kernel;
use ic_kernel::worker::{Life, life};

use crate::run::is_executed;

/// How often the ledger and the process are looked at: short beside any agent's work, and neither costs a millisecond.
const POLL: Duration = Duration::from_millis(50);

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The work has ended, or was rolled back: its record says which.
    Ended,
    /// The process of the work is gone, and the work did not end on record.
    ProcessGone,
    /// The time is over.
    TimedOut,
    /// The wait was interrupted.
    Interrupted,
}

/// Waits until work ends, and returns its record as it then is; nothing is written, and no lock is kept.
///
/// Errors: `dispatch_not_found` and the other errors of a reference.
pub fn wait(
    kernel: &Kernel,
    reference: &str,
    timeout: Option<Duration>,
    interrupted: &AtomicBool,
) -> Result<(Dispatch, Waited)> {
    let started = Instant::now();
    // The version is read before the record: a change that is committed in between changes it again, and is not missed.
    let mut version = kernel.ledger.data_version()?;
    let mut dispatch = kernel.read(|snapshot| dispatch::resolve(snapshot, reference))?;
    loop {
        if has_ended(&dispatch) {
            return Ok((dispatch, Waited::Ended));
        }
        if is_abandoned(kernel, &dispatch) {
            // A worker may record its end and exit between the two looks. Its work has ended then, and was not abandoned.
            let last = get(kernel, &dispatch.id)?;
            let is_same = last.process == dispatch.process && !has_ended(&last);
            if is_same {
                return Ok((last, Waited::ProcessGone));
            }
            dispatch = last;
            continue;
        }
        if interrupted.load(Ordering::SeqCst) {
            return Ok((dispatch, Waited::Interrupted));
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok((dispatch, Waited::TimedOut));
        }
        thread::sleep(left.map_or(POLL, |left| left.min(POLL)));
        let now = kernel.ledger.data_version()?;
        if now != version {
            version = now;
            dispatch = get(kernel, &dispatch.id)?;
        }
    }
}

fn has_ended(dispatch: &Dispatch) -> bool {
    dispatch.status.is_finished() || dispatch.rolled_back_by.is_some()
}

/// Whether the process of a dispatch is gone and no other will record its end: an executor does that for a step, after the step's process
/// has ended.
fn is_abandoned(kernel: &Kernel, dispatch: &Dispatch) -> bool {
    life(dispatch) == Some(Life::Gone) && !is_executed(kernel, &dispatch.run_id)
}

fn get(kernel: &Kernel, id: &DispatchId) -> Result<Dispatch> {
    kernel.read(|snapshot| dispatch::get(snapshot, id))
}
