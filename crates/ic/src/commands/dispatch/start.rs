//! `ic dispatch start`

use std::time::Duration;

use ic_ops::dispatch;

use crate::commands::prelude::*;
use crate::views::dispatch::DispatchJson;

/// Mark a dispatch started.
///
/// The working tree is captured first, so call it before the worker begins; then say which process it is. Called once the worker runs,
/// it counts what changed since the newest capture as the worker's, if all of that changed after its process began.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch start \"$d\"               # before the agent begins
  IC_DISPATCH=$d agent <prompt.md &
  ic dispatch start \"$d\" --pid $!      # the agent, not the script")]
pub(crate) struct DispatchStartArgs {
    /// The dispatch: an id, or the end of one
    id: String,
    /// The worker's process (not a script that waits for it), also of a dispatch that is started. While it runs, restores
    /// of the tree are refused, until the dispatch is completed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pid: Option<u32>,
    /// Without a beat for DUR, as in 90s or 2h, it is lost: for a worker on another machine; see ic dispatch beat
    #[arg(long, value_name = "DUR", value_parser = input::ttl)]
    ttl: Option<Duration>,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl DispatchStartArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_for(self.door.as_deref())?;
        let kept = super::kept(session, &kernel, &self.id, !self.no_checkpoint)?;
        let (dispatch, warnings) = dispatch::start(&kernel, &self.id, self.pid, self.ttl, kept.settings.as_ref())?;
        super::captured(session, &kernel, &kept, &warnings);
        session.output.record(&DispatchJson::from(&dispatch).warned(&warnings), || views::dispatch::one_line(&dispatch))
    }
}
