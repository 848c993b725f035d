//! `ic workflow resume`

use ic_workflow::definition::StepFailurePolicy;
use ic_workflow::table::WorkflowStepState;
use ic_workflow::{Overrides, WorkflowRunReport};

use super::{Choices, DOES, go};
use crate::commands::layered_rollback::Forced;
use crate::commands::prelude::*;
use crate::signals;

/// Resume a workflow after a stop, a crash, or an unfinished rollback.
///
/// Finished steps are kept. An interrupted or failed step runs again, with the same idempotency key. Strategy and jobs
/// stay as the workflow was started, unless given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow resume @
  ic workflow resume @ --on-failure rollback --yes    # roll back instead

Exit codes are those of ic workflow run; a rollback that was asked for exits with 0 once it is finished. An unfinished
rollback is finished first; it asks, unless --yes.")]
pub(crate) struct WorkflowResumeArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    forced: Forced,
    /// Do not ask before resuming a rollback
    #[arg(long, short = 'y')]
    yes: bool,
}

impl WorkflowResumeArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let report = ic_workflow::show(&kernel, &self.run)?;
        let question = if ic_workflow::is_rolling_back(&kernel, &self.run)? {
            Some("Resume the rollback?")
        } else if matches!(self.choices.on_failure, Some(StepFailurePolicy::Rollback)) && has_failed(&report) {
            Some("Roll back instead of retrying?")
        } else {
            None
        };
        let look = format!("ic workflow show {}", report.run_id.short());
        let text = || Ok(views::workflow::state(&report));
        if let Some(asks) = question
            && !session.confirm(self.yes, &Question { does: DOES, look: Some(&look), asks }, text)?
        {
            return Ok(ExitStatus::No);
        }
        // A rollback that a person asked for exits as `workflow rollback` does; one after a failure, as the failed workflow.
        // This is asked before the resume, after which no rollback is under way.
        let is_asked_for = ic_workflow::is_rolling_back(&kernel, &self.run)?
            && !ic_workflow::is_rolling_back_a_failure(&kernel, &self.run)?;
        let rolled_back = if is_asked_for { ExitStatus::Done } else { ExitStatus::No };
        let overrides = Overrides { force: self.forced.decided(), ..self.choices.overrides(signals::interrupted()?) };
        go(session, &kernel, &self.run, &overrides, ic_workflow::resume, rolled_back)
    }
}

/// Whether a step failed, or was interrupted.
fn has_failed(report: &WorkflowRunReport) -> bool {
    let is_bad = |state| {
        matches!(state, WorkflowStepState::Failed | WorkflowStepState::Interrupted | WorkflowStepState::Running)
    };
    report.steps.iter().any(|step| is_bad(step.state))
}
