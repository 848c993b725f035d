//! `ic rollback abort`

use ic_worktree::RestoreWatch;

use super::{DOES, finish, settings, show_preview, shown, watch};
use crate::commands::prelude::*;
use crate::commands::workflow::WorkflowWatch as Progress;
use crate::text::shell_word;

/// Abort an unfinished rollback: restore run, files, git's state and rows as before it.
///
/// Effects that were undone stay undone, but for restored files (--restore-file), and cancelled work stays cancelled:
/// both are listed. Aborting the unfinished undo of a rollback leaves that rollback in force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback abort 3f9a12c4 --dry-run
  ic rollback abort 3f9a12c4 --yes
  ic rollback abort 3f9a12c4 --reason 'the plan was right' --yes")]
pub(crate) struct Abort {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    id: String,
    /// The reason, recorded with the abort
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Show what would be restored or refused, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Abort {
    pub(super) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let preview = || {
            let kernel = session.kernel_to_change(None)?;
            let settings = settings(session, &kernel, &self.id)?;
            ic_undo::preview_abort(&kernel, &settings, &self.id, &RestoreWatch::default())
        };
        if self.dry_run {
            return show_preview(session, &preview()?);
        }
        if !self.yes {
            // Checked first: if nothing is left to abort, a yes would not help.
            ic_undo::require_unfinished(&session.kernel_to_change(None)?, &self.id)?;
        }
        let look = format!("ic rollback abort {} --dry-run", shell_word(&self.id));
        // A failed preview is shown, and the abort may still succeed: it first finishes a restore that was interrupted, and its steps fail
        // one by one.
        let text = || {
            let in_the_way = match preview() {
                Ok(preview) if preview.refusals.is_empty() => {
                    return Ok(views::rollback::rollback_undo::undone(&preview, None) + "\n");
                }
                Ok(preview) => preview.refusals.into_iter().map(|refusal| refusal.error).collect(),
                Err(error) => vec![error],
            };
            let in_the_way: String = in_the_way.iter().map(views::rollback::rollback_undo::in_the_way).collect();
            Ok(shown(session, &self.id)? + "\n" + &in_the_way + "\n")
        };
        let question = Question { does: DOES, look: Some(&look), asks: "Abort it?" };
        if !session.confirm(self.yes, &question, text)? {
            return Ok(ExitStatus::No);
        }
        let kernel = session.kernel_to_change(None)?;
        let settings = settings(session, &kernel, &self.id)?;
        let mut progress = Progress::new(session);
        let undone = ic_undo::abort(&kernel, &settings, (&self.id, reason), &mut progress, &watch()?)?;
        finish(session, &kernel, &undone)
    }
}
