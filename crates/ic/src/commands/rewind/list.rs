//! `ic rewind list`

use crate::commands::prelude::*;
use crate::views::rewind::RewindJson;

/// List the rewinds, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind list
  ic rewind list --json | jq -r '.[] | select(.status == \"stopped\") | .id'")]
pub(crate) struct RewindListArgs {}

impl RewindListArgs {
    #[allow(clippy::unused_self, reason = "every verb is run so")]
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let mut all = ic_undo::app_rewind::list(&kernel)?;
        // The query returns them newest first.
        all.reverse();
        let records: Vec<RewindJson> = all.iter().map(RewindJson::from).collect();
        let now = kernel.context.now();
        session.output.list(&records, || views::rewind::list(&all, now))
    }
}
