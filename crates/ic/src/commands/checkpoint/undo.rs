//! `ic checkpoint undo`

use clap::Args;
use ic_base::Result;

use super::restore::Common;
use crate::exit::Exit;
use crate::session::Session;

/// Restore the working tree to what it was before the last restore.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint undo --dry-run
  ic checkpoint undo --yes")]
pub(crate) struct Undo {
    #[command(flatten)]
    common: Common,
}

impl Undo {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        self.common.undo(session)
    }
}
