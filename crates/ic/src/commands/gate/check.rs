//! `ic gate check`

use ic_ops::advance;

use crate::commands::prelude::*;
use crate::views::gate::GateCheckJson;

/// Show what an advance would do now, and change nothing. Exit 1 if it would not move.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic gate check @
  ic gate check @ --json | jq '.evidence.conditions'")]
pub(crate) struct GateCheckArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// 0-1: gates block; 2-3: they warn; 4 and above: skipped
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u32,
}

impl GateCheckArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let outcome = advance::check(&kernel, &self.run, self.priority)?;
        session.output.record(&GateCheckJson::from(&outcome), || views::gate::gate_check(&outcome))?;
        Ok(if outcome.advanced() { ExitStatus::Done } else { ExitStatus::No })
    }
}
