//! `ic rollback resume`

use ic_kernel::journal::RollbackStatus;
use ic_kernel::journal::steps::is_in_part;
use ic_undo::ResumeRequest;
use ic_worktree::RestoreWatch;

use super::{DOES, settings, show, shown, watch};
use crate::commands::layered_rollback::Forced;
use crate::commands::prelude::*;
use crate::commands::workflow::WorkflowWatch as Progress;
use crate::text::shell_word;
use crate::views::rollback::record::RollbackShowJson;

/// Resume a rollback that stopped, or whose process died.
///
/// Finished steps are not run again. An undo or an abort that stopped is resumed as such. What can never succeed can
/// be skipped, and the decision is recorded: --skip-effect skips one outside effect, --skip-step the whole step that
/// failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback resume 3f9a12c4 --dry-run            # what is left to do
  ic rollback resume 3f9a12c4 --yes
  ic rollback resume @ --yes                       # the unfinished one
  ic rollback resume @ --skip-effect bill --reason 'refunded by hand' --yes
  ic rollback resume @ --skip-step --reason 'the file belongs to root' --yes

Exit 4 when a step fails again.")]
pub(crate) struct RollbackResumeArgs {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    id: String,
    /// Skip the step that failed
    #[arg(long)]
    skip_step: bool,
    /// Skip the outside effect of this step; needs --reason. Repeatable
    #[arg(long, value_name = "STEP", requires = "reason")]
    skip_effect: Vec<String>,
    /// Why something is skipped
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    forced: Forced,
    /// Show what is left to do, and what would stop it again; change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
}

impl RollbackResumeArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let skip_effects = input::labels("--skip-effect", &self.skip_effect)?;
        let request = ResumeRequest {
            rollback: &self.id,
            skip_step: self.skip_step,
            skip_effects: &skip_effects,
            reason,
            force: self.forced.decided(),
        };
        if self.dry_run {
            return self.look(session, &request);
        }
        if !self.yes {
            // Checked first: if nothing is left to resume, a yes would not help.
            ic_undo::require_unfinished(&session.kernel_to_change(None)?, &self.id)?;
        }
        let look = format!("ic rollback resume {} --dry-run", shell_word(&self.id));
        let question = Question { does: DOES, look: Some(&look), asks: "Resume it?" };
        let text = || shown(session, &self.id).map(|text| text + "\n");
        if !session.confirm(self.yes, &question, text)? {
            return Ok(ExitStatus::No);
        }
        let kernel = session.kernel_to_change(None)?;
        let settings = settings(session, &kernel, &self.id)?;
        let mut progress = Progress::new(session);
        let outcome = ic_undo::resume(&kernel, &settings, &request, &mut progress, &watch()?)?;
        // The rollback is done, and must not fail because the repository cannot be asked.
        let stays = ic_undo::git_remains(&kernel, &settings, &outcome.remembered).unwrap_or_default();
        show(session, &kernel, (&outcome.remembered, &outcome.steps), false, &stays)?;
        let is_partial = outcome.parts.is_partial();
        let status = outcome.remembered.status;
        // Done, but work stays in the tree: a script must not take that for a whole undo.
        let is_in_part = status == RollbackStatus::Done && is_in_part(&outcome.remembered, &outcome.steps);
        let is_whole = status.is_over() && !is_in_part && !is_partial && stays.is_empty();
        Ok(if is_whole { ExitStatus::Done } else { ExitStatus::Partly })
    }

    /// The dry run. It exits as the real call would: that begins in any case, and the output names what would stop it again.
    fn look(&self, session: &mut CliSession, request: &ResumeRequest<'_>) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let settings = settings(session, &kernel, &self.id)?;
        let resuming = ic_undo::preview_resume(&kernel, &settings, request, &RestoreWatch::default())?;
        session.output.record(&RollbackShowJson::resuming(&resuming), || {
            let (remembered, steps) = (&resuming.remembered, &resuming.steps);
            views::rollback::record::show(remembered, steps, false, None, None)
                + "\n"
                + &views::rollback::layers_plan::resuming(&resuming)
        })?;
        Ok(if resuming.refusals.is_empty() { ExitStatus::Done } else { ExitStatus::Partly })
    }
}
