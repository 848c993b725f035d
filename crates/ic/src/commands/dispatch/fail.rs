//! `ic dispatch fail`

use ic_dispatch::dispatch::DispatchEnding;

use super::finish;
use crate::commands::prelude::*;

/// Mark a dispatch failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch fail \"$d\" --error 'exit 1: tests do not compile'
  ic dispatch fail \"$d\" --error 'no answer for 10m' --timed-out")]
pub(crate) struct Fail {
    /// The dispatch: an id, or the end of one
    id: String,
    /// The error that ended the work
    #[arg(long, value_name = "E")]
    error: String,
    /// It took too long
    #[arg(long)]
    timed_out: bool,
    /// Take no checkpoint of the working tree
    #[arg(long)]
    no_checkpoint: bool,
    #[command(flatten)]
    door: ForceFlags,
}

impl Fail {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let error = input::text("--error", &self.error)?;
        let ending = if self.timed_out { DispatchEnding::TimedOut { error } } else { DispatchEnding::Failed { error } };
        finish(session, &self.id, &self.door, &ending, !self.no_checkpoint)
    }
}
