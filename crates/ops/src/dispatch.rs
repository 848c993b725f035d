//! Handing work out, and what it reports.

mod beginning;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{DispatchId, Result};
use ic_checkpoint::record::CheckpointLink;
use ic_dispatch::DispatchStatus;
use ic_dispatch::code::{self, RecordedCode};
use ic_dispatch::dispatch::{self, Dispatch, DispatchEnding, DispatchWork, Process, TokenCounts};
use ic_dispatch::process::ProcessIdentity;
use ic_dispatch::report::DispatchReport;
use ic_ledger::{Snapshot, Transaction};
use ic_phase::point::NewPoint;
use ic_phase::{Run, run};

use crate::hooks::caller::link_of;
use ic_dispatch::worker::process_of;
use ic_kernel::Kernel;
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, Warning, retention, root_of};

/// Hands work out in a phase of a run (`None`: the current one).
///
/// With `kept`, the working tree is captured, where checkpoints are taken automatically: a process that begins the work and only then says
/// so ([`start`] with a process) has changed something by then. Errors: `unknown_phase`, `run_not_active`, `rolling_back`,
/// `stale_dispatch`; a capture that fails is a warning.
pub fn create(
    kernel: &Kernel,
    reference: &str,
    phase: Option<&str>,
    work: &DispatchWork,
    kept: Option<&CaptureSettings>,
) -> Result<(Dispatch, Vec<Warning>)> {
    let id: DispatchId = kernel.context.new_id();
    let open = |snapshot: &Snapshot<'_>| -> Result<(Run, String)> {
        let run = kernel.run(snapshot, reference)?;
        run.require_active()?;
        let phase = run.phase_or_current(phase)?;
        Ok((run, phase))
    };
    let capturing = kept.filter(|settings| settings.checkpointing.auto);
    let (taken, project) = match capturing {
        None => (TakenTree::nothing(), kernel.project.root.clone()),
        Some(settings) => {
            // A call that will be refused is refused before the tree is walked.
            let (run, _) = kernel.read(|snapshot| kernel.calling_dispatch(snapshot).and_then(|_| open(snapshot)))?;
            let link = CheckpointLink { run_id: Some(run.id), phase: Some(run.phase), ..CheckpointLink::default() };
            // Only the tree: work that is handed out has not begun, so the state database is looked at when it does.
            (TakenTree::take_tree(kernel, settings, &run.project_dir, link), run.project_dir)
        }
    };
    let dispatch = kernel.write(|tx, now| {
        let (run, phase) = open(tx)?;
        // A tree is recorded only if no look has it: ten pieces of work that are handed out in one tree add one
        // checkpoint.
        taken.record_unless_known(tx, now, &root_of(&run.project_dir), run.epoch)?;
        dispatch::create(tx, now, &id, &run.id, run.epoch, &phase, work)
    })?;
    Ok((dispatch, tidied(kernel, kept, taken, &project)))
}

/// Marks work as begun, which makes a point of the run; `pid`: the process that works on it; `ttl`: how long it may be silent. Of work that is begun and has no process on
/// record it is recorded which one it is.
///
/// With `kept`, the working tree is captured before it, where checkpoints are taken automatically, and a configured state database is
/// looked at; what a process did before this call lies after the point. A process that has ended by then, and work that its agent has ended
/// itself, are warnings: agents are quick. Errors: `stale_dispatch`, `dispatch_running`, `dispatch_finished`, `rolling_back`; a capture
/// that fails is a warning.
pub fn start(
    kernel: &Kernel,
    reference: &str,
    pid: Option<u32>,
    ttl: Option<Duration>,
    kept: Option<&CaptureSettings>,
) -> Result<(Dispatch, Vec<Warning>)> {
    // The identity is looked up now: a process that gets this number later is another one.
    let identity = pid.map_or(Ok(None), ProcessIdentity::of)?;
    let gone = pid.filter(|_| identity.is_none());
    let ended = gone.map(ProcessIdentity::of_ended);
    let process = identity.as_ref().or(ended.as_ref()).map(process_of);
    let mut warnings = beginning::warnings(gone);
    // `agent & ic dispatch start ID --pid $!`: the agent runs already, and may have reported its own beginning or end.
    // Then there is no point to record, and only the process is added.
    if let Some(process) = &process
        && let Some(met) = begun_before(kernel, reference, process, ttl)?
    {
        warnings.extend(beginning::ended(&met));
        return Ok((met, warnings));
    }
    let (taken, project) = look(kernel, reference, kept, DispatchStatus::Running)?;
    // Without a process the work begins with this call, so the current tree is the one before it.
    let before = match (kept, &process) {
        (Some(settings), Some(_)) => beginning::look_before(kernel, settings, &taken, &project, identity.as_ref())?,
        _ => None,
    };
    let dispatch = kernel.write(|tx, now| {
        // This is asked again: while the tree was captured, the work may have begun, or the run may have been rolled
        // back.
        let (dispatch, run) = settled(tx, reference)?;
        // Checked before the point is recorded, because work that may not begin makes no point.
        dispatch.status.check_move_to(DispatchStatus::Running, dispatch.id.short())?;
        let point = NewPoint::of_dispatch(dispatch.id.as_str());
        match &before {
            Some(look) => taken.record_point_at(tx, now, &run, &point, look)?,
            None => taken.record_point(tx, now, &run, &point)?,
        }
        let started = dispatch::start(tx, now, &dispatch, process.as_ref())?;
        ttl.map_or(Ok(started.clone()), |ttl| dispatch::beat(tx, now, &started, Some(ttl)))
    })?;
    warnings.extend(tidied(kernel, kept, taken, &project));
    Ok((dispatch, warnings))
}

/// Records that running work goes on; `ttl`: how long it may be silent from now on, if that is new. Errors: those of [`dispatch::beat`].
pub fn beat(kernel: &Kernel, reference: &str, ttl: Option<Duration>) -> Result<Dispatch> {
    kernel.write(|tx, now| dispatch::beat(tx, now, &settled(tx, reference)?.0, ttl))
}

/// Work that is begun, with its process on record now, or that has ended before it was said to begin; `None`: it is to begin.
fn begun_before(
    kernel: &Kernel,
    reference: &str,
    process: &Process,
    ttl: Option<Duration>,
) -> Result<Option<Dispatch>> {
    let is_met = |dispatch: &Dispatch| beginning::is_ended_by_itself(dispatch) || beginning::is_unnamed(dispatch);
    let known = kernel.read(|snapshot| {
        kernel.calling_dispatch(snapshot)?;
        dispatch::resolve(snapshot, reference)
    })?;
    if !is_met(&known) {
        return Ok(None);
    }
    let met = kernel.write(|tx, now| {
        let (dispatch, _) = settled(tx, reference)?;
        // Work that has ended since the read above keeps the process that it had, and gets no heartbeat.
        dispatch::set_process(tx, &dispatch.id, Some(process))?;
        if let Some(ttl) = ttl.filter(|_| dispatch.status == DispatchStatus::Running) {
            dispatch::set_heartbeat(tx, now, &dispatch.id, ttl)?;
        }
        dispatch::get(tx, &dispatch.id)
    })?;
    Ok(Some(met))
}

/// Captures the tree for work that may move to this status; the transaction that follows asks again.
fn look(
    kernel: &Kernel,
    reference: &str,
    kept: Option<&CaptureSettings>,
    to: DispatchStatus,
) -> Result<(TakenTree, PathBuf)> {
    if kept.is_none() {
        // The place is not used: without settings nothing was captured, and nothing is tidied.
        return Ok((TakenTree::nothing(), kernel.project.root.clone()));
    }
    let (dispatch, run) = kernel.read(|snapshot| {
        let dispatch = dispatch::resolve(snapshot, reference)?;
        let run = run::get(snapshot, &dispatch.run_id)?;
        Ok((dispatch, run))
    })?;
    let project = run.project_dir.clone();
    // A move that will be refused is refused before the tree is walked.
    let may_move = dispatch.require_current().and_then(|()| run.require_settled());
    may_move.and_then(|()| dispatch.status.check_move_to(to, dispatch.id.short()))?;
    Ok((TakenTree::take_if(kernel, kept, &project, link_of(&run, &dispatch.id)), project))
}

/// What went less well; old checkpoints make room once the locks of the new one are gone.
fn tidied(kernel: &Kernel, kept: Option<&CaptureSettings>, taken: TakenTree, project: &Path) -> Vec<Warning> {
    let (was_taken, mut warnings) = (taken.id().is_some(), taken.warnings.clone());
    // Pruning waits for the store's locks, which `taken` still has.
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
    ending: &DispatchEnding<'_>,
    kept: Option<&CaptureSettings>,
) -> Result<(Dispatch, Vec<Warning>)> {
    let (taken, project) = look(kernel, reference, kept, ending.status())?;
    let dispatch = kernel.write(|tx, now| {
        let (dispatch, run) = settled(tx, reference)?;
        // This comes right before the end, with no event in between: readers find what the work left at the event
        // before its end.
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
pub fn record(kernel: &Kernel, reference: &str, report: &DispatchReport) -> Result<(Dispatch, RecordedCode)> {
    kernel.write_late_too(|tx, now| {
        // `settled` is not asked: a commit that was made is a fact, and an undo must know it.
        let dispatch = dispatch::resolve(tx, reference)?;
        let recorded = code::record(tx, now, &dispatch, report)?;
        Ok((dispatch, recorded))
    })
}

/// Records the tokens used so far; from rolled-back work too.
pub fn record_tokens(kernel: &Kernel, reference: &str, tokens: TokenCounts) -> Result<Dispatch> {
    kernel.write_late_too(|tx, now| dispatch::record_tokens(tx, now, &dispatch::resolve(tx, reference)?, tokens))
}

/// The dispatch that a reference names, and its run, if it was not rolled back and the run is not in the middle of a rollback.
fn settled(tx: &Transaction<'_>, reference: &str) -> Result<(Dispatch, Run)> {
    let dispatch = dispatch::resolve(tx, reference)?;
    dispatch.require_current()?;
    let run = run::get(tx, &dispatch.run_id)?;
    run.require_settled()?;
    Ok((dispatch, run))
}
