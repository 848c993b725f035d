//! `ic compensation list`

use ic_undo::compensation;

use crate::commands::prelude::*;
use crate::views::compensation::CompensationJson;

/// List the compensations of a run, in the order of their effects.
///
/// Effects are undone from the last to the first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic compensation list @
  ic compensation list @ --json | jq -r '.[] | select(.status == \"failed\") | .error'")]
pub(crate) struct CompensationListArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl CompensationListArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let all = compensation::list(&kernel, &self.run)?;
        let records: Vec<CompensationJson> = all.iter().map(CompensationJson::from).collect();
        session.output.list(&records, || views::compensation::list(&all))
    }
}
