//! `ic dispatch beat`

use std::time::Duration;

use ic_ops::dispatch;

use crate::commands::prelude::*;
use crate::views::dispatch::DispatchJson;

/// Say that work goes on, for a worker without a process on this machine.
///
/// Work that says nothing for longer than its --ttl is lost: `ic wait` ends with the code lost, and `ic status` names it. A later beat, or
/// its end, brings it back. Work that was undone or has ended is refused, so that its worker learns of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch start \"$d\" --ttl 5m          # silent for 5 minutes: lost
  while sleep 60; do ic dispatch beat \"$d\" || kill \"$agent\"; done
  ic dispatch beat \"$d\" --ttl 1h            # a long step follows")]
pub(crate) struct BeatArgs {
    /// The dispatch: an id, or the end of one
    id: String,
    /// It may be silent for DUR, as in 90s or 2h [default: as long as before]
    #[arg(long, value_name = "DUR", value_parser = input::ttl)]
    ttl: Option<Duration>,
}

impl BeatArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let dispatch = dispatch::beat(&kernel, &self.id, self.ttl)?;
        session.output.record(&DispatchJson::from(&dispatch), || views::dispatch::one_line(&dispatch))
    }
}
