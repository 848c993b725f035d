//! `ic rewind undo`

use super::DOES;
use crate::commands::prelude::*;
use crate::text::{self, shell_word};
use crate::views::rewind::RewindJson;

/// Undo a rewind: restore its rows exactly.
///
/// If rows written since are in conflict, they are named and nothing changes. The tree stays where it is: the output
/// names the checkpoint from before the rewind, and the command that restores it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rewind undo 3f9a12c4 --dry-run
  ic rewind undo 3f9a12c4 --yes
  ic rewind undo 3f9a12c4 --yes --json | jq -r .git.restore   # for the tree")]
pub(crate) struct RewindUndoArgs {
    /// The rewind: an id, or the end of one
    id: String,
    /// Show the rows to restore and the conflicts, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl RewindUndoArgs {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let kernel = session.kernel_to_change(None)?;
        let busy_timeout = session.options().busy_timeout;
        let preview = || ic_undo::app_rewind::preview_undo(&kernel, busy_timeout, &self.id);
        if self.dry_run {
            let preview = preview()?;
            let text = || views::rewind::undone(&preview) + &text::to_do_it();
            return session.output.record(&RewindJson::undone(&preview), text);
        }
        let text = || preview().map(|preview| views::rewind::undone(&preview));
        let look = format!("ic rewind undo {} --dry-run", shell_word(&self.id));
        let question = Question { does: DOES, look: Some(&look), asks: "Restore its rows?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(ExitStatus::No);
        }
        finish(session, &ic_undo::app_rewind::undo(&kernel, busy_timeout, &self.id)?)
    }
}

fn finish(session: &mut CliSession, undone: &ic_undo::app_rewind::UndoneRewind) -> Result<ExitStatus> {
    session.output.record(&RewindJson::undone(undone), || views::rewind::undone(undone))
}
