//! `ic run cancel`

use ic_ops::run::{self, CancelPart, Worker};

use crate::commands::prelude::*;
use crate::views::cancel::CancelJson;

/// Cancel a run, with its unfinished dispatches and active agents.
///
/// The output lists the processes that still work for the run: the executor of its workflow, which starts no further
/// step, the commands of steps, and those of dispatches. `--stop` ends the steps, each with its process group
/// (SIGTERM, and SIGKILL after 5 seconds), and waits up to 5 seconds for the executor to end; it works on an already
/// cancelled run, too. Processes that the workflow did not start are never signalled.
///
/// `ic run reopen` makes a cancelled run active again.
///
/// Exit codes: 0 done; 4 with `--stop`, when the run is cancelled but a process of its workflow still runs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic run cancel @ --reason 'superseded by sprint-13'
  ic run cancel @ --stop    # and end the running steps")]
pub(crate) struct RunCancelArgs {
    /// The run: an id, the end of one, @, or scope:NAME
    run: String,
    /// The reason, recorded with the cancellation
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// End the running steps of its workflow
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl RunCancelArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let kernel = session.kernel_for(self.door.as_deref())?;
        let cancelled = run::cancel(&kernel, &self.run, reason, self.stop)?;
        session.output.record(&CancelJson::from(&cancelled), || views::cancel::cancelled(&cancelled, self.stop))?;
        // Processes of dispatches are never signalled, so --stop succeeds although one lives.
        let of_workflow = |worker: &Worker| !matches!(worker.part, CancelPart::Dispatch(_));
        // Without --stop no process was to end, so one that runs is not a failure.
        let is_left = self.stop && cancelled.still_running.iter().any(of_workflow);
        Ok(if is_left { ExitStatus::Partly } else { ExitStatus::Done })
    }
}
