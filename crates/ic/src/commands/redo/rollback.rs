//! `ic redo ID`

use ic_undo::{Refusal, UndoRequest};
use ic_worktree::RestoreWatch;

use crate::commands::prelude::*;
use crate::commands::rollback::{DOES, finish, settings, show_preview, watch};
use crate::text::shell_word;

/// The redo of one rollback: it undoes that rollback, and so restores the run, its artifacts and skips, files, git's state and rows.
///
/// It is possible only while the run has no new work (reads and late reports do not count) and the tree is as the rollback left it. In the
/// meantime the run is closed.
pub(super) struct RollbackRedo<'a> {
    /// The rollback, or its run: an id, the end of one, @, or scope:NAME.
    pub(super) id: String,
    pub(super) reason: Option<&'a str>,
    /// Whether the rest is redone although undone effects are not made again.
    pub(super) without_effects: bool,
    pub(super) plan: &'a PlanFlags,
}

impl RollbackRedo<'_> {
    /// Carries it out, or says what it would do. `explain` adds to a refusal.
    pub(super) fn run(&self, session: &mut CliSession, explain: impl Fn(Diagnosis) -> Diagnosis) -> Result<ExitStatus> {
        let reason = input::optional_text("--reason", self.reason)?;
        let request = UndoRequest {
            rollback: &self.id,
            without_effects: self.without_effects,
            reason,
            expect_plan: self.plan.expect_plan.as_deref(),
        };
        let preview = || {
            let kernel = session.kernel_to_change(None)?;
            let settings = settings(session, &kernel, &self.id)?;
            let mut preview = ic_undo::preview_undo(&kernel, &settings, &request, &RestoreWatch::default())?;
            preview.refusals = explained_all(preview.refusals, &explain);
            Ok(preview)
        };
        // This is the hash of the plan that a person saw. Without a question, the caller's hash counts.
        let mut shown = None;
        if self.plan.dry_run || !self.plan.yes {
            let preview = preview().map_err(&explain)?;
            if self.plan.dry_run || !preview.refusals.is_empty() {
                return show_preview(session, &preview);
            }
            let look = format!("ic redo {} --dry-run", shell_word(&self.id));
            let question = Question { does: DOES, look: Some(&look), asks: "Redo?" };
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
