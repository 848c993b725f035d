//! The state of a workflow, for people: what stands, and what was rolled back.

use ic_base::Result;
use ic_effects::{Compensation, CompensationState};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_ops::status::{self, HeldPhase, UnfinishedWork};
use ic_phase::{Run, RunStatus};

use crate::definition::{Definition, StepAction};
use crate::report::{EffectUndone, StepReport, WorkflowRunReport, WorkflowStatus};
use crate::table::{self, StepRow, Tried, WorkflowRowState, WorkflowStepState};

/// The report on a workflow. Nothing is written.
pub fn show(kernel: &Kernel, reference: &str) -> Result<WorkflowRunReport> {
    kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        let workflow = table::get(snapshot, &run.id)?;
        let definition = workflow.parsed()?;
        let (steps, has_rolled_back) = steps_of(snapshot, &run, &definition)?;
        let mut report = WorkflowRunReport::of(&workflow, steps);
        // A rollback does not write the workflow's row: it shows by the steps that are to run again.
        if has_rolled_back && report.status != WorkflowStatus::RollingBack {
            report.status = WorkflowStatus::RolledBack;
        }
        let standing = table::steps(snapshot, &run.id, run.epoch)?;
        if report.status == WorkflowStatus::RolledBack && !standing.is_empty() {
            let mut steps = report.steps.iter().map(|step| &step.id);
            report.ahead = steps.find(|id| standing.iter().all(|row| row.step != **id)).cloned();
        }
        // The run is fenced before the workflow's row changes.
        match run.status {
            RunStatus::Cancelled => report.status = WorkflowStatus::Cancelled,
            RunStatus::RollingBack => report.status = WorkflowStatus::RollingBack,
            RunStatus::Active | RunStatus::Completed | RunStatus::Failed => {}
        }
        if report.status == WorkflowStatus::Stopped {
            report.waits_for = waits_for(snapshot, &run, &workflow)?;
        }
        Ok(report)
    })
}

/// The rest of a workflow that stopped, that was rolled back, or whose executor died. `None`: the run has none, the workflow has ended, or
/// the run is not active. The caller knows that no process executes it.
pub fn unfinished(snapshot: &Snapshot<'_>, run: &Run) -> Result<Option<UnfinishedWork>> {
    if run.status != RunStatus::Active {
        return Ok(None);
    }
    let Some(workflow) = table::find(snapshot, &run.id)? else { return Ok(None) };
    // A resume would only wait for the same again.
    if let Some(held) = waits_for(snapshot, run, &workflow)? {
        let message = format!("the workflow {} waits: {}", workflow.name, held.message);
        return Ok(Some(UnfinishedWork {
            kind: "workflow",
            id: run.id.to_string(),
            message,
            command: held.command,
            abort: None,
        }));
    }
    // The hint is a resume: an advance by hand would leave out what the steps do.
    let message = if is_rolled_back(snapshot, run)? {
        format!("the workflow {} was rolled back", workflow.name)
    } else {
        match (workflow.state, &workflow.failed_step) {
            (WorkflowRowState::Running, _) => {
                format!("the executor of the workflow {} ended before it", workflow.name)
            }
            (WorkflowRowState::Stopped, Some(step)) => {
                let why = workflow.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                format!("the workflow {} stopped at the step {step}{why}", workflow.name)
            }
            (WorkflowRowState::Stopped, None) => format!("the workflow {} stopped", workflow.name),
            (WorkflowRowState::Failed, Some(step)) => {
                let why = workflow.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                format!("the workflow {} ended without the step {step}{why}", workflow.name)
            }
            (WorkflowRowState::Failed, None) => {
                format!("the workflow {} ended without all of its steps", workflow.name)
            }
            (WorkflowRowState::Completed, _) => return Ok(None),
        }
    };
    let command = format!("ic workflow resume {}", run.id.short());
    Ok(Some(UnfinishedWork { kind: "workflow", id: run.id.to_string(), message, command, abort: None }))
}

/// The block of a stopped workflow's run, if no step of it failed and no step of the current phase is left.
pub(crate) fn waits_for(snapshot: &Snapshot<'_>, run: &Run, workflow: &table::Workflow) -> Result<Option<HeldPhase>> {
    if run.status != RunStatus::Active || workflow.state != WorkflowRowState::Stopped || workflow.failed_step.is_some()
    {
        return Ok(None);
    }
    let rows = table::steps(snapshot, &run.id, run.epoch)?;
    let has_ended = |id: &str| rows.iter().any(|row| row.step == id && row.state == WorkflowStepState::Succeeded);
    let definition = workflow.parsed()?;
    let mut here = definition.steps.iter().filter(|step| step.phase == run.phase);
    if here.all(|step| has_ended(&step.id)) { status::held(snapshot, run) } else { Ok(None) }
}

/// Whether steps of the last epoch with steps were rolled back and not begun again since.
fn is_rolled_back(snapshot: &Snapshot<'_>, run: &Run) -> Result<bool> {
    let tried = table::tried(snapshot, &run.id)?;
    // A rollback raises the epoch. If the newest attempt is of this epoch, a step has begun since.
    let Some(last) = tried.iter().map(|tried| tried.epoch).max().filter(|last| *last < run.epoch) else {
        return Ok(false);
    };
    let standing = table::steps(snapshot, &run.id, run.epoch)?;
    let is_gone = |tried: &Tried| standing.iter().all(|row| row.step != tried.row.step);
    Ok(tried.iter().any(|tried| tried.epoch == last && tried.is_marked && is_gone(tried)))
}

/// The reports on all steps, and whether steps were rolled back and not begun again since.
///
/// While the workflow runs, steps that do not stand are pending. Once it was rolled back, the earlier attempts are reported. A step of the
/// last epoch has its end. A step that succeeded in any epoch is rolled back, unless its effect was skipped.
fn steps_of(snapshot: &Snapshot<'_>, run: &Run, definition: &Definition) -> Result<(Vec<StepReport>, bool)> {
    let standing = table::steps(snapshot, &run.id, run.epoch)?;
    let tried = table::tried(snapshot, &run.id)?;
    let effects = ic_effects::compensation::list(snapshot, &run.id)?;
    let last_try = tried.iter().map(|tried| tried.epoch).max();
    // A rollback raises the epoch, and the next step that begins has the new one.
    let is_back = run.status == RunStatus::RollingBack || last_try.is_some_and(|last| last < run.epoch);
    let is_told = |tried: &&Tried| Some(tried.epoch) == last_try || tried.is_back();
    let mut has_rolled_back = false;
    let steps = definition.steps.iter().map(|step| {
        // The newest come first: a step has a row in each epoch in which it was tried.
        let of_step = tried.iter().rev().filter(|tried| is_back && tried.row.step == step.id);
        let told = of_step.clone().find(is_told);
        let stands = standing.iter().find(|row| row.step == step.id);
        // A step that stands may be undone already, while the rest of its rollback is to come.
        let is_rolled_back = told.is_some_and(Tried::is_rolled_back);
        let has_gone = told.is_some_and(|told| told.is_back() || told.is_marked) && stands.is_none();
        has_rolled_back |= has_gone;
        // The work is marked when a rollback begins, and may be there until the rollback ends.
        let is_undone = has_gone && run.status != RunStatus::RollingBack;
        let effect_undone =
            stands.filter(|_| run.status != RunStatus::RollingBack).and_then(|row| undone_alone(&effects, row));
        let needs_undo = !step.compensate.as_ref().is_some_and(|undo| matches!(undo.action, StepAction::Skip(_)));
        let is_effect_left =
            is_undone && needs_undo && told.is_some_and(|told| told.is_back() && !told.is_rolled_back());
        let row = stands.or(told.map(|tried| &tried.row)).cloned();
        let state = row.as_ref().map_or(WorkflowStepState::Pending, |row| row.state);
        StepReport {
            id: step.id.clone(),
            phase: step.phase.clone(),
            state,
            is_rolled_back,
            is_undone,
            is_effect_left,
            effect_undone,
            row,
        }
    });
    let steps = steps.collect();
    Ok((steps, has_rolled_back))
}

/// The state of the effect of a step that succeeded, if it was, or may have been, undone without the rest of the step. `all`: the effects
/// of its run.
pub(crate) fn undone_alone(all: &[Compensation], row: &StepRow) -> Option<EffectUndone> {
    let own = all.iter().find(|one| row.compensation_id.as_ref() == Some(&one.id));
    let effect = own.filter(|_| row.state == WorkflowStepState::Succeeded)?;
    match effect.state {
        CompensationState::Done => Some(EffectUndone::Yes),
        _ if effect.is_cut_off() => Some(EffectUndone::Perhaps),
        _ => None,
    }
}
