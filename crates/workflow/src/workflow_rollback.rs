//! Rolling a workflow back: a rollback of its run to before one of its steps, by the engine of every rollback.
//!
//! Only what is special about workflows is here: which point is meant, and which layers a strategy names. Plan, refusals, journal, resume,
//! abort and undo are those of `ic_undo`.

mod reopen;
mod rollback_report;

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_checkpoint::record;
use ic_checkpoint::restore::Strategy;
use ic_kernel::Kernel;
use ic_kernel::journal::{Force, PathDecisions};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::point::{self as points, PointKind, PointRecord};
use ic_undo::{
    LayerName, LayeredRequest, LayeredRollback, Layers, Refusal, ResumeRequest, RollbackRequest, RollbackTarget,
};
use ic_worktree::{CaptureSettings, RestoreWatch, Warning};

pub(crate) use reopen::adopt;

use crate::flow::{WorkflowUi, workspace_here};
use crate::options::Overrides;
use crate::permission::{require_work, strategy_for};
use crate::point;
use crate::report::WorkflowRunReport;
use crate::table::{self, StepRow, Workflow, WorkflowRowState};

/// The point and the layers of a rollback of a workflow.
#[derive(Debug)]
pub(crate) struct Aim {
    pub(crate) strategy: Strategy,
    /// The steps before which the workflow is after the rollback; empty: before all of them.
    pub(crate) before_steps: Vec<String>,
    /// The reference of the point.
    to: String,
    layers: Vec<LayerName>,
    /// Why files and git are left, though the strategy names them.
    pub(crate) stays: Option<&'static str>,
    reason: String,
    /// Whether steps are left to run, so that a resume is an alternative.
    can_go_on: bool,
}

/// What a rollback would do, with its refusals. Nothing is locked or changed.
pub(crate) fn look(
    kernel: &Kernel,
    settings: &CaptureSettings,
    run: &RunId,
    overrides: &Overrides,
) -> Result<(Aim, LayeredRollback)> {
    let (run, aim, is_left) = kernel.read(|snapshot| {
        let (run, aim) = aimed(snapshot, settings, run, false, overrides)?;
        let is_left = table::steps(snapshot, &run.id, run.epoch)?.iter().any(StepRow::is_running);
        Ok((run, aim, is_left))
    })?;
    workspace_here(kernel, settings, &run)?;
    // A process that a dead executor left is ended before the rollback begins, so it refuses nothing.
    let workers = Force { workers: is_left, ..Force::default() };
    let request = request(&run, &aim, overrides, overrides.force.or(workers), true);
    // A dry run changes nothing, so nothing of it is watched.
    let mut whole =
        ic_undo::roll_back(kernel, settings, &request, &mut ic_undo::compensation::Unwatched, &RestoreWatch::default())
            .map_err(|error| with_a_way(error, &run.id, &aim))?;
    let explained = |refusal: Refusal| Refusal { error: with_a_way(refusal.error, &run.id, &aim), ..refusal };
    whole.refusals = whole.refusals.into_iter().map(explained).collect();
    Ok((aim, whole))
}

/// Rolls back the workflow of a run that no process executes. `is_automatic`: because a step failed, and not by request.
///
/// Errors: those of [`ic_undo::roll_back`]; nothing is changed then.
pub(crate) fn roll_back(
    kernel: &Kernel,
    settings: &CaptureSettings,
    run: &RunId,
    is_automatic: bool,
    overrides: &Overrides,
    ui: &mut dyn WorkflowUi,
) -> Result<WorkflowRunReport> {
    let (run, aim) = kernel.read(|snapshot| aimed(snapshot, settings, run, is_automatic, overrides))?;
    workspace_here(kernel, settings, &run)?;
    let request = request(&run, &aim, overrides, overrides.force, false);
    let whole = ic_undo::roll_back(kernel, settings, &request, ui, &watch(overrides))
        .map_err(|error| with_a_way(error, &run.id, &aim))?;
    if let Some(why) = aim.stays {
        ui.warn(&Warning { code: "no_checkpoint", message: why.to_owned() });
    }
    rollback_report::begun(kernel, &aim, whole, ui)
}

/// Resumes the rollback of a run that was begun and not finished, in the direction in which it last went.
pub(crate) fn finish(
    kernel: &Kernel,
    settings: &CaptureSettings,
    run: &Run,
    overrides: &Overrides,
    ui: &mut dyn WorkflowUi,
) -> Result<WorkflowRunReport> {
    workspace_here(kernel, settings, run)?;
    // A run has one unfinished rollback at most, so the run names it.
    let request = ResumeRequest { rollback: run.id.as_str(), force: overrides.force, ..ResumeRequest::default() };
    let outcome = ic_undo::resume(kernel, settings, &request, ui, &watch(overrides))?;
    rollback_report::resumed(kernel, outcome, ui)
}

fn watch(overrides: &Overrides) -> RestoreWatch {
    RestoreWatch { interrupted: overrides.interrupted.clone(), ..RestoreWatch::default() }
}

fn request<'a>(
    run: &'a Run,
    aim: &'a Aim,
    overrides: &'a Overrides,
    force: Force,
    dry_run: bool,
) -> LayeredRequest<'a> {
    LayeredRequest {
        base: RollbackRequest {
            run: run.id.as_str(),
            to: RollbackTarget::Point(&aim.to),
            reason: Some(&aim.reason),
            dry_run,
            expect_plan: overrides.expect_plan.as_deref(),
        },
        layers: Layers::Only(&aim.layers),
        force,
        keep_theirs: false,
        decisions: PathDecisions::default(),
        mine: false,
    }
}

/// The beginning of the reason of a rollback that a failed step caused. It is stored, and recognised later.
pub(crate) fn reason_of_failure(step: &str) -> String {
    format!("step {step} failed: ")
}

fn aimed(
    snapshot: &Snapshot<'_>,
    settings: &CaptureSettings,
    run: &RunId,
    is_automatic: bool,
    overrides: &Overrides,
) -> Result<(Run, Aim)> {
    let run = ic_phase::run::get(snapshot, run)?;
    let workflow = table::get(snapshot, &run.id)?;
    require_work(snapshot, &run)?;
    let strategy = strategy_for(&workflow, overrides);
    let rows = table::steps(snapshot, &run.id, run.epoch)?;
    let (first, before_steps) = target(snapshot, &run, &workflow, &rows, strategy, overrides)?;
    // `target` names only steps that were begun, and each of those has a place.
    let (seq, to) = place(snapshot, &run, first)?.unwrap_or_default();
    let is_pruned = match &first.checkpoint_id {
        Some(id) => Some(record::get(snapshot, id)?.pruned_at.is_some()),
        None => None,
    };
    let stays = match is_pruned {
        None => Some("no checkpoint was taken before the steps: files and git stay as they are"),
        // Only a caller who forces everything goes without the files; all others learn that the content is gone.
        Some(true) if overrides.force == Force::ALL => {
            Some("the checkpoint from before the steps was pruned: files and git stay as they are")
        }
        Some(_) => None,
    };
    let failure = workflow.failed_step.as_ref().zip(workflow.error.as_ref()).filter(|_| is_automatic);
    let reason = match (before_steps.as_slice(), failure) {
        ([], Some((step, error))) => format!("{}{error}", reason_of_failure(step)),
        ([], None) => format!("rollback of the workflow {}", workflow.name),
        (steps, _) => format!("rolled back to before {}", steps.join(" and ")),
    };
    // A strategy does not promise rows, so they are included only where a mark makes it possible.
    let has_rows = settings.state.is_some() && ic_undo::has_mark(snapshot, seq)?;
    let layers = layers(strategy, stays.is_none(), has_rows);
    // A completed workflow has no step left that a resume could run.
    let can_go_on = workflow.state != WorkflowRowState::Completed;
    Ok((run, Aim { strategy, before_steps, to, layers, stays, reason, can_go_on }))
}

/// The layers that a strategy names.
fn layers(strategy: Strategy, has_tree: bool, has_rows: bool) -> Vec<LayerName> {
    let mut layers = vec![LayerName::Workflow, LayerName::Effects];
    match strategy {
        _ if !has_tree => {}
        Strategy::FilesOnly => layers.push(LayerName::Files),
        Strategy::GitOnly => layers.push(LayerName::Git),
        Strategy::Full | Strategy::Partial => {
            layers.extend([LayerName::Files, LayerName::Git]);
            layers.extend(has_rows.then_some(LayerName::Data));
        }
    }
    layers
}

/// The first step that is rolled back, and the steps before which the workflow is after that; empty: all of it is rolled back.
///
/// The order of the ledger decides which step was first: a resumed executor begins steps in another order than the first one, and a file
/// may list its steps in any.
fn target<'r>(
    snapshot: &Snapshot<'_>,
    run: &Run,
    workflow: &Workflow,
    rows: &'r [StepRow],
    strategy: Strategy,
    overrides: &Overrides,
) -> Result<(&'r StepRow, Vec<String>)> {
    let none = || Diagnosis::new(Code::NothingToRollBack, "No step of the workflow was begun.");
    if let Some(to) = &overrides.to {
        let point = point::before(snapshot, run, workflow, to)?;
        let row = rows.iter().find(|row| point.steps.first() == Some(&row.step)).ok_or_else(none)?;
        return Ok((row, if point.is_first { Vec::new() } else { point.steps }));
    }
    // `partial` goes to before the failed step alone. Every other strategy goes to before the first step that stands.
    let failed = workflow.failed_step.as_ref().filter(|_| strategy == Strategy::Partial);
    if let Some(row) = rows.iter().find(|row| Some(&row.step) == failed && row.dispatch_id.is_some()) {
        require_last(snapshot, run, row, rows)?;
        return Ok((row, vec![row.step.clone()]));
    }
    let mut first: Option<(Seq, &StepRow)> = None;
    for row in rows {
        if let Some((seq, _)) = place(snapshot, run, row)?
            && first.is_none_or(|(known, _)| seq < known)
        {
            first = Some((seq, row));
        }
    }
    first.map(|(_, row)| (row, Vec::new())).ok_or_else(none)
}

/// Errors: `steps_overlap` if other steps began after the failed one: its changes cannot be told from theirs.
fn require_last(snapshot: &Snapshot<'_>, run: &Run, failed: &StepRow, rows: &[StepRow]) -> Result<()> {
    let Some((own, _)) = place(snapshot, run, failed)? else { return Ok(()) };
    let mut later = Vec::new();
    for row in rows {
        if place(snapshot, run, row)?.is_some_and(|(seq, _)| seq > own) {
            later.push(row.step.as_str());
        }
    }
    if later.is_empty() {
        return Ok(());
    }
    let id = run.id.short();
    let way = match &failed.checkpoint_id {
        Some(checkpoint) => {
            format!("with them: ic workflow rollback {id} --id {} --yes; ", checkpoint.short())
        }
        None => String::new(),
    };
    Err(Diagnosis::new(
        Code::StepsOverlap,
        format!("Other steps began after {} failed ({}): it cannot go back alone.", failed.step, later.join(", ")),
    )
    .hint(format!("{way}all of it: ic workflow rollback {id} --strategy full --yes"))
    .detail("steps", later))
}

/// The event before the first attempt at a step that stands, and the reference of that point; `None` for a step that was not begun.
fn place(snapshot: &Snapshot<'_>, run: &Run, row: &StepRow) -> Result<Option<(Seq, String)>> {
    let known = points::named_in(snapshot, &run.id, PointKind::Step, &row.step)?;
    // An undo may have left an earlier attempt standing that the row does not have.
    let is_its = |point: &&PointRecord| match &row.checkpoint_id {
        Some(id) => point.checkpoint_id.as_ref() == Some(id),
        None => point.attempt == 1,
    };
    // The newest point that stands is meant: the points of attempts that a rollback undid are not targets.
    for point in known.iter().filter(is_its).rev() {
        if ic_undo::points::taken_back_by(snapshot, run, point.seq)?.is_none() {
            return Ok(Some((point.seq, ic_undo::points::reference(point))));
        }
    }
    // The step was begun before points were recorded.
    if let Some(id) = &row.checkpoint_id {
        return Ok(Some((record::get(snapshot, id)?.seq, format!("checkpoint:{id}"))));
    }
    let Some(id) = &row.dispatch_id else { return Ok(None) };
    let seq = ic_dispatch::dispatch::get(snapshot, id)?.place();
    Ok(Some((seq, format!("dispatch:{id}"))))
}

/// Replaces hints that name flags of `ic run rollback` by the command of a workflow that does the same.
fn with_a_way(error: Diagnosis, run: &RunId, aim: &Aim) -> Diagnosis {
    let run = run.short();
    let forced = |what: &str, flag: &str| format!("{what}: ic workflow rollback {run} {flag} --yes");
    let hint = match error.code() {
        Code::NoCheckpoint | Code::CheckpointNotFound => {
            forced("to undo its effects and leave files and git", "--force")
        }
        Code::ForeignCommits => format!(
            "to leave git unchanged: ic workflow rollback {run} --strategy files-only --yes; to take the commit off its branch anyway: --force-commits"
        ),
        Code::FileConflict => forced("to overwrite it", "--force-files"),
        Code::Pivot => {
            let go_on = format!("to resume: ic workflow resume {run}; ");
            let go_on = if aim.can_go_on { &go_on } else { "" };
            format!("{go_on}{}", forced("to undo the rest anyway", "--past-pivot"))
        }
        _ => match error.get_hint() {
            Some(hint) if hint.contains("--layer") => {
                format!("{hint}; with layers of your choice: ic run rollback {run} --to {} --layer=LIST --yes", aim.to)
            }
            _ => return error,
        },
    };
    error.hint(hint)
}
