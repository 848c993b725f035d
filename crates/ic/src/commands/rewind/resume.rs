//! `ic rewind resume`

use super::{DOES, finish, watch};
use crate::commands::prelude::*;

/// Resume a rewind that stopped, or whose process died.
///
/// Finished stages are not repeated. The configuration is the one with which the rewind began.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind status
  ic rewind resume 3f9a12c4 --yes

Exit 4 when a stage failed again: the output names it, and what is left.")]
pub(crate) struct RewindResumeArgs {
    /// The rewind: an id, or the end of one
    id: String,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
}

impl RewindResumeArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let needs_it = ic_undo::app_rewind::needs_configuration(&ic_undo::app_rewind::show(&kernel, Some(&self.id))?);
        // A rewind brings its own configuration along: a broken .ic.yaml stops it only if the remaining stages read that file.
        let settings = match session.checkpoint_settings(&kernel) {
            Err(error) if !needs_it && error.code() == Code::InvalidConfig => session.default_settings(&kernel),
            settings => settings?,
        };
        let text = || ic_undo::app_rewind::show(&kernel, Some(&self.id)).map(|entry| views::rewind::entry(&entry));
        let question = Question { does: DOES, look: Some("ic rewind status"), asks: "Go on?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(ExitStatus::No);
        }
        let entry = ic_undo::app_rewind::resume(&kernel, &settings, &self.id, &watch()?)?;
        finish(session, &kernel, &settings, &entry, None)
    }
}
