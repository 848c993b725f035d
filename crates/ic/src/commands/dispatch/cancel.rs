//! `ic dispatch cancel`

use ic_dispatch::dispatch::DispatchEnding;

use super::finish;
use crate::commands::prelude::*;

/// Cancel a dispatch. No process is signalled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch cancel \"$d\" --reason 'no longer needed'")]
pub(crate) struct DispatchCancelArgs {
    /// The dispatch: an id, or the end of one
    id: String,
    /// The reason, recorded with the cancellation
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    #[command(flatten)]
    door: ForceFlags,
}

impl DispatchCancelArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        finish(session, &self.id, &self.door, &DispatchEnding::Cancelled { reason }, false)
    }
}
