//! `ic run agent add`

use ic_base::Label;
use ic_ops::agent;

use crate::commands::prelude::*;
use crate::views::agent::AgentJson;

/// Add an active agent to a run, in its current phase, and print its id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent=$(ic run agent add @ --type codex --name reviewer)
  ic run agent add @ --type claude --dispatch \"$dispatch\"")]
pub(crate) struct RunAgentAddArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The kind of agent
    #[arg(long = "type", value_name = "T")]
    kind: String,
    /// A name for people
    #[arg(long, value_name = "N")]
    name: Option<String>,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunAgentAddArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kind = Label::parse("--type", &self.kind)?;
        let name = input::optional_label("--name", self.name.as_deref())?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let agent = agent::add(&kernel, &self.run, kind.as_str(), name.as_deref())?;
        session.output.scalar(agent.id.as_str(), &AgentJson::from(&agent))
    }
}
