//! `ic log`

use ic_point::log;

use crate::commands::prelude::*;
use crate::views::log::LogEntryJson;

/// Show what a run can go back to, and how it went back before, newest first.
///
/// A point lies before each dispatch, step, prompt and phase that was left, and where a checkpoint was asked for; the first is
/// `created`. Each has the files that changed from there to the next point, and the commits that its dispatch recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic log
  ic log 7f3a9c --limit 5
  ic log --all                          # with what was rolled back, as branches
  ic log --json | jq -r '.[] | select(.kind != \"rollback\").reference'")]
pub(crate) struct Log {
    /// The run: an id, the end of one, @, or scope:NAME [default: @, else the newest here]
    run: Option<String>,
    /// Also what was rolled back, and rollbacks that were undone
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

impl Log {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let run = kernel.read(|snapshot| ic_point::run_or_newest(&kernel, snapshot, self.run.as_deref()))?;
        let log = log::log(&kernel, session.options(), &run, self.all, self.limit as usize)?;
        let records: Vec<LogEntryJson> =
            log.entries.iter().map(|entry| LogEntryJson::new(&run, entry)).collect();
        let is_named = self.run.is_some();
        let now = kernel.context.now();
        session.output.list(&records, || views::log::list(&run, is_named, &log, self.all, now))
    }
}
