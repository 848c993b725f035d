//! `ic run agent list`

use crate::commands::prelude::*;
use crate::views::agent::AgentJson;

/// List the agents of a run, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run agent list @
  ic run agent list @ --json | jq -r '.[] | select(.status == \"active\") | .id'")]
pub(crate) struct RunAgentListArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl RunAgentListArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let agents = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            ic_runtrack::agent::list(snapshot, &run.id)
        })?;
        let records: Vec<AgentJson> = agents.iter().map(AgentJson::from).collect();
        session.output.list(&records, || views::agent::agents(&agents))
    }
}
