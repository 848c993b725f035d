//! `ic dispatch complete`

use ic_dispatch::WorkVerdict;
use ic_dispatch::dispatch::DispatchEnding;

use super::finish;
use crate::commands::prelude::*;

/// Mark a dispatch completed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch complete \"$d\" --summary 'form and tests'
  ic dispatch complete \"$review\" --verdict pass")]
pub(crate) struct DispatchCompleteArgs {
    /// The dispatch: an id, or the end of one
    id: String,
    /// A summary of what was done
    #[arg(long, value_name = "S")]
    summary: Option<String>,
    /// The verdict of a review
    #[arg(long, value_parser = one_of(WorkVerdict::as_str, &[(WorkVerdict::Pass, ""), (WorkVerdict::Fail, "")]))]
    verdict: Option<WorkVerdict>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl DispatchCompleteArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let summary = input::optional_text("--summary", self.summary.as_deref())?;
        finish(
            session,
            &self.id,
            &self.door,
            &DispatchEnding::Completed { summary, verdict: self.verdict },
            !self.no_checkpoint,
        )
    }
}
