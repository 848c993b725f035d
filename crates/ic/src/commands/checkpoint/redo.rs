//! `ic checkpoint redo`

use clap::Args;
use ic_base::Result;

use super::restore::Common;
use crate::exit::Exit;
use crate::session::Session;

/// Make the restore again that was undone last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic checkpoint redo --yes")]
pub(crate) struct Redo {
    #[command(flatten)]
    common: Common,
}

impl Redo {
    pub(crate) fn run(&self, session: &mut Session) -> Result<Exit> {
        self.common.run(session, &self.common.request(), ic_worktree::redo)
    }
}
