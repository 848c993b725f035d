//! `ic compensation run`

use std::sync::Arc;

use clap::ValueEnum;
use ic_effects::order::FailurePolicy;
use ic_undo::compensation::{self, CompensationRequest, CompensationRunReport, CompensationStatus, EffectScope};

use crate::commands::prelude::*;
use crate::commands::workflow::WorkflowWatch as Progress;
use crate::views::compensation::compensation_report::UndoneJson;
use crate::{signals, text};

/// Undo the outside effects of a run, the last first.
///
/// In the meantime the run is closed and cannot advance. When an undo fails, it stays closed, and the same call resumes with
/// the rest; what is undone is not undone again. Effects before a step that cannot be undone (a pivot) are not undone
/// without --force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic compensation run @ --dry-run
  ic compensation run @ --yes
  ic compensation run @ --to-phase planned --yes   # begun after phase planned
  ic compensation run @ --step deploy --policy continue --yes
  ic compensation run @ --skip bill --reason 'refunded by hand' --yes

Exit 4 when effects are left: they are listed, with the command that resumes. Every attempt is recorded before it is
made; if this process dies, the next call first ends the command that it left running, then retries with the same
IC_IDEMPOTENCY_KEY.")]
pub(crate) struct CompensationRunArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Only effects begun after the run last left this phase
    #[arg(long, value_name = "P", conflicts_with = "step")]
    to_phase: Option<String>,
    /// Only this step and those that depend on it
    #[arg(long, value_name = "S")]
    step: Option<String>,
    /// Show what would be undone, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// What to do with the others when one fails
    #[arg(long, value_enum, value_name = "POLICY", default_value = "stop")]
    policy: Policy,
    /// Undo effects before a pivot, too
    #[arg(long)]
    force: bool,
    /// Skip the effect of this step; needs --reason. Repeatable
    #[arg(long, value_name = "S", requires = "reason")]
    skip: Vec<String>,
    /// Why something is skipped
    #[arg(long, value_name = "TEXT", requires = "skip")]
    reason: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    door: ForceFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// The others wait for the next call
    Stop,
    /// The others are undone, except those that the failed one depends on
    Continue,
}

impl From<Policy> for FailurePolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Stop => Self::Stop,
            Policy::Continue => Self::Continue,
        }
    }
}

impl CompensationRunArgs {
    /// Undoes the effects. Without `--yes` it first shows the plan and asks; without a terminal it is refused.
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let left = input::labels("--skip", &self.skip)?;
        let request = CompensationRequest {
            run: &self.run,
            scope: self.scope()?,
            dry_run: self.dry_run,
            policy: self.policy.into(),
            force: self.force,
            skip: (&left, input::optional_text("--reason", self.reason.as_deref())?.unwrap_or_default()),
            interrupted: Arc::default(),
        };
        let kernel = session.kernel_to_change(self.door.as_deref())?;
        let settings = session.checkpoint_settings(&kernel)?;
        let mut progress = Progress::new(session);
        if !self.dry_run && !self.yes {
            // The preview comes before the question: what would be refused is refused for its own reason, because a yes would not help.
            let preview = compensation::run(
                &kernel,
                &settings,
                &CompensationRequest { dry_run: true, ..request.clone() },
                &mut progress,
            )?;
            if preview.refusal.is_some() {
                return self.finish(session, &preview);
            }
            let question = Question {
                does: "Undoing the effects of a run changes more than the ledger",
                look: Some("--dry-run"),
                asks: "Undo?",
            };
            // With an empty text no question is asked: there is nothing to decide.
            let is_any = !preview.results.is_empty();
            let text =
                if is_any { views::compensation::compensation_report::report(&preview, None) } else { String::new() };
            if !session.confirm(false, &question, || Ok(text))? {
                return Ok(ExitStatus::No);
            }
        }
        // Ctrl-C is caught only from here on: at the question it should end the process.
        let request = CompensationRequest { interrupted: signals::interrupted()?, ..request };
        let report = compensation::run(&kernel, &settings, &request, &mut progress);
        // Before an error is passed on: the line of progress would stand in front of its message.
        progress.clear();
        self.finish(session, &report?)
    }

    fn scope(&self) -> Result<EffectScope> {
        Ok(match (&self.to_phase, input::optional_label("--step", self.step.as_deref())?) {
            (Some(phase), _) => EffectScope::ToPhase(phase.clone()),
            (None, Some(step)) => EffectScope::Dependents(step),
            (None, None) => EffectScope::All,
        })
    }

    fn finish(&self, session: &mut CliSession, report: &CompensationRunReport) -> Result<ExitStatus> {
        let resume = self.resume(report);
        session.output.record(&UndoneJson::new(report, resume.as_deref()), || {
            views::compensation::compensation_report::report(report, resume.as_deref())
        })?;
        if let Some(refusal) = &report.refusal {
            return Ok(ExitStatus::from(refusal.kind()));
        }
        Ok(if report.status == CompensationStatus::Planned || report.left.is_empty() {
            ExitStatus::Done
        } else {
            ExitStatus::Partly
        })
    }

    /// The command that resumes with the rest; `None` if nothing is left, or nothing was done yet.
    fn resume(&self, report: &CompensationRunReport) -> Option<String> {
        if report.status == CompensationStatus::Planned || report.left.is_empty() {
            return None;
        }
        // --skip and --reason are left out: a skip is on record, and holds for the next call.
        let mut call = format!("ic compensation run {}", report.run_id.short());
        let mut flag = |name: &str, value: &str| {
            // With an equals sign, a value that begins with a hyphen is not read as a flag.
            let equals = if value.starts_with('-') { '=' } else { ' ' };
            call.push_str(&format!(" {name}{equals}{}", text::shell_word(value)));
        };
        if let Some(phase) = &self.to_phase {
            flag("--to-phase", phase);
        }
        if let Some(step) = &self.step {
            flag("--step", step);
        }
        if self.policy == Policy::Continue {
            flag("--policy", "continue");
        }
        // If nothing failed and effects are left, a pivot stopped the call, and only --force goes past it.
        if self.force || (report.pivot.is_some() && !report.is_closed) {
            call.push_str(" --force");
        }
        Some(call + " --yes")
    }
}
