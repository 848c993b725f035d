//! `ic rollback undo`

use ic_undo::{Refusal, UndoRequest};

use super::{DOES, finish, settings, show_preview, watch};
use crate::commands::prelude::*;
use crate::text::shell_word;

/// Undo a rollback: restore the run, its artifacts and skips, files, git's state and rows.
///
/// It is possible only while the run has no new work (reads and late reports do not count) and the tree is as the
/// rollback left it. No dispatch and no agent is revived. In the meantime the run is closed; after a failure or a crash,
/// repeat the call or run ic rollback resume.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic rollback undo 3f9a12c4 --dry-run
  ic rollback undo 3f9a12c4 --yes
  ic rollback undo @ --yes                             # the newest of the run
  ic rollback undo 3f9a12c4 --without-effects --yes   # undone effects stay undone

Exit 1 when something happened since: it is named, and nothing changes. Exit 4 when something could not be restored.")]
pub(crate) struct RollbackUndoArgs {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME
    pub(crate) id: String,
    /// The reason, recorded with the undo
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Undo the rest although undone effects are not made again
    #[arg(long)]
    pub(crate) without_effects: bool,
    /// Show what would be restored or refused, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Refuse any plan but this `undo_plan_hash` of a dry run
    #[arg(long, value_name = "HASH", value_parser = crate::flags::plan_hash)]
    pub(crate) expect_plan: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

impl RollbackUndoArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        self.explained(session, |error| error)
    }

    /// As [`Self::run`], for a caller that adds to a refusal.
    pub(crate) fn explained(
        &self,
        session: &mut CliSession,
        explain: impl Fn(Diagnosis) -> Diagnosis,
    ) -> Result<ExitStatus> {
        let reason = input::optional_text("--reason", self.reason.as_deref())?;
        let request = UndoRequest {
            rollback: &self.id,
            without_effects: self.without_effects,
            reason,
            expect_plan: self.expect_plan.as_deref(),
        };
        let preview = || {
            let kernel = session.kernel_to_change(None)?;
            let settings = settings(session, &kernel, &self.id)?;
            let mut preview = ic_undo::preview_undo(&kernel, &settings, &request, &watch()?)?;
            preview.refusals = explained_all(preview.refusals, &explain);
            Ok(preview)
        };
        let mut shown = None;
        if self.dry_run || !self.yes {
            let preview = preview().map_err(&explain)?;
            if self.dry_run || !preview.refusals.is_empty() {
                return show_preview(session, &preview);
            }
            let look = format!("ic rollback undo {} --dry-run", shell_word(&self.id));
            let question = Question { does: DOES, look: Some(&look), asks: "Undo this rollback?" };
            let text = || Ok(views::rollback::rollback_undo::undone(&preview, None) + "\n");
            if !session.confirm(false, &question, text)? {
                return Ok(ExitStatus::No);
            }
            shown = preview.plan_hash;
        }
        let kernel = session.kernel_to_change(None)?;
        let settings = settings(session, &kernel, &self.id)?;
        // The plan was shown; a plan that has changed since is refused.
        let request = UndoRequest { expect_plan: shown.as_deref().or(request.expect_plan), ..request };
        let undone = ic_undo::undo(&kernel, &settings, &request, &watch()?).map_err(&explain)?;
        finish(session, &kernel, &undone)
    }
}

/// Explains the first refusal, which is the error of the real call.
fn explained_all(refusals: Vec<Refusal>, explain: impl Fn(Diagnosis) -> Diagnosis) -> Vec<Refusal> {
    let mut all = refusals.into_iter();
    let first = all.next().map(|first| Refusal { error: explain(first.error), ..first });
    first.into_iter().chain(all).collect()
}
