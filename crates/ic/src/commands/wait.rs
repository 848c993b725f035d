//! `ic wait`

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ic_ops::wait::{self, WaitRequest, WaitStop};

use crate::commands::prelude::*;
use crate::views::wait::AwaitedJson;
use crate::{progress, signals};

/// Wait until work ends: dispatches, runs, or everything that runs.
///
/// Without REF it waits for all work that `ic exec` or a script began and that is under way in this ledger, its forks too; an agent's prompts are
/// not meant. It writes nothing and blocks no other call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic wait                              # for everything that runs
  ic wait \"$d\" --timeout 30m
  ic wait \"$a\" \"$b\" --any --json | jq -r '.[] | select(.code == null) | .short_id'
  ic wait @                            # for the run here

Exit 0 if all were completed; with --any, if the first that ended was. Exit 1 if one failed, was cancelled or rolled back, or did not end:
its code is then timed_out, process_gone, lost (no beat in time), or not_finished (a workflow that has stopped; with --any,
another one ended first). 130 on Ctrl-C.")]
pub(crate) struct WaitArgs {
    /// Dispatches and runs: ids, or the ends of them [default: all work that is under way]
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// Wait for the first that ends
    #[arg(long)]
    any: bool,
    /// Wait for each of them to end: the default
    #[arg(long, conflicts_with = "any")]
    all: bool,
    /// Wait at most DUR, as in 90s or 2h; 0s checks once [default: no limit]
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
}

impl WaitArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let interrupted = signals::interrupted()?;
        let request = WaitRequest { references: &self.references, any: self.any, timeout: self.timeout };
        let open = AtomicUsize::new(0);
        let left = |number| open.store(number, Ordering::Relaxed);
        let describe = || format!("waiting for {}", open.load(Ordering::Relaxed));
        let waiting = || wait::wait(&kernel, &request, &interrupted, &left);
        let (awaited, stop) = progress::shown(session.shows_progress(), describe, waiting)?;
        if stop == WaitStop::Interrupted {
            return Ok(ExitStatus::Interrupted);
        }
        let records: Vec<AwaitedJson> = awaited.iter().map(|one| AwaitedJson::new(one, stop)).collect();
        session.output.list(&records, || views::wait::awaited(&awaited, stop))?;
        // With --any, what goes on has no end.
        // Otherwise each counts, also one that a timeout cut off: without an end it is not a success.
        let mut meant = awaited.iter().filter(|one| !self.any || one.end.is_some());
        let is_success = meant.all(wait::Awaited::is_success);
        Ok(if is_success && stop == WaitStop::Ended { ExitStatus::Done } else { ExitStatus::No })
    }
}
