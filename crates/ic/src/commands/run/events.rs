//! `ic run events`

use ic_ops::history::UndoneMoves;

use crate::commands::prelude::*;
use crate::views::event::EventJson;

/// List every event of a run, oldest first.
///
/// An advance that was rolled back names the rollback in `rolled_back_by`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run events @
  ic run events @ --format jsonl | jq -c 'select(.source == \"phase\")'")]
pub(crate) struct Events {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
}

impl Events {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let mut list = session.output.begin_list();
        kernel.read(|snapshot| {
            // One snapshot for all: an advance that is listed and the rollback that marks it are of one moment.
            let run = kernel.run(snapshot, &self.run)?;
            let taken_back = UndoneMoves::of_run(snapshot, &run.id)?;
            list.print_as_read(
                |found| ic_ledger::events::each_of_run(snapshot, &run.id, found),
                |list, event| {
                    let rolled_back_by = taken_back.includes(&event);
                    list.push(&EventJson::new(&event, rolled_back_by), || {
                        views::event::line(&event, rolled_back_by.is_some())
                    })
                },
            )
        })?;
        list.end()
    }
}
