//! `ic run agent ...`

use clap::{Args, Subcommand, ValueEnum};
use ic_base::{Label, Result};
use ic_ops::agent;
use ic_runtrack::AgentStatus;

use crate::commands::input;
use crate::exit::Exit;
use crate::flags::Door;
use crate::json::AgentJson;
use crate::render;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Add(Add),
    List(List),
    Update(Update),
}

/// Add an active agent to a run, in its current phase, and print its id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent=$(ic run agent add @ --type codex --name reviewer)
  ic run agent add @ --type claude --dispatch \"$dispatch\"")]
pub(crate) struct Add {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// What it is
    #[arg(long = "type", value_name = "T")]
    kind: String,
    /// A name for people
    #[arg(long, value_name = "N")]
    name: Option<String>,
    #[command(flatten)]
    door: Door,
}

/// List the agents of a run, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run agent list @
  ic run agent list @ --json | jq -r '.[] | select(.status == \"active\") | .id'")]
pub(crate) struct List {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

/// Mark an agent completed or failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run agent update \"$agent\" --status completed")]
pub(crate) struct Update {
    /// The agent: an id, or the end of one
    agent: String,
    /// How it ended
    #[arg(long, value_enum)]
    status: Ended,
    #[command(flatten)]
    door: Door,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ended {
    Completed,
    Failed,
}

impl Verb {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        match self {
            Self::Add(verb) => verb.run(session),
            Self::List(verb) => verb.run(session),
            Self::Update(verb) => verb.run(session),
        }
    }
}

impl Add {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kind = Label::parse("--type", &self.kind)?;
        let name = input::optional_label("--name", self.name.as_deref())?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let agent = agent::add(&kernel, &self.run, kind.as_str(), name.as_deref())?;
        session.output.scalar(agent.id.as_str(), &AgentJson::from(&agent))?;
        Ok(Exit::Done)
    }
}

impl List {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let agents = kernel.read(|snapshot| {
            let run = kernel.run(snapshot, &self.run)?;
            ic_runtrack::agent::list(snapshot, &run.id)
        })?;
        let records: Vec<AgentJson> = agents.iter().map(AgentJson::from).collect();
        session.output.list(&records, || render::runtrack::agents(&agents))?;
        Ok(Exit::Done)
    }
}

impl Update {
    fn run(&self, session: &mut Session) -> Result<Exit> {
        let status = match self.status {
            Ended::Completed => AgentStatus::Completed,
            Ended::Failed => AgentStatus::Failed,
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let agent = agent::finish(&kernel, &self.agent, status)?;
        let one = std::slice::from_ref(&agent);
        session.output.record(&AgentJson::from(&agent), || render::runtrack::agents(one))?;
        Ok(Exit::Done)
    }
}
