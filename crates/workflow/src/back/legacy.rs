//! Rollbacks that a version before this engine left half done: they have no journal.

use ic_base::{Result, RunId};
use ic_journal::Force;
use ic_journal::table as rollbacks;
use ic_kernel::Kernel;
use ic_worktree::Settings;

use crate::flow::Flow;
use crate::options::Overrides;
use crate::table::{self, Failure, State};

/// Opens a run again that such a rollback had closed, and returns how it was to be rolled back; `None`: its rollback has a journal.
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
    let options = flow.workflow.options.clone();
    let failed = flow.workflow.failed_step.clone().zip(flow.workflow.error.clone());
    let failed = failed.map(|(step, error)| Failure { step, error });
    // In one transaction: killed after it, the workflow has stopped, and is rolled back or resumed like any other.
    flow.saga.write(|tx, now| {
        flow.saga.reopen_in(tx, now)?;
        table::set_state(tx, now, run, State::Stopped, failed.as_ref())
    })?;
    let files = Force { files: true, ..Force::all_if(options.force) };
    Ok(Some(Overrides {
        strategy: Some(overrides.strategy.unwrap_or_else(|| options.restores())),
        force: overrides.force.or(files),
        to: options.to(),
        ..overrides.clone()
    }))
}
