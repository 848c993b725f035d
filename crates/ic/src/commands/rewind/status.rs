//! `ic rewind status`

use crate::commands::prelude::*;
use crate::views::rewind::RewindJson;

/// Show the progress of a rewind, and the command that resumes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind status                          # the newest
  ic rewind status 3f9a12c4 --json | jq -r .resume")]
pub(crate) struct RewindStatusArgs {
    /// The rewind: an id, or the end of one [default: the newest]
    id: Option<String>,
}

impl RewindStatusArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let entry = ic_undo::app_rewind::show(&session.kernel()?, self.id.as_deref())?;
        session.output.record(&RewindJson::from(&entry), || views::rewind::entry(&entry))
    }
}
