//! `ic rewind undo`

use clap::Args;
use ic_base::Result;
use ic_ops::rewind;

use super::is_wanted;
use crate::exit::Exit;
use crate::json::RewindJson;
use crate::render;
use crate::session::Session;

/// Put the rows of a rewind back, exactly as they were.
///
/// Where something written since stands in the way, it is named and nothing is changed. The tree stays where it is: the answer
/// names the checkpoint that has it as it was before, and the command that restores it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind undo 3f9a12c4 --yes
  ic rewind undo 3f9a12c4 --yes --json | jq -r .git.restore      # and the tree, if it was moved")]
pub(crate) struct Undo {
    /// The rewind: an id, or the end of one
    id: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Undo {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let text = || rewind::show(&kernel, Some(&self.id)).map(|entry| render::rewind::entry(&entry));
        if !is_wanted(session, self.yes, "Put its rows back?", text)? {
            return Ok(Exit::No);
        }
        let undone = rewind::undo(&kernel, session.options().busy_timeout, &self.id)?;
        session.output.record(&RewindJson::undone(&undone), || render::rewind::undone(&undone))?;
        Ok(Exit::Done)
    }
}
