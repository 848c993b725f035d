//! `ic events cursor commit`

use ic_base::Label;
use ic_ops::consume::{self, HeldCursor};

use crate::commands::prelude::*;
use crate::views::event::CursorJson;

/// Move a cursor to the last event that you handled.
///
/// For consumers with their own loop, which read with: ic events tail --cursor NAME --peek. The first such read
/// creates the cursor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor commit notifier 42
  ic events cursor commit notifier 40 --back      # handle 41 and 42 again")]
pub(crate) struct EventsCursorCommitArgs {
    /// The name of the cursor
    name: String,
    /// The last event that was handled
    #[arg(value_name = "SEQ", value_parser = clap::value_parser!(i64).range(0..))]
    seq: i64,
    /// The run that the cursor follows [default: all runs]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Let it move backwards
    #[arg(long)]
    back: bool,
}

impl EventsCursorCommitArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let name = Label::parse("NAME", &self.name)?;
        let run = self.run.as_deref();
        let run_id = run.map(|run| kernel.read(|snapshot| kernel.run(snapshot, run))).transpose()?;
        // The cursor's lock is taken: without it, a consumer that runs now would move the cursor on from its former position.
        let held = HeldCursor::take(&kernel, name, run_id.map(|run| run.id), session.busy_timeout())?;
        let moved = consume::commit(&kernel, &held, self.seq, self.back)?;
        session.output.record(&CursorJson::from(&moved), || views::event::cursors(std::slice::from_ref(&moved)))
    }
}
