//! `ic workflow rollback`

use ic_base::CheckpointId;
use ic_kernel::Kernel;
use ic_undo::Refusal;
use ic_workflow::definition::Strategy;
use ic_workflow::{Overrides, WorkflowPoint, WorkflowPreview, Would};

use super::{DOES, STRATEGIES, go};
use crate::commands::layered_rollback::Forced;
use crate::commands::prelude::*;
use crate::signals;
use crate::text::shell_word;
use crate::views::workflow::plan::WorkflowRollbackPlanJson;

/// Roll a workflow back, all of it or from one step on, even if it succeeded.
///
/// The effects of its steps are undone, the last first; then files and git are restored as they were before the first
/// step. The run is at its first phase again, and can be resumed from there. With --id or --latest, only the steps
/// that began after that checkpoint are undone; earlier ones are kept, and a resume does not run them again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow rollback --dry-run                     # the active one, else the last
  ic workflow rollback 3f9a12c4 --yes
  ic workflow rollback 3f9a12c4 --latest --yes       # only the last step
  ic workflow rollback 3f9a12c4 --id 71c0aa9e --yes   # see: workflow checkpoints
  ic workflow rollback 3f9a12c4 --strategy files-only --yes

On a terminal, it asks which of several points to go back to. Exit 0: rolled back. 4: something is left and named: the
files of a step without a checkpoint and an undo (`rolled_back_in_part`), or a rollback that ic workflow resume RUN
resumes. A step that cannot be undone refuses the rollback (`pivot`), unless --force; a
checkpoint from which no step began is an `invalid_value`.")]
pub(crate) struct WorkflowRollbackArgs {
    /// The run [default: the active one here, else the workflow that was started last]
    run: Option<String>,
    /// Only the last step (with those of the same checkpoint)
    #[arg(long, conflicts_with = "id")]
    latest: bool,
    /// Only the steps that began after this checkpoint
    #[arg(long, value_name = "CHECKPOINT")]
    id: Option<String>,
    /// What to restore [default: as the workflow was started]
    #[arg(long, value_name = "S", value_parser = one_of(Strategy::as_str, STRATEGIES))]
    strategy: Option<Strategy>,
    #[command(flatten)]
    forced: Forced,
    #[command(flatten)]
    plan: PlanFlags,
}

/// The point that a rollback goes back to.
enum Aim {
    /// Before the first step.
    LayeredRollback,
    To(CheckpointId),
    /// The person chose none, so nothing is done.
    Nowhere,
}

impl WorkflowRollbackArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let run = match &self.run {
            Some(run) => run.clone(),
            None => ic_workflow::last(&kernel)?.to_string(),
        };
        // This is checked before a person is asked for a point, which these flags would contradict.
        self.require_fitting_strategy()?;
        let to = match self.aim(session, &kernel, &run)? {
            Aim::LayeredRollback => None,
            Aim::To(checkpoint) => Some(checkpoint),
            Aim::Nowhere => return Ok(ExitStatus::No),
        };
        let overrides = Overrides {
            strategy: self.strategy,
            force: self.forced.decided(),
            to,
            expect_plan: self.plan.expect_plan.clone(),
            ..Overrides::default()
        };
        let preview = || {
            let settings = session.checkpoint_settings(&kernel)?;
            ic_workflow::preview(&kernel, &settings, &run, &overrides)
        };
        if self.plan.dry_run {
            return show(session, &preview()?);
        }
        let mut overrides = overrides.clone();
        if !self.plan.yes {
            // The preview comes before the question: what would be refused is refused for its own reason, because a yes would not help.
            let preview = preview()?;
            if refusal(&preview).is_some() {
                return show(session, &preview);
            }
            let look = format!("ic workflow rollback {} --dry-run", shell_word(&run));
            let asks = if overrides.to.is_some() { "Roll it back?" } else { "Roll all of it back?" };
            let text = || Ok(views::workflow::plan::rollback_plan(&preview));
            if !session.confirm(false, &Question { does: DOES, look: Some(&look), asks }, text)? {
                return Ok(ExitStatus::No);
            }
            // The plan was shown; a plan that has changed since is refused.
            if let Would::Begin(plan) = &preview.would {
                overrides.expect_plan = Some(plan.whole.rollback.plan_hash.clone());
            }
        }
        // Signals are caught only from here on: at the question Ctrl-C should end the process.
        overrides.interrupted = signals::interrupted()?;
        go(session, &kernel, &run, &overrides, ic_workflow::rollback, ExitStatus::Done)
    }

    /// Errors: `invalid_value` for `partial` with a point, because `partial` has a point of its own: the failed step.
    fn require_fitting_strategy(&self) -> Result<()> {
        if !(self.latest || self.id.is_some()) || !matches!(self.strategy, Some(Strategy::Partial)) {
            return Ok(());
        }
        Err(Diagnosis::new(
            Code::InvalidValue,
            "--strategy partial restores the failed step alone; --id and --latest name another point.",
        )
        .hint("leave out one of them"))
    }

    /// The point that the flags name, else the one that a person chooses. If no question is asked, the whole workflow.
    fn aim(&self, session: &CliSession, kernel: &Kernel, run: &str) -> Result<Aim> {
        if let Some(id) = &self.id {
            return ic_workflow::point(kernel, run, id).map(|point| Aim::To(point.checkpoint.id));
        }
        if self.latest {
            return latest(&ic_workflow::points(kernel, run)?).map(Aim::To);
        }
        let is_partial = matches!(self.strategy, Some(Strategy::Partial));
        let is_said = self.plan.dry_run || self.plan.yes || is_partial;
        // An unfinished rollback resumes to the point that it has, so there is nothing to choose.
        if is_said || !session.can_ask() || ic_workflow::is_rolling_back(kernel, run)? {
            return Ok(Aim::LayeredRollback);
        }
        let points = ic_workflow::points(kernel, run)?;
        // With one point there is nothing to choose: it is before the first step.
        if points.len() < 2 {
            return Ok(Aim::LayeredRollback);
        }
        let question = "Roll back to before which checkpoint? [number]";
        let number = CliSession::choose(&views::workflow::plan::points(&points), question)?;
        let chosen = number.and_then(|n| points.get(n.checked_sub(1)?));
        Ok(chosen.map_or(Aim::Nowhere, |point| Aim::To(point.checkpoint.id.clone())))
    }
}

fn show(session: &mut CliSession, preview: &WorkflowPreview) -> Result<ExitStatus> {
    let record = WorkflowRollbackPlanJson::from(preview);
    session.output.record(&record, || views::workflow::plan::rollback_preview(preview))?;
    Ok(refusal(preview).map_or(ExitStatus::Done, |refusal| ExitStatus::from(refusal.error.kind())))
}

/// The error that the real call would end with; `None` if it would begin.
fn refusal(preview: &WorkflowPreview) -> Option<&Refusal> {
    match &preview.would {
        Would::Begin(plan) => plan.whole.refusals.first(),
        Would::Resume(_) => None,
    }
}

/// The newest checkpoint before a step that is not rolled back. Errors: `no_checkpoint`.
fn latest(points: &[WorkflowPoint]) -> Result<CheckpointId> {
    points.first().map(|point| point.checkpoint.id.clone()).ok_or_else(|| {
        Diagnosis::new(Code::NoCheckpoint, "No checkpoint from before a step of this workflow is kept.")
            .hint("to roll all of it back: leave out --latest")
    })
}
