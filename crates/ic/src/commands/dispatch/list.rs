//! `ic dispatch list`

use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, DispatchFilter};

use crate::commands::prelude::*;
use crate::views::dispatch::DispatchJson;

/// List dispatches, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch list @
  ic dispatch list --status running          # of all runs
  ic dispatch list @ --phase executing --json | jq -r '.[].id'")]
pub(crate) struct DispatchListArgs {
    /// The run [default: all runs]
    run: Option<String>,
    /// Only those of this phase
    #[arg(long, value_name = "P", requires = "run")]
    phase: Option<String>,
    /// Only those of this status: pending, running, completed, failed, `timed_out`, interrupted, cancelled
    #[arg(long, value_name = "S")]
    status: Option<String>,
    /// At most the newest N
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

impl DispatchListArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let status = self.status.as_deref().map(parse_status).transpose()?;
        let kernel = session.kernel()?;
        let mut dispatches = kernel.read(|snapshot| {
            let run = self.run.as_ref().map(|run| kernel.run(snapshot, run)).transpose()?;
            // A phase that the chain does not have is a typing error, which an empty list would hide.
            if let (Some(run), Some(phase)) = (&run, &self.phase) {
                run.chain.require(phase)?;
            }
            let filter = DispatchFilter {
                run_id: run.as_ref().map(|run| &run.id),
                phase: self.phase.as_deref(),
                status,
                limit: self.limit,
            };
            dispatch::list(snapshot, &filter)
        })?;
        // The query returns the newest ones, newest first.
        dispatches.reverse();
        let records: Vec<DispatchJson> = dispatches.iter().map(DispatchJson::from).collect();
        session.output.list(&records, || views::dispatch::table(&dispatches))
    }
}

fn parse_status(text: &str) -> Result<DispatchStatus> {
    DispatchStatus::parse(text).ok_or_else(|| {
        Diagnosis::new(
            Code::InvalidValue,
            format!("--status {text:?} is not a status: {}.", DispatchStatus::WORDS.join(", ")),
        )
        .detail("value", "--status")
    })
}
