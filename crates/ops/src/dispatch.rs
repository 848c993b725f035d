//! Handing work out, what it reports, and waiting for its end.

mod wait;

use std::path::{Path, PathBuf};

use ic_base::{DispatchId, Result};
use ic_checkpoint::record::Link;
use ic_dispatch::DispatchStatus;
use ic_dispatch::code::{self, Recorded};
use ic_dispatch::dispatch::{self, Dispatch, Ending, Tokens, Work};
use ic_dispatch::report::Report;
use ic_phase::point::NewPoint;
use ic_phase::{Run, run};
use ic_store::Transaction;

use ic_kernel::Kernel;
use ic_kernel::worker::{living, process_of};
use ic_worktree::auto::Taken;
use ic_worktree::{Settings, Warning, retention};

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
        dispatch::create(tx, now, &id, &run.id, run.epoch, &phase, work)
    })
}

/// Marks work as begun, which makes a point of the run; `pid`: the process that works on it, which lives now.
///
/// With `kept`, the working tree is captured before it, where checkpoints are taken automatically, and a configured state database is
/// looked at. Errors: `invalid_value` for a number that no process has; `stale_dispatch`, `dispatch_running`, `dispatch_finished`,
/// `rolling_back`; a capture that fails is a warning.
pub fn start(
    kernel: &Kernel,
    reference: &str,
    pid: Option<u32>,
    kept: Option<&Settings>,
) -> Result<(Dispatch, Vec<Warning>)> {
    // Looked up now: what has this number later is another process.
    let process = pid.map(living).transpose()?.map(|identity| process_of(&identity));
    let (taken, project) = look(kernel, reference, kept, DispatchStatus::Running)?;
    let dispatch = kernel.write(|tx, now| {
        let (dispatch, run) = settled(tx, reference)?;
        // Before anything is recorded of work that may not begin.
        dispatch.status.check_move_to(DispatchStatus::Running, dispatch.id.short())?;
        taken.record_point(tx, now, &run, &NewPoint::of_dispatch(dispatch.id.as_str()))?;
        dispatch::start(tx, now, &dispatch, process.as_ref())
    })?;
    Ok((dispatch, tidied(kernel, kept, taken, &project)))
}

/// Captures the tree for work that may move to this status; the transaction that follows asks again.
fn look(
    kernel: &Kernel,
    reference: &str,
    kept: Option<&Settings>,
    to: DispatchStatus,
) -> Result<(Taken, PathBuf)> {
    if kept.is_none() {
        return Ok((Taken::nothing(), kernel.project.root.clone()));
    }
    let (dispatch, run) = kernel.read(|snapshot| {
        let dispatch = dispatch::resolve(snapshot, reference)?;
        let run = run::get(snapshot, &dispatch.run_id)?;
        Ok((dispatch, run))
    })?;
    let project = run.project_dir.clone();
    // What will be refused is refused before anything is captured.
    let may_move = dispatch.require_current().and_then(|()| run.require_settled());
    may_move.and_then(|()| dispatch.status.check_move_to(to, dispatch.id.short()))?;
    let link = Link {
        run_id: Some(run.id),
        phase: Some(run.phase),
        dispatch_id: Some(dispatch.id),
        ..Link::default()
    };
    Ok((Taken::take_if(kernel, kept, &project, link), project))
}

/// What went less well; old checkpoints make room once the locks of the new one are gone.
fn tidied(kernel: &Kernel, kept: Option<&Settings>, taken: Taken, project: &Path) -> Vec<Warning> {
    let (was_taken, mut warnings) = (taken.id().is_some(), taken.warnings.clone());
    drop(taken);
    if let Some(settings) = kept.filter(|_| was_taken) {
        warnings.extend(retention::tidy(kernel, settings, project));
    }
    warnings
}

/// Ends work. With `kept`, the working tree is captured as the work left it, where checkpoints are taken automatically.
///
/// Errors: `stale_dispatch`, `dispatch_finished`, `rolling_back`; a capture that fails is a warning.
pub fn finish(
    kernel: &Kernel,
    reference: &str,
    ending: &Ending<'_>,
    kept: Option<&Settings>,
) -> Result<(Dispatch, Vec<Warning>)> {
    let (taken, project) = look(kernel, reference, kept, ending.status())?;
    let dispatch = kernel.write(|tx, now| {
        let (dispatch, run) = settled(tx, reference)?;
        taken.record_after(tx, now, &run)?;
        dispatch::finish(tx, now, &dispatch, ending)
    })?;
    Ok((dispatch, tidied(kernel, kept, taken, &project)))
}

/// Files as they are recorded, from the project's root; the caller's are from its directory. One that lies outside is absolute.
pub fn files_from_root(kernel: &Kernel, files: &[PathBuf]) -> Vec<PathBuf> {
    let project = &kernel.project;
    files.iter().map(|file| ic_worktree::recorded_path(file, &project.directory, &project.root)).collect()
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

/// The dispatch that a reference names, and its run, if it was not rolled back and the run is not in the middle of a rollback.
fn settled(tx: &Transaction<'_>, reference: &str) -> Result<(Dispatch, Run)> {
    let dispatch = dispatch::resolve(tx, reference)?;
    dispatch.require_current()?;
    let run = run::get(tx, &dispatch.run_id)?;
    run.require_settled()?;
    Ok((dispatch, run))
}
