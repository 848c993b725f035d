//! `ic gate override`

use ic_ops::advance;

use crate::background_sweep;
use crate::commands::prelude::*;
use crate::views::gate::AdvanceJson;

/// Advance a run past its gate, by your decision.
///
/// The override is the advance itself: one event, with your reason, for this transition only. It also moves a run
/// whose auto-advance is off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic gate override @ --reason 'reviewed by hand'")]
pub(crate) struct GateOverrideArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The reason, recorded with the advance
    #[arg(long, value_name = "R")]
    reason: String,
    #[command(flatten)]
    door: ForceFlags,
}

impl GateOverrideArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::text("--reason", &self.reason)?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let project = CliSession::project_of(&kernel, &self.run)?;
        let kept = session.kept_along_the_way(&kernel, &project, true)?;
        let outcome = advance::override_gate(&kernel, &self.run, reason, kept.as_ref())?;
        background_sweep::sweep(session, &kernel, kept.as_ref(), &project);
        session.output.warn_all(&outcome.warnings);
        session.output.record(&AdvanceJson::from(&outcome), || views::gate::advance(&outcome))
    }
}
