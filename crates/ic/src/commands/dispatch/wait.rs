//! `ic dispatch wait`

use std::time::Duration;

use ic_dispatch::{Dispatch, DispatchStatus, code};
use ic_ops::dispatch::{self, Waited};
use ic_ops::exec;

use crate::commands::prelude::*;
use crate::signals;
use crate::views::dispatch::{DispatchShowJson, DispatchWaitJson};

/// Wait until a dispatch ends, and show it. Exit 0 if it is completed.
///
/// Exit 1 if it failed, was cancelled or rolled back, if its process is gone and nothing recorded its end (code
/// `process_gone`), or if the timeout passed (code `timed_out`); 130 on Ctrl-C. A worker whose process is recorded (ic
/// dispatch start --pid) must complete its dispatch before it exits. Waiting writes nothing and blocks no other call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch wait 5d6e7f
  ic dispatch wait \"$d\" --timeout 30m || ic dispatch fail \"$d\" --error 'no end on record'
  ic dispatch wait \"$d\" --json | jq -r '.code // .status'")]
pub(crate) struct Wait {
    /// The dispatch: an id, or the end of one
    id: String,
    /// Wait at most DUR, as in 90s or 2h; 0s checks once [default: no limit]
    #[arg(long, value_name = "DUR", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
}

impl Wait {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let interrupted = signals::interrupted()?;
        let (dispatch, waited) = dispatch::wait(&kernel, &self.id, self.timeout, &interrupted)?;
        if waited == Waited::Interrupted {
            return Ok(ExitStatus::Interrupted);
        }
        let (commits, files) = kernel.read(|snapshot| {
            Ok((code::commits_of(snapshot, &dispatch.id)?, code::files_of(snapshot, &dispatch.id)?))
        })?;
        let log = exec::log_of(&kernel, &dispatch);
        let code = refusal(waited);
        let shown = DispatchShowJson::new(&dispatch, &commits, &files, log.as_deref());
        session.output.record(&DispatchWaitJson::new(shown, code), || {
            views::dispatch::waited(waited) + &views::dispatch::card(&dispatch, &commits, &files, log.as_deref())
        })?;
        Ok(if is_completed(&dispatch) { ExitStatus::Done } else { ExitStatus::No })
    }
}

fn refusal(waited: Waited) -> Option<Code> {
    match waited {
        Waited::ProcessGone => Some(Code::ProcessGone),
        Waited::TimedOut => Some(Code::TimedOut),
        Waited::Ended | Waited::Interrupted => None,
    }
}

/// Whether the dispatch was completed and not rolled back.
fn is_completed(dispatch: &Dispatch) -> bool {
    dispatch.status == DispatchStatus::Completed && dispatch.rolled_back_by.is_none()
}
