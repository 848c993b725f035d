//! Whether a workflow may be resumed or rolled back.

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::Snapshot;
use ic_phase::{Run, RunStatus};

use crate::begun_rollback::{is_unfinished, require_same_point};
use crate::definition::Strategy;
use crate::options::Overrides;
use crate::table::{self, Workflow, WorkflowRowState, WorkflowStepState};

pub(crate) fn may_resume(snapshot: &Snapshot<'_>, run: &Run, workflow: &Workflow) -> Result<()> {
    if is_unfinished(run) {
        return Ok(());
    }
    let standing = table::steps(snapshot, &run.id, run.epoch)?;
    let succeeded = standing.iter().filter(|row| row.state == WorkflowStepState::Succeeded).count();
    let is_whole = succeeded == workflow.parsed()?.steps.len();
    // A rollback over several layers undoes steps and does not write the workflow's row: those steps are left to do.
    if workflow.state == WorkflowRowState::Completed && is_whole {
        return Err(Diagnosis::new(Code::NothingToResume, "The workflow is completed: nothing is left to do.")
            .hint(format!("to roll it back: ic workflow rollback {} --yes", run.id.short())));
    }
    // The executor may have died when only that record was left to write.
    if run.status == RunStatus::Completed && is_whole { Ok(()) } else { run.require_active() }
}

pub(crate) fn may_roll_back(snapshot: &Snapshot<'_>, run: &Run, overrides: &Overrides) -> Result<()> {
    if is_unfinished(run) {
        return require_same_point(snapshot, run, overrides);
    }
    // A workflow that succeeded can be rolled back, too.
    if run.status != RunStatus::Completed {
        run.require_active()?;
    }
    require_work(snapshot, run)
}

/// Errors: `nothing_to_roll_back` if no step was begun since the last rollback, so that there is no point to go back to.
pub(crate) fn require_work(snapshot: &Snapshot<'_>, run: &Run) -> Result<()> {
    if !table::steps(snapshot, &run.id, run.epoch)?.is_empty() {
        return Ok(());
    }
    let id = run.id.short();
    Err(Diagnosis::new(Code::NothingToRollBack, "The workflow has done nothing since it was last rolled back.")
        .hint(format!("run it again: ic workflow resume {id} --yes; or see: ic workflow show {id}")))
}

pub(crate) fn strategy_for(workflow: &Workflow, overrides: &Overrides) -> Strategy {
    overrides.strategy.unwrap_or(workflow.options.strategy)
}
