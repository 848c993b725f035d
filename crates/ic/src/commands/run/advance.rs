//! `ic run advance`

use ic_ops::advance::{self, AdvanceRequest};

use crate::background_sweep;
use crate::commands::prelude::*;
use crate::views::gate::{AdvanceJson, soft_warning};

/// Advance a run to its next phase, if its gate passes.
///
/// Exit 1 when a hard gate blocks the run, or its auto-advance is off: the output says which.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run advance @
  ic run advance @ --expect-phase planned@0      # only if still there
  ic run advance @ --priority 2                  # gates warn instead of blocking
  ic run advance @ --disable-gates --reason 'spike, no plan needed'

Priority 0 and 1: gates block. 2 and 3: they warn. 4 and above: they are skipped.")]
pub(crate) struct RunAdvanceArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Only from this phase (and epoch); else `stale_phase`
    #[arg(long, value_name = "P[@EPOCH]")]
    expect_phase: Option<String>,
    /// 0-1: gates block; 2-3: they warn; 4 and above: skipped
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u32,
    /// Skip the gates; needs --reason
    #[arg(long, requires = "reason")]
    disable_gates: bool,
    /// Why the gates are skipped
    #[arg(long, value_name = "TEXT", requires = "disable_gates")]
    reason: Option<String>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunAdvanceArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let request = AdvanceRequest {
            expect: self.expect_phase.as_deref(),
            priority: self.priority,
            disable_gates: input::optional_text("--reason", self.reason.as_deref())?,
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let project = CliSession::project_of(&kernel, &self.run)?;
        let kept = session.kept_along_the_way(&kernel, &project, !self.no_checkpoint)?;
        let outcome = advance::advance(&kernel, &self.run, &request, kept.as_ref())?;
        background_sweep::sweep(session, &kernel, kept.as_ref(), &project);
        session.output.warn_all(&outcome.warnings);
        session.output.warn_all(&soft_warning(&outcome));
        session.output.record(&AdvanceJson::from(&outcome), || views::gate::advance(&outcome))?;
        Ok(if outcome.advanced() { ExitStatus::Done } else { ExitStatus::No })
    }
}
