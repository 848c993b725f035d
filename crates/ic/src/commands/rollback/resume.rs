//! `ic rollback resume`

use ic_rollback::ResumeRequest;

use super::{DOES, settings, show, shown, watch};
use crate::commands::prelude::*;
use crate::commands::rolling::Forced;
use crate::commands::workflow::Watch as Progress;
use crate::text::shell_word;

/// Resume a rollback that stopped, or whose process died.
///
/// Finished steps are not run again. An undo or an abort that stopped is resumed as such. What can never succeed can
/// be skipped, and the decision is recorded: --skip-effect skips one outside effect, --skip-step the whole step that
/// failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback resume 3f9a12c4 --yes
  ic rollback resume @ --yes                       # the unfinished one
  ic rollback resume @ --skip-effect bill --reason 'refunded by hand' --yes
  ic rollback resume @ --skip-step --reason 'the file belongs to root' --yes

Exit 4 when a step fails again.")]
pub(crate) struct Resume {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    id: String,
    /// Skip the step that failed, and leave it as it is
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
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Resume {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let skip_effects = input::labels("--skip-effect", &self.skip_effect)?;
        let look = format!("ic rollback show {}", shell_word(&self.id));
        let question = Question { does: DOES, look: Some(&look), asks: "Resume it?" };
        let text = || shown(session, &self.id).map(|text| text + "\n");
        if !session.confirm(self.yes, &question, text)? {
            return Ok(Exit::No);
        }
        let kernel = session.kernel()?;
        let settings = settings(session, &kernel, &self.id)?;
        let mut progress = Progress::new(session);
        let request = ResumeRequest {
            rollback: &self.id,
            skip_step: self.skip_step,
            skip_effects: &skip_effects,
            reason,
            force: self.forced.decided(),
        };
        let outcome = ic_rollback::resume(&kernel, &settings, &request, &mut progress, &watch()?)?;
        show(session, &kernel, &outcome.remembered, &outcome.steps, false)?;
        Ok(if outcome.remembered.status.is_over() { Exit::Done } else { Exit::Partly })
    }
}
