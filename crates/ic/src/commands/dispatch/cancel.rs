//! `ic dispatch cancel`

use ic_dispatch::dispatch::Ending;

use super::finish;
use crate::commands::prelude::*;

/// Cancel a dispatch. No process is signalled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch cancel \"$d\" --reason 'no longer needed'")]
pub(crate) struct Cancel {
    /// The dispatch: an id, or the end of one
    id: String,
    /// The reason, recorded with the cancellation
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    #[command(flatten)]
    door: Door,
}

impl Cancel {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        finish(session, &self.id, &self.door, &Ending::Cancelled { reason }, false)
    }
}
