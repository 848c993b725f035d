//! Handing work out, what it reports, and waiting for its end.

mod wait;

use std::path::PathBuf;

use ic_base::{DispatchId, Result};
use ic_dispatch::code::{self, Recorded};
use ic_dispatch::dispatch::{self, Dispatch, Ending, Process, Tokens, Work};
use ic_dispatch::report::Report;
use ic_phase::run;
use ic_saga::process::ProcessIdentity;
use ic_store::Transaction;

use crate::Kernel;
use crate::compensation::living;

pub use wait::{Waited, wait};

/// Hands work out in a phase of a run (`None`: the current one).
///
/// Errors: `unknown_phase`, `run_not_active`, `rolling_back`, `stale_dispatch`.
pub fn create(kernel: &Kernel, reference: &str, phase: Option<&str>, work: &Work) -> Result<Dispatch> {
    let id: DispatchId = kernel.context.new_id();
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        run.require_active()?;
        let phase = run.phase_or_current(phase)?;
        dispatch::create(tx, now, &id, (&run.id, run.epoch), &phase, work)
    })
}

/// Marks work as begun; `pid`: the process that works on it, which lives now.
///
/// Errors: `invalid_value` for a number that no process has; `stale_dispatch`, `dispatch_running`, `dispatch_finished`,
/// `rolling_back`.
pub fn start(kernel: &Kernel, reference: &str, pid: Option<u32>) -> Result<Dispatch> {
    // Looked up now: what has this number later is another process.
    let process = pid.map(living).transpose()?.map(|identity| process_of(&identity));
    kernel.write(|tx, now| dispatch::start(tx, now, &settled(tx, reference)?, process.as_ref()))
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
    /// Only its number is on record, and that may be another's by now.
    Unknown,
}

/// Whether the process of a dispatch lives; `None` if none is on record.
pub fn life(dispatch: &Dispatch) -> Option<Life> {
    let process = dispatch.process.as_ref()?;
    Some(match identity(process) {
        Some(identity) if identity.is_alive() => Life::Alive,
        Some(_) => Life::Gone,
        None => Life::Unknown,
    })
}

/// Whether a worker lives that is neither the calling process nor one that it descends from: an orchestrator that is on record as
/// the worker itself must not stand in its own way.
pub(crate) fn is_living_other(dispatch: &Dispatch) -> bool {
    let identity = dispatch.process.as_ref().and_then(identity);
    identity.is_some_and(|identity| identity.is_alive() && !identity.is_caller_or_ancestor())
}

fn identity(process: &Process) -> Option<ProcessIdentity> {
    let (start_time, boot_id) = process.start.clone()?;
    Some(ProcessIdentity { pid: u32::try_from(process.pid).ok()?, start_time, boot_id })
}

/// Ends work. Errors: `stale_dispatch`, `dispatch_finished`, `rolling_back`.
pub fn finish(kernel: &Kernel, reference: &str, ending: &Ending<'_>) -> Result<Dispatch> {
    kernel.write(|tx, now| dispatch::finish(tx, now, &settled(tx, reference)?, ending))
}

/// Files as they are recorded, from the project's root; the caller's are from its directory. One that lies outside is absolute.
pub fn files_from_root(kernel: &Kernel, files: &[PathBuf]) -> Vec<PathBuf> {
    let project = &kernel.project;
    files.iter().map(|file| crate::artifact::recorded_path(file, &project.directory, &project.root)).collect()
}

/// Records commits and files; from rolled-back work too, marked late.
pub fn record(kernel: &Kernel, reference: &str, report: &Report) -> Result<(Dispatch, Recorded)> {
    kernel.write_late_too(|tx, now| {
        let dispatch = dispatch::resolve(tx, reference)?;
        let recorded = code::record(tx, now, &dispatch, report)?;
        Ok((dispatch, recorded))
    })
}

/// Records the tokens used so far; from rolled-back work too.
pub fn record_tokens(kernel: &Kernel, reference: &str, tokens: Tokens) -> Result<Dispatch> {
    kernel.write_late_too(|tx, now| {
        dispatch::record_tokens(tx, now, &dispatch::resolve(tx, reference)?, tokens)
    })
}

/// The dispatch that a reference names, if it was not rolled back and its run is not in the middle of a rollback.
fn settled(tx: &Transaction<'_>, reference: &str) -> Result<Dispatch> {
    let dispatch = dispatch::resolve(tx, reference)?;
    dispatch.require_current()?;
    run::get(tx, &dispatch.run_id)?.require_settled()?;
    Ok(dispatch)
}
