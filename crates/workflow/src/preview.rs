//! The preview of a rollback of a workflow.

use ic_base::{Result, RunId};
use ic_kernel::Kernel;
use ic_kernel::journal::steps::{self, RollbackStep};
use ic_kernel::journal::table::{self as rollbacks, RollbackRecord};
use ic_undo::LayeredRollback;
use ic_undo::compensation::Saga;
use ic_worktree::CaptureSettings;

use crate::definition::Strategy;
use crate::options::{Overrides, check_strategy, options};
use crate::permission::may_roll_back;
use crate::table;
use crate::workflow_rollback;

/// The result of [`crate::rollback`] if it was called now.
#[derive(Debug)]
pub struct WorkflowPreview {
    /// The run of the workflow.
    pub run_id: RunId,
    /// The name in the workflow's file.
    pub workflow: String,
    /// Whether a rollback would begin, or be resumed.
    pub would: Would,
}

/// What a rollback of a workflow would do.
#[derive(Debug)]
pub enum Would {
    /// Begin a rollback with this plan.
    Begin(Box<WorkflowPlan>),
    /// Resume the rollback that was begun: its row and its steps.
    Resume(Box<(RollbackRecord, Vec<RollbackStep>)>),
}

/// The plan of a rollback that was not begun.
#[derive(Debug)]
pub struct WorkflowPlan {
    /// The part of the tree that is restored.
    pub strategy: Strategy,
    /// The steps before which the workflow is after the rollback; empty: before the first one.
    pub before_steps: Vec<String>,
    /// Why files and git are left, though the strategy names them.
    pub stays: Option<&'static str>,
    /// The plan, with the reasons for which it would be refused.
    pub whole: LayeredRollback,
}

/// Plans what [`crate::rollback`] would do now. Nothing is locked or changed.
///
/// Errors: those of `rollback` that no flag passes; the others are in the plan.
pub fn preview(
    kernel: &Kernel,
    settings: &CaptureSettings,
    reference: &str,
    overrides: &Overrides,
) -> Result<WorkflowPreview> {
    let (run, workflow, unfinished) = kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        let workflow = table::get(snapshot, &run.id)?;
        let definition = workflow.parsed()?;
        check_strategy(&definition, &options(&definition, overrides, Some(&workflow.options)))?;
        may_roll_back(snapshot, &run, overrides)?;
        let unfinished = match rollbacks::unfinished_of(snapshot, &run.id)? {
            Some(rollback) => {
                let steps = steps::of_rollback(snapshot, &rollback.id)?;
                Some((rollback, steps))
            }
            None => None,
        };
        Ok((run, workflow, unfinished))
    })?;
    let would = if let Some(begun) = unfinished {
        // A living process finishes it by itself, and the real call would be refused.
        Saga::require_free(kernel, &run.id)?;
        Would::Resume(Box::new(begun))
    } else {
        let (aim, whole) = workflow_rollback::look(kernel, settings, &run.id, overrides)?;
        let workflow_rollback::Aim { strategy, before_steps, stays, .. } = aim;
        Would::Begin(Box::new(WorkflowPlan { strategy, before_steps, stays, whole }))
    };
    Ok(WorkflowPreview { run_id: run.id, workflow: workflow.name, would })
}
