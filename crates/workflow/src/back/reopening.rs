//! Opening the run of a workflow again that `compensation run` closed: no rollback of it has a journal.

use ic_base::{Result, RunId};
use ic_journal::Force;
use ic_journal::table as rollbacks;
use ic_kernel::Kernel;
use ic_worktree::Settings;

use crate::flow::Flow;
use crate::options::Overrides;
use crate::table::{self, Failure, State};

/// Opens such a run again, and returns how its workflow is rolled back then; `None`: a rollback with a journal closed it.
///
/// Effects that are undone are not open any more, and a restore that is repeated finds nothing to do: what is left is a rollback like any
/// other. What the undos changed in the tree since is no work of others, so files are not asked for again.
pub(crate) fn adopt(
    kernel: &Kernel,
    settings: &Settings,
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
    let failed = failed.map(|(step, error)| Failure { step, error });
    // In one transaction: killed after it, the workflow has stopped, and is rolled back or resumed like any other.
    flow.saga.write(|tx, now| {
        flow.saga.reopen_in(tx, now)?;
        table::set_state(tx, now, run, State::Stopped, failed.as_ref())
    })?;
    let files = Force { files: true, ..Force::default() };
    Ok(Some(Overrides {
        strategy: Some(overrides.strategy.unwrap_or(strategy)),
        force: overrides.force.or(files),
        ..overrides.clone()
    }))
}
