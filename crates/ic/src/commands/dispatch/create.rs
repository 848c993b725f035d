//! `ic dispatch create`

use std::path::PathBuf;

use ic_dispatch::dispatch::DispatchWork;
use ic_ops::dispatch;

use crate::commands::prelude::*;
use crate::views::dispatch::DispatchJson;

/// Create a dispatch (a piece of work) in a run, and print its id.
///
/// Pass the id to the worker as `IC_DISPATCH`: after a rollback, its late writes are then refused. The working tree is captured, so that
/// what the worker does before `ic dispatch start --pid` belongs to its work.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  d=$(ic dispatch create @ --agent-type codex --name 'login form')
  IC_DISPATCH=$d codex exec --prompt-file prompt.md")]
pub(crate) struct DispatchCreateArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// Its phase [default: the run's current one]
    #[arg(long, value_name = "P")]
    phase: Option<String>,
    /// The kind of agent
    #[arg(long, value_name = "T")]
    agent_type: Option<String>,
    /// A name for people
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// The model that the agent uses
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// The file that holds the prompt
    #[arg(long, value_name = "F")]
    prompt_file: Option<PathBuf>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl DispatchCreateArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let work = DispatchWork {
            agent_type: input::optional_label("--agent-type", self.agent_type.as_deref())?,
            name: input::optional_label("--name", self.name.as_deref())?,
            model: input::optional_label("--model", self.model.as_deref())?,
            prompt_file: match &self.prompt_file {
                Some(path) => Some(input::path("--prompt-file", path)?.to_owned()),
                None => None,
            },
            parent_id: None,
        };
        let kernel = session.kernel_for(self.door.as_deref())?;
        let kept = super::kept_for_run(session, &kernel, &self.run, !self.no_checkpoint)?;
        let capturing = kept.settings.as_ref().filter(|settings| settings.checkpointing.auto);
        let (dispatch, warnings) = dispatch::create(&kernel, &self.run, self.phase.as_deref(), &work, capturing)?;
        super::swept(session, &kernel, &kept);
        session.output.warn_beside_value(&warnings);
        session.output.scalar(dispatch.id.as_str(), &DispatchJson::from(&dispatch).warned(&warnings))
    }
}
