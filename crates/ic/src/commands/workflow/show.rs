//! `ic workflow show`

use crate::commands::prelude::*;
use crate::views::workflow::WorkflowJson;

/// Show the progress of a workflow: its steps, dispatches, checkpoints and logs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic workflow show @
  ic workflow show @ --json | jq -r '.steps[] | select(.status == \"failed\").log'")]
pub(crate) struct WorkflowShowArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl WorkflowShowArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let report = ic_workflow::show(&kernel, &self.run)?;
        session.output.record(&WorkflowJson::new(&report, &[]), || views::workflow::report(&report))
    }
}
