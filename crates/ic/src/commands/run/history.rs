//! `ic run history`

use ic_ops::history;

use crate::commands::prelude::*;
use crate::views::history::HistoryJson;

/// Show the history of a run as a tree: phases, attempts, and rollbacks as branches.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run history @
  ic run history @ --json | jq '.stays[] | select(.rolled_back_by)'")]
pub(crate) struct History {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl History {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let story = kernel.read(|snapshot| history::story(snapshot, &kernel.run(snapshot, &self.run)?))?;
        session.output.record(&HistoryJson::from(&story), || views::history::timeline(&story))
    }
}
