//! `ic rewind undo`

use super::DOES;
use crate::commands::prelude::*;
use crate::text::{self, shell_word};
use crate::views::rewind::RewindJson;

/// Put the rows of a rewind back, exactly as they were.
///
/// Where something written since stands in the way, it is named and nothing is changed. The tree stays where it is: the answer
/// names the checkpoint that has it as it was before, and the command that restores it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind undo 3f9a12c4 --dry-run                               # which rows would come back
  ic rewind undo 3f9a12c4 --yes
  ic rewind undo 3f9a12c4 --yes --json | jq -r .git.restore      # and the tree, if it was moved")]
pub(crate) struct Undo {
    /// The rewind: an id, or the end of one
    id: String,
    /// Say which rows would come back and what stands in the way, and change nothing
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
            let text = || views::rewind::undone(&preview) + &text::to_do_it();
            return session.output.record(&RewindJson::undone(&preview), text);
        }
        let text = || preview().map(|preview| views::rewind::undone(&preview));
        let look = format!("ic rewind undo {} --dry-run", shell_word(&self.id));
        let question = Question { does: DOES, look: Some(&look), asks: "Restore its rows?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(Exit::No);
        }
        finish(session, &ic_rows::undo(&kernel, busy_timeout, &self.id)?)
    }
}

fn finish(session: &mut Session, undone: &ic_rows::Undone) -> Result<Exit> {
    session.output.record(&RewindJson::undone(undone), || views::rewind::undone(undone))
}
