//! `ic run agent update`

use ic_ops::agent;
use ic_runtrack::AgentStatus;

use crate::commands::prelude::*;
use crate::views::agent::AgentJson;

/// Mark an agent completed or failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run agent update \"$agent\" --status completed")]
pub(crate) struct RunAgentUpdateArgs {
    /// The agent: an id, or the end of one
    agent: String,
    /// The outcome of its work
    #[arg(long, value_parser = one_of(AgentStatus::as_str, &[(AgentStatus::Completed, ""), (AgentStatus::Failed, "")]))]
    status: AgentStatus,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunAgentUpdateArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_for(self.door.as_deref())?;
        let agent = agent::finish(&kernel, &self.agent, self.status)?;
        let one = std::slice::from_ref(&agent);
        session.output.record(&AgentJson::from(&agent), || views::agent::agents(one))
    }
}
