//! The processes that work on dispatches: what is on record of them, and whether they live.

use crate::DispatchStatus;
use crate::dispatch::{Dispatch, Process};
use crate::process::ProcessIdentity;
use ic_base::{Clock as _, Code, Diagnosis, Result, SystemClock};

/// The process that has this number now. Errors: `invalid_value` if none has.
pub fn living(pid: u32) -> Result<ProcessIdentity> {
    ProcessIdentity::of(pid)?.ok_or_else(|| {
        Diagnosis::new(Code::InvalidValue, format!("There is no process {pid}."))
            .hint("give the number of a process that runs now")
    })
}

/// A process as a dispatch keeps it.
pub fn process_of(identity: &ProcessIdentity) -> Process {
    Process { pid: i64::from(identity.pid), start: Some((identity.start_time, identity.boot_id.clone())) }
}

/// What is known of a worker's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// This very process runs.
    Alive,
    /// It has ended; another may have its number.
    Gone,
    /// Only its number is on record, and that may be another's by now; or it is a process of another machine or container.
    Unknown,
    /// It has been silent for longer than it said that it may be.
    Lost,
}

/// Whether the worker of a dispatch lives: by its process, and where that tells nothing, by its heartbeats. `None` if neither is on record.
pub fn life(dispatch: &Dispatch) -> Option<Life> {
    let of_process = dispatch.process.as_ref().map(|process| match identity(process) {
        // A process of another machine or container may still run: a caller that takes it to be gone would start a second worker.
        Some(identity) if identity.is_elsewhere() => Life::Unknown,
        Some(identity) if identity.is_alive() => Life::Alive,
        Some(_) => Life::Gone,
        None => Life::Unknown,
    });
    match (of_process, dispatch.heartbeat) {
        // Work that has not begun or has ended owes no heartbeat.
        (None | Some(Life::Unknown), Some(beats)) if dispatch.status == DispatchStatus::Running => {
            Some(if SystemClock.now() > beats.due { Life::Lost } else { Life::Alive })
        }
        (of_process, _) => of_process,
    }
}

/// Whether a worker lives that is neither the calling process nor one of its ancestors. An orchestrator that is on record as the worker
/// must not block itself.
pub fn is_living_other(dispatch: &Dispatch) -> bool {
    let identity = dispatch.process.as_ref().and_then(identity);
    identity.is_some_and(|identity| identity.is_alive() && !identity.is_caller_or_ancestor())
}

fn identity(process: &Process) -> Option<ProcessIdentity> {
    // A process without a start time cannot be told from a later one with its number.
    let (start_time, boot_id) = process.start.clone()?;
    Some(ProcessIdentity { pid: u32::try_from(process.pid).ok()?, start_time, boot_id })
}
