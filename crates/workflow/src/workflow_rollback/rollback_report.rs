//! The reports on rollbacks of a workflow.

use std::path::PathBuf;

use ic_base::{Result, RollbackId, RunId};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::Strategy;
use ic_kernel::Kernel;
use ic_kernel::journal::steps::{RollbackStep, RollbackStepState, failed_effect};
use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use ic_ledger::path_from_bytes;
use ic_phase::point::{self, PointKind};
use ic_undo::{LayerName, LayeredRollback, LayeredStatus, Parts, RollbackOutput};

use super::Aim;
use crate::flow::WorkflowUi;
use crate::report::{Restored, StepReport, UndoneSteps, WorkflowRunReport, WorkflowStatus};
use crate::show::show;
use crate::table;

/// The report on a rollback that this call began.
pub(super) fn begun(
    kernel: &Kernel,
    aim: &Aim,
    whole: LayeredRollback,
    ui: &mut dyn WorkflowUi,
) -> Result<WorkflowRunReport> {
    let status = match whole.status {
        LayeredStatus::RolledBack | LayeredStatus::AlreadyThere => WorkflowStatus::RolledBack,
        LayeredStatus::RolledBackInPart => WorkflowStatus::RolledBackInPart,
        // `Planned` is the status of a dry run, which has no report.
        LayeredStatus::Planned | LayeredStatus::RollingBack => WorkflowStatus::RollingBack,
    };
    let plan = &whole.rollback.plan;
    let told = Told {
        strategy: aim.strategy,
        before_steps: aim.before_steps.clone(),
        rollback_id: whole.rollback.done.map(|(id, _)| id),
        to_phase: &plan.to_phase,
    };
    let taken = taken(told, whole.parts, &whole.steps, ui);
    let report = report(kernel, &plan.run.id, status, taken)?;
    Ok(if aim.stays.is_some() { without_tree(report) } else { report })
}

/// The report on a rollback that could restore no tree: a step that declared no undo is undone only in the record.
fn without_tree(mut report: WorkflowRunReport) -> WorkflowRunReport {
    let is_left = |step: &&StepReport| {
        (step.is_undone || step.is_rolled_back) && step.row.as_ref().is_some_and(|row| row.compensation_id.is_none())
    };
    let left: Vec<String> = report.steps.iter().filter(is_left).map(|step| step.id.clone()).collect();
    if report.status == WorkflowStatus::RolledBack && !left.is_empty() {
        report.status = WorkflowStatus::RolledBackInPart;
    }
    if let Some(taken) = &mut report.rollback {
        taken.not_undone = left;
    }
    report
}

/// The report on a rollback that this call resumed. If that was itself being undone or aborted, the report shows the workflow after that.
pub(super) fn resumed(kernel: &Kernel, outcome: RollbackOutput, ui: &mut dyn WorkflowUi) -> Result<WorkflowRunReport> {
    let RollbackOutput { remembered, steps, parts } = outcome;
    let status = match remembered.status {
        RollbackStatus::Done => WorkflowStatus::RolledBack,
        RollbackStatus::InProgress | RollbackStatus::Stopped => WorkflowStatus::RollingBack,
        RollbackStatus::Undone | RollbackStatus::Aborted => {
            return show(kernel, remembered.run_id.as_str());
        }
    };
    let told = Told {
        strategy: strategy_of(&remembered.layers),
        before_steps: before_steps(kernel, &remembered)?,
        rollback_id: Some(remembered.id.clone()),
        to_phase: &remembered.to_phase,
    };
    let taken = taken(told, parts, &steps, ui);
    report(kernel, &remembered.run_id, status, taken)
}

fn report(kernel: &Kernel, run: &RunId, status: WorkflowStatus, taken: UndoneSteps) -> Result<WorkflowRunReport> {
    Ok(WorkflowRunReport { status, rollback: Some(taken), ..show(kernel, run.as_str())? })
}

/// The facts of a rollback besides its parts.
struct Told<'a> {
    strategy: Strategy,
    before_steps: Vec<String>,
    rollback_id: Option<RollbackId>,
    to_phase: &'a str,
}

fn taken(told: Told<'_>, parts: Parts, steps: &[RollbackStep], ui: &mut dyn WorkflowUi) -> UndoneSteps {
    let Told { strategy, before_steps, rollback_id, to_phase } = told;
    let (compensations, left) = match parts.effects {
        Some(effects) => (effects.compensations, effects.left.into_iter().map(|one| one.id).collect()),
        None => (Vec::new(), Vec::new()),
    };
    for warning in parts.tree.iter().flat_map(|tree| &tree.warnings) {
        ui.warn(warning);
    }
    let failed = steps.iter().find(|step| step.state == RollbackStepState::Failed);
    let error = match failed {
        Some(step) => step.error.clone(),
        // No step failed, but some are left: an interruption stopped between two of them.
        None => steps.iter().any(|step| !step.state.is_over()).then(|| "it was interrupted".to_owned()),
    };
    let hint = error.as_ref().and(rollback_id.as_ref()).map(|id| other_ways(id, failed));
    UndoneSteps {
        strategy,
        compensations,
        left,
        restored: parts.tree.map(restored),
        rows: parts.data,
        rollback_id,
        to_phase: to_phase.to_owned(),
        before_steps,
        not_undone: Vec::new(),
        error,
        hint,
    }
}

/// The commands for a rollback that stopped, besides resuming it once its cause is removed.
fn other_ways(id: &RollbackId, failed: Option<&RollbackStep>) -> String {
    let id = id.short();
    let abort = format!("to abort the rollback: ic rollback abort {id} --yes");
    match failed.and_then(failed_effect) {
        Some(step) => {
            format!("to skip that effect: ic rollback resume {id} --skip-effect {step} --reason WHY --yes; {abort}")
        }
        None => abort,
    }
}

fn restored(report: ic_worktree::RestoreReport) -> Restored {
    Restored {
        checkpoint_id: report.target.id,
        changes: report.plan.steps.len(),
        git: report.git.is_some_and(|git| !git.plan.is_empty()),
        failed: named(report.failed),
        skipped: named(report.plan.skipped),
        not_compared: named(report.not_compared),
        not_kept: named(report.plan.not_kept),
        differs: named(report.differs),
        work_trees: named(report.work_trees),
        repositories: named(report.repositories),
    }
}

fn named(pairs: impl IntoIterator<Item = (PathText, String)>) -> Vec<(PathBuf, String)> {
    pairs.into_iter().map(|(path, why)| (path_from_bytes(&path.0), why)).collect()
}

fn strategy_of(layers: &[LayerName]) -> Strategy {
    match (layers.contains(&LayerName::Files), layers.contains(&LayerName::Git)) {
        (true, false) => Strategy::FilesOnly,
        (false, true) => Strategy::GitOnly,
        // `partial` names the same layers as `full`: a journal cannot tell them apart.
        _ => Strategy::Full,
    }
}

/// The steps that began at the point of a rollback; empty if no step from before the point stands.
fn before_steps(kernel: &Kernel, remembered: &RollbackRecord) -> Result<Vec<String>> {
    kernel.read(|snapshot| {
        let run = &remembered.run_id;
        let epoch = ic_phase::run::get(snapshot, run)?.epoch;
        if table::steps(snapshot, run, epoch)?.is_empty() {
            return Ok(Vec::new());
        }
        let here = point::of_run(snapshot, run)?.into_iter();
        let here = here.filter(|point| point.kind == PointKind::Step && point.seq == remembered.cut_seq);
        Ok(here.map(|point| point.name).collect())
    })
}
