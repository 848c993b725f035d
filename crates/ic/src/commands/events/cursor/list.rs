//! `ic events cursor list`

use ic_ledger::events::cursor;

use super::print;
use crate::commands::prelude::*;

/// List the cursors, by name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor list")]
pub(crate) struct EventsCursorListArgs {}

impl EventsCursorListArgs {
    #[allow(clippy::unused_self, reason = "every verb is run so")]
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let cursors = kernel.read(cursor::list)?;
        print(session, &cursors)
    }
}
