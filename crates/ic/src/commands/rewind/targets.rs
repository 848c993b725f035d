//! `ic rewind targets`

use ic_undo::app_rewind::FoundRewind;

use crate::commands::prelude::*;
use crate::views::rewind::database::RewindTargetJson;

/// List the tasks that a rewind can go to, newest first.
///
/// They are the rows of the anchor table, which the section `rewind` of .ic.yaml names. ic rewind to TASK --dry-run
/// counts the rows that a rewind would delete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind targets
  ic rewind targets --scope-id \"$thread\" --limit 5
  ic rewind targets --json | jq -r '.[1].task_id'   # the last but one")]
pub(crate) struct Targets {
    /// Only tasks whose first scope column has this value
    #[arg(long, value_name = "ID")]
    scope_id: Option<String>,
    /// Print at most N tasks
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

impl Targets {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let config = session.config(&kernel.project.root)?.config;
        let FoundRewind { setup, warning } = ic_undo::app_rewind::setup(&kernel, &config)?;
        session.output.warn_all(&warning);
        let settings = session.checkpoint_settings(&kernel)?;
        let scope = input::optional_text("--scope-id", self.scope_id.as_deref())?;
        let tasks = ic_undo::app_rewind::targets(&settings, &setup, scope, self.limit)?;
        let records: Vec<RewindTargetJson> = tasks.iter().map(RewindTargetJson::from).collect();
        session.output.list(&records, || views::rewind::database::targets(&tasks))
    }
}
