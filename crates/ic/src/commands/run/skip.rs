//! `ic run skip`

use ic_ops::run;

use crate::commands::prelude::*;
use crate::text::plain;
use crate::views::run::SkipJson;

/// Mark a later phase to be skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run skip @ polish --reason 'internal tool'

A rollback clears the skips that were made after its cut, and the skip of its target phase.")]
pub(crate) struct RunSkipArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The phase, a later one but not the last
    phase: String,
    /// The reason, recorded with the skip
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunSkipArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::text("--reason", &self.reason)?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let skipped = run::skip(&kernel, &self.run, &self.phase, reason)?;
        session.output.record(&SkipJson::from(&skipped), || {
            let what = if skipped.2 { "will be skipped" } else { "is marked to be skipped already" };
            format!("{} {what}.\n", plain(&skipped.1.phase))
        })?;
        Ok(ExitStatus::Done)
    }
}
