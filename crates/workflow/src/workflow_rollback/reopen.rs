//! Reopening the run of a workflow that `compensation run` closed: no rollback of it has a journal.

use ic_base::{Result, RunId};
use ic_kernel::Kernel;
use ic_kernel::journal::Force;
use ic_kernel::journal::table as rollbacks;
use ic_worktree::CaptureSettings;

use crate::flow::Flow;
use crate::options::Overrides;
use crate::table::{self, StepFailure, WorkflowRowState};

/// Reopens such a run, and returns how its workflow is then rolled back; `None`: a rollback with a journal closed it.
///
/// Effects that are undone are not open any longer, and a repeated restore finds nothing to do, so the rest is a rollback like any other.
/// Changes that the undos made to the tree are not the work of others, so files are not asked about again.
pub(crate) fn adopt(
    kernel: &Kernel,
    settings: &CaptureSettings,
    checkpoints: bool,
    run: &RunId,
    overrides: &Overrides,
) -> Result<Option<Overrides>> {
    if kernel.read(|snapshot| rollbacks::unfinished_of(snapshot, run))?.is_some() {
        return Ok(None);
    }
    let mut flow = Flow::take(kernel, settings, checkpoints, run)?;
    flow.lose_running()?;
    let strategy = flow.workflow.options.strategy;
    let failed = flow.workflow.failed_step.clone().zip(flow.workflow.error.clone());
    let failed = failed.map(|(step, error)| StepFailure { step, error });
    // In one transaction: if the process is killed after it, the workflow has stopped, and is rolled back or resumed like any other.
    flow.saga.write(|tx, now| {
        flow.saga.reopen_in(tx, now)?;
        table::set_state(tx, now, run, WorkflowRowState::Stopped, failed.as_ref())
    })?;
    let files = Force { files: true, ..Force::default() };
    Ok(Some(Overrides {
        strategy: Some(overrides.strategy.unwrap_or(strategy)),
        force: overrides.force.or(files),
        ..overrides.clone()
    }))
}
