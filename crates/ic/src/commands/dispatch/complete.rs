//! `ic dispatch complete`

use ic_dispatch::Verdict;
use ic_dispatch::dispatch::Ending;

use super::finish;
use crate::commands::prelude::*;

/// Mark a dispatch completed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch complete \"$d\" --summary 'form and tests'
  ic dispatch complete \"$review\" --verdict pass")]
pub(crate) struct Complete {
    /// The dispatch: an id, or the end of one
    id: String,
    /// A summary of what was done
    #[arg(long, value_name = "S")]
    summary: Option<String>,
    /// The verdict of a review
    #[arg(long, value_parser = one_of(Verdict::as_str, &[(Verdict::Pass, ""), (Verdict::Fail, "")]))]
    verdict: Option<Verdict>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: Door,
}

impl Complete {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let summary = input::optional_text("--summary", self.summary.as_deref())?;
        finish(
            session,
            &self.id,
            &self.door,
            &Ending::Completed { summary, verdict: self.verdict },
            !self.no_checkpoint,
        )
    }
}
