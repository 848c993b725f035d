//! `ic events cursor reset`

use ic_base::Label;
use ic_ops::consume;

use super::print;
use crate::commands::prelude::*;

/// Reset the cursors of a name to the beginning.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic events cursor reset notifier")]
pub(crate) struct Reset {
    /// The name of the cursor
    name: String,
}

impl Reset {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel()?;
        let name = Label::parse("NAME", &self.name)?;
        let cursors = consume::reset(&kernel, &name, session.busy_timeout())?;
        print(session, &cursors)
    }
}
