//! `ic rewind undo`

use clap::Args;
use ic_base::Result;

use super::is_wanted;
use crate::exit::Exit;
use crate::json::RewindJson;
use crate::render::{self, shell_word};
use crate::session::Session;

/// Undo a rewind: restore its rows exactly.
///
/// If rows written since are in conflict, they are named and nothing changes. The tree stays where it is: the output
/// names the checkpoint from before the rewind, and the command that restores it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind undo 3f9a12c4 --dry-run
  ic rewind undo 3f9a12c4 --yes
  ic rewind undo 3f9a12c4 --yes --json | jq -r .git.restore   # for the tree")]
pub(crate) struct Undo {
    /// The rewind: an id, or the end of one
    id: String,
    /// Show the rows to restore and the conflicts, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Undo {
    pub(super) fn run(&self, session: &mut Session) -> Result<Exit> {
        let kernel = session.kernel()?;
        let busy_timeout = session.options().busy_timeout;
        let preview = || ic_rows::preview_undo(&kernel, busy_timeout, &self.id);
        if self.dry_run {
            let preview = preview()?;
            let text = || render::rewind::undone(&preview) + &render::to_do_it();
            session.output.record(&RewindJson::undone(&preview), text)?;
            return Ok(Exit::Done);
        }
        let text = || preview().map(|preview| render::rewind::undone(&preview));
        let look = format!("ic rewind undo {} --dry-run", shell_word(&self.id));
        if !is_wanted(session, self.yes, "Restore its rows?", &look, text)? {
            return Ok(Exit::No);
        }
        finish(session, &ic_rows::undo(&kernel, busy_timeout, &self.id)?)
    }
}

fn finish(session: &mut Session, undone: &ic_rows::Undone) -> Result<Exit> {
    session.output.record(&RewindJson::undone(undone), || render::rewind::undone(undone))?;
    Ok(Exit::Done)
}
