//! `ic rollback list`

use ic_kernel::journal::table;

use crate::commands::prelude::*;
use crate::views::rollback::record::RollbackRecordJson;

/// List rollbacks, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback list
  ic rollback list @ --json | jq -r '.[] | select(.status == \"stopped\").id'")]
pub(crate) struct RollbackListArgs {
    /// Only those of this run: an id, the end of one, @, or scope:NAME
    run: Option<String>,
}

impl RollbackListArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let all = kernel.read(|snapshot| match &self.run {
            Some(run) => table::of_run(snapshot, &kernel.run(snapshot, run)?.id),
            None => table::all(snapshot),
        })?;
        let records: Vec<RollbackRecordJson> = all.iter().map(RollbackRecordJson::from).collect();
        let now = kernel.context.now();
        session.output.list(&records, || views::rollback::record::list(&all, now))
    }
}
