//! Compensations of a run: declaring them, running them in reverse, and what is not covered.

mod allowed_directories;
mod attempts;
mod plan;
mod saga;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{CheckpointId, Code, CompensationId, Diagnosis, Result, RollbackId, RunId};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::manifest::PathText;
use ic_dispatch::dispatch;
use ic_dispatch::worker::living;
use ic_effects::action::CompensatedFile;
use ic_effects::compensation::{self, CompensationEnd, NewCompensation};
use ic_effects::coverage::{CompensationReport, EffectCoverage};
use ic_effects::order::FailurePolicy;
use ic_effects::undo;
use ic_effects::{Compensation, CompensationState, EffectAction};
use ic_ledger::Snapshot;
use ic_ledger::events::Cut;
use ic_phase::{Run, RunStatus};

pub use attempts::Undoing;
pub use plan::{EffectScope, UndoPlan, plan};
pub use saga::{Saga, Sink, Unwatched};

use ic_kernel::Kernel;
use ic_worktree::{CaptureSettings, Workspace, paths_in_root};

use crate::dispatch_changes;

/// How the effect of a step is undone, as its caller declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// By an action that is ready.
    Action(EffectAction),
    /// By restoring paths to what they are now; from the working directory.
    RestoreFiles(Vec<PathBuf>),
    /// By ending a process that runs now.
    KillProcess(u32),
}

/// A compensation that is to be registered.
#[derive(Debug, Clone)]
pub struct Declaration<'a> {
    /// A reference to the run, as a person types it.
    pub run: &'a str,
    /// The name of the step whose effect it undoes.
    pub step: &'a str,
    /// How its effect is undone.
    pub declared: Declared,
    /// What it does, for people; `None` where the action says enough.
    pub description: Option<&'a str>,
}

/// Registers the compensation of a step of an active run and arms it: its effect may be made now.
///
/// Errors: `run_not_active`, `rolling_back`, `stale_dispatch`, `path_not_found` for a path outside of the root, `invalid_value` (no such
/// process, no file that could be restored, a working directory outside of the project).
pub fn add(kernel: &Kernel, settings: &CaptureSettings, declaration: &Declaration<'_>) -> Result<Compensation> {
    kernel.ledger.require_one_host("A compensation")?;
    let id: CompensationId = kernel.context.new_id();
    let run = kernel.read(|snapshot| kernel.run(snapshot, declaration.run))?;
    let mut _held = None;
    let action = match &declaration.declared {
        Declared::Action(action) => allowed_directories::in_project(action.clone(), &run.project_dir)?,
        Declared::KillProcess(pid) => {
            EffectAction::KillProcess { pid_file: None, identity: Some(living(*pid)?), before: None }
        }
        Declared::RestoreFiles(paths) => {
            let workspace = Workspace::of_run(kernel, &run, settings)?;
            let paths = paths_in_root(&workspace, paths)?.into_iter().map(PathText).collect::<Vec<_>>();
            // A sweep must not delete the contents before the row that needs them is committed.
            _held = Some(lock::store(workspace.objects.path(), LockMode::Shared, settings.busy_timeout)?);
            EffectAction::RestoreFiles { files: remember_files(kernel, &workspace, &paths)? }
        }
    };
    kernel.write(|tx, now| {
        // Read again under the write lock: a rollback may have closed the run while its files were remembered.
        let run = ic_phase::run::get(tx, &run.id)?;
        run.require_active()?;
        let dispatch_id = kernel.dispatch_in(tx, &run.id)?;
        let new = NewCompensation {
            id: &id,
            run: (&run.id, run.epoch),
            dispatch_id: dispatch_id.as_ref(),
            step: declaration.step,
            needs: &[],
            phase: &run.phase,
            action: &action,
            description: declaration.description,
        };
        compensation::arm(tx, now, &new)
    })
}

/// What stands at paths now; the contents are durable. The caller holds the store's lock.
///
/// Errors: `invalid_value` for what could not be restored: a directory, git's own files, the ledger, what lies behind a link.
pub fn remember_files(kernel: &Kernel, workspace: &Workspace<'_>, paths: &[PathText]) -> Result<Vec<CompensatedFile>> {
    paths.iter().try_for_each(|path| allowed_directories::check_file(workspace, path))?;
    let writer = workspace.objects.writer(kernel.context.now())?;
    let files = undo::remember_files(&writer, &workspace.root, paths)?;
    writer.finish()?;
    Ok(files)
}

/// The compensations of a run, in the order in which their effects were begun.
pub fn list(kernel: &Kernel, reference: &str) -> Result<Vec<Compensation>> {
    kernel.read(|snapshot| compensation::list(snapshot, &kernel.run(snapshot, reference)?.id))
}

/// How much of a run can be undone: its work and its declared steps, rolled-back ones aside.
pub fn coverage(kernel: &Kernel, reference: &str) -> Result<(RunId, CompensationReport)> {
    kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        let report = CompensationReport::new(steps(snapshot, &run)?);
        Ok((run.id, report))
    })
}

fn steps(snapshot: &Snapshot<'_>, run: &Run) -> Result<Vec<(String, EffectCoverage)>> {
    let mut steps: Vec<(String, EffectCoverage)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut names: HashMap<String, String> = HashMap::new();
    let mut put = |step: String, coverage: EffectCoverage| {
        let at = *places.entry(step.clone()).or_insert_with(|| {
            steps.push((step, EffectCoverage::Undeclared));
            steps.len() - 1
        });
        steps[at].1 = steps[at].1.max(coverage);
    };
    // The list is newest first, and the report names the steps in the order of the work.
    for dispatch in dispatch::of_run(snapshot, &run.id)?.into_iter().rev() {
        if dispatch.rolled_back_by.is_none() {
            let name = dispatch.work.name.clone().unwrap_or_else(|| dispatch.id.short().to_owned());
            names.insert(dispatch.id.as_str().to_owned(), name.clone());
            put(name, EffectCoverage::Undeclared);
        }
    }
    for compensation in compensation::list(snapshot, &run.id)? {
        // An effect that was skipped belongs to the attempt that was rolled back.
        let is_over = compensation.state == CompensationState::Skipped && compensation.epoch < run.epoch;
        if compensation.rolled_back_by.is_none() && !is_over {
            let work = compensation.dispatch_id.as_ref().and_then(|id| names.get(id.as_str()));
            let coverage = compensation.action.coverage();
            if let Some(work) = work.filter(|work| **work != compensation.step) {
                put(work.clone(), coverage);
            }
            put(compensation.step.clone(), coverage);
        }
    }
    Ok(steps)
}

/// What the caller asks to be undone.
#[derive(Debug, Clone)]
pub struct CompensationRequest<'a> {
    /// A reference to the run, as a person types it.
    pub run: &'a str,
    /// The effects of the run that are meant.
    pub scope: EffectScope,
    /// Say what would be undone and change nothing.
    pub dry_run: bool,
    /// What happens to the others when one cannot be undone.
    pub policy: FailurePolicy,
    /// Whether what was done before a pivot is undone too.
    pub force: bool,
    /// The effects of these steps are left by decision of a person, for this reason.
    pub skip: (&'a [String], &'a str),
    /// Set from elsewhere: no further undo begins, and the one under way is ended.
    pub interrupted: Arc<AtomicBool>,
}

ic_base::words! {
    /// How far it came.
    pub enum CompensationStatus {
        /// Everything that can be undone is.
        Done = "done",
        /// One failed, and the others wait.
        Stopped = "stopped",
        /// One failed, and the others are undone as far as they can be.
        Failed = "failed",
        /// It was a dry run.
        Planned = "planned",
    }
}

/// What was undone, or would be.
#[derive(Debug)]
pub struct CompensationRunReport {
    /// The run whose effects they are.
    pub run_id: RunId,
    /// How far it came.
    pub status: CompensationStatus,
    /// The compensations in the order of undoing, as they are now.
    pub results: Vec<Compensation>,
    /// What was meant and is not undone, in the same order, with its present state.
    pub left: Vec<Compensation>,
    /// The step that cannot be undone, and because of which some of them are left.
    pub pivot: Option<String>,
    /// Whether the run is closed because something failed, until it is undone.
    pub is_closed: bool,
    /// The checkpoint of the tree before files were restored; `None`: none was to be.
    pub safety_id: Option<CheckpointId>,
    /// What the real call would answer instead of undoing, with the same flags; only of a dry run.
    pub refusal: Option<Diagnosis>,
}

/// Undoes the effects of a run, in reverse.
///
/// During this the run is closed (`rolling_back`). It stays closed while an undo of it has failed, and the same call then undoes what is
/// left. Errors: `unknown_phase`, `phase_ahead`, `compensation_not_found`, `stale_dispatch`; `work_running` while another process executes
/// or compensates the run.
pub fn run(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &CompensationRequest<'_>,
    sink: &mut dyn Sink,
) -> Result<CompensationRunReport> {
    kernel.ledger.require_one_host("A compensation")?;
    let run = kernel.read(|snapshot| kernel.run(snapshot, request.run))?;
    let make = || {
        kernel.read(|snapshot| {
            let run = ic_phase::run::get(snapshot, &run.id)?;
            plan(snapshot, &run, &request.scope, request.force)
        })
    };
    // A refusal comes before anything is written: a run that was closed for nothing would have to be opened again.
    make()?;
    Workspace::of_run(kernel, &run, settings)?;
    if request.dry_run {
        return preview(kernel, &run, request);
    }
    let mut saga = Saga::take(kernel, settings, &run.id)?;
    saga.interrupted = request.interrupted.clone();
    // Before the plan is made again, which then has nothing of what is left by decision.
    leave(&saga, request.skip.0, request.skip.1, None)?;
    // Planned again: a process that had the run until now may have undone some of it.
    let plan = make()?;
    // The capture comes before the run is closed: if it fails, the run stays open.
    let safety_id = keep_before_files(&saga, &plan)?;
    let was_closed = saga.run()?.status == RunStatus::RollingBack;
    if plan.undo().next().is_some() {
        saga.close()?;
    }
    let undoing = saga.undo(&plan, request.policy, None, sink)?;
    let is_done = undoing.left.is_empty();
    // The undo of other effects does not settle what had closed the run before.
    // A cancelled run is closed anyway, and stays cancelled: no work goes on in it that a failure would have to stop.
    let was_cancelled = saga.status_before()? == Some(RunStatus::Cancelled);
    let is_closed =
        !was_cancelled && ((!is_done && undoing.has_failed) || (was_closed && has_unfinished(kernel, &run.id)?));
    if !is_closed {
        saga.reopen()?;
    }
    let status = match (undoing.has_failed, request.policy) {
        (false, _) if is_done => CompensationStatus::Done,
        (true, FailurePolicy::Continue) => CompensationStatus::Failed,
        _ => CompensationStatus::Stopped,
    };
    let left = undoing.left.iter().map(|id| as_it_is(id, &undoing.results, &plan)).collect::<Result<_>>()?;
    Ok(CompensationRunReport {
        run_id: run.id,
        status,
        results: undoing.results,
        left,
        pivot: plan.pivot,
        is_closed,
        safety_id,
        refusal: None,
    })
}

/// What [`run`] would undo now, in the same order, with the refusal that it would meet. Takes no lock.
fn preview(kernel: &Kernel, run: &Run, request: &CompensationRequest<'_>) -> Result<CompensationRunReport> {
    let refusal = Saga::require_takeable(kernel, &run.id).err();
    let planned = kernel.read(|snapshot| {
        let run = ic_phase::run::get(snapshot, &run.id)?;
        let mut all = compensation::list(snapshot, &run.id)?;
        require_open(&all, &run.id, request.skip.0, &|one| one.state.is_open())?;
        // The plan is made as if the skips were on record, which a preview must not write.
        for one in all.iter_mut().filter(|one| one.state.is_open() && request.skip.0.contains(&one.step)) {
            one.state = CompensationState::Skipped;
        }
        plan::plan_of(all, snapshot, &run, &request.scope, request.force)
    });
    let (plan, refusal) = match (planned, refusal) {
        (Ok(plan), refusal) => (plan, refusal),
        // The real call would be refused before it found what is wrong with the plan.
        (Err(_), Some(refusal)) | (Err(refusal), None) => return Err(refusal),
    };
    Ok(CompensationRunReport {
        run_id: run.id.clone(),
        status: CompensationStatus::Planned,
        results: plan.undo().cloned().collect(),
        left: plan.left().cloned().collect(),
        pivot: plan.pivot,
        is_closed: false,
        safety_id: None,
        refusal,
    })
}

/// Captures the tree before files are restored in it: the contents that are replaced may be in no checkpoint yet.
fn keep_before_files(saga: &Saga<'_>, plan: &UndoPlan) -> Result<Option<CheckpointId>> {
    let force = dispatch_changes::files_of(plan.undo());
    if force.is_empty() {
        return Ok(None);
    }
    let message = "before effects are undone that restore files".to_owned();
    saga.keep_tree((message, saga.run()?.epoch), force, |_, _, _| Ok(())).map(|shot| Some(shot.id().clone()))
}

/// Errors: `compensation_not_found` for a step none of whose compensations `is_meant`.
fn require_open(
    all: &[Compensation],
    run_id: &RunId,
    steps: &[String],
    is_meant: &dyn Fn(&Compensation) -> bool,
) -> Result<()> {
    let named = |step: &String| all.iter().any(|one| one.step == *step && is_meant(one));
    let Some(step) = steps.iter().find(|step| !named(step)) else { return Ok(()) };
    let is_known = all.iter().any(|one| one.step == *step);
    let refuse = if is_known { plan::nothing_left_of } else { plan::no_such_step };
    Err(refuse(run_id, step))
}

/// Records that the effects of these steps are left by decision: what could not be undone counts as ended. With the cut of a rollback only
/// those that it undoes, and for as long as it stands.
///
/// Errors: `compensation_not_found` for a step that has no effect to be undone: nothing is changed.
pub(crate) fn leave(
    saga: &Saga<'_>,
    steps: &[String],
    reason: &str,
    rollback: Option<(&Cut, &RollbackId)>,
) -> Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    // An undo that still runs must not end after the decision was recorded.
    saga.end_children()?;
    let is_meant = |one: &Compensation| is_open_in(one, rollback.map(|(cut, _)| cut));
    let mut left = saga.kernel.read(|snapshot| compensation::list(snapshot, &saga.run_id))?;
    left.retain(|one| steps.contains(&one.step) && is_meant(one));
    saga.clear_up(&left)?;
    saga.write(|tx, now| {
        let all = compensation::list(tx, &saga.run_id)?;
        require_open(&all, &saga.run_id, steps, &is_meant)?;
        for one in all.iter().filter(|one| steps.contains(&one.step) && is_meant(one)) {
            let left = compensation::finish(tx, now, one, CompensationEnd::Skipped(reason))?;
            if let Some((_, id)) = rollback {
                compensation::mark_left(tx, &left, id)?;
            }
        }
        Ok(())
    })
}

/// Errors: `compensation_not_found` for a step that has no effect which a rollback with this cut would still undo.
pub(crate) fn require_left_in(snapshot: &Snapshot<'_>, run_id: &RunId, steps: &[String], cut: &Cut) -> Result<()> {
    require_open(&compensation::list(snapshot, run_id)?, run_id, steps, &|one| is_open_in(one, Some(cut)))
}

fn is_open_in(one: &Compensation, cut: Option<&Cut>) -> bool {
    one.state.is_open() && cut.is_none_or(|cut| cut.covers(one.seq, &one.phase, one.dispatch_id.as_ref()))
}

/// Whether an undo of the run failed, or was begun and not ended.
fn has_unfinished(kernel: &Kernel, run: &RunId) -> Result<bool> {
    let all = kernel.read(|snapshot| compensation::list(snapshot, run))?;
    Ok(all.iter().any(|one| matches!(one.state, CompensationState::Failed | CompensationState::Running)))
}

/// A compensation of a plan after the attempts to undo it.
fn as_it_is(id: &CompensationId, tried: &[Compensation], plan: &UndoPlan) -> Result<Compensation> {
    // What was tried is asked first: the plan has the states from before the attempts.
    tried
        .iter()
        .chain(plan.undo())
        .chain(plan.left())
        .find(|one| one.id == *id)
        .cloned()
        .ok_or_else(|| Diagnosis::new(Code::Internal, "What is left was not in the plan.").detail("id", id.as_str()))
}
