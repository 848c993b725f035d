//! Asks a person about the paths in conflict of an undo of works, path by path and before anything is changed.

use ic_kernel::Kernel;
use ic_undo::{LayeredRequest, LayeredRollback, RollbackRequest};
use ic_worktree::{CaptureSettings, Conflict, RestoreReport, RestoreWatch, Workspace};

use crate::commands::diff_forms::ShownDiff;
use crate::commands::prelude::*;
use crate::commands::workflow::WorkflowWatch as Progress;
use crate::text::diff::DiffShape;
use crate::views::rollback::tree::conflict_line;

/// What a person says about one path.
enum Answer {
    Leave,
    Take,
    Stop,
    LeaveAll,
    TakeAll,
}

/// The questions about the paths in conflict of one plan.
pub(crate) struct ConflictQuestions<'q> {
    pub(crate) kernel: &'q Kernel,
    pub(crate) settings: &'q CaptureSettings,
    /// The tree, as it was planned without a decision.
    pub(crate) tree: &'q RestoreReport,
}

impl ConflictQuestions<'_> {
    /// Asks about each path that nothing decides yet, and returns the request with the answers; `None`: the person stops.
    pub(crate) fn ask<'a>(
        &self,
        session: &mut CliSession,
        mut request: LayeredRequest<'a>,
        preview: &str,
    ) -> Result<Option<LayeredRequest<'a>>> {
        // The conflicts are cloned, because each answer changes the request, which knows the undecided ones.
        let open: Vec<Conflict> = request.undecided(&self.tree.conflicts).into_iter().cloned().collect();
        let mut shown = format!("{preview}Others may have changed the paths that are marked CONFLICT.\n");
        for (at, conflict) in open.iter().enumerate() {
            let rest = open[at..].iter().map(|one| one.path.clone());
            match self.answer(session, &request, &shown, (conflict, open.len() - at))? {
                Answer::Leave => request.decisions.leave.push(conflict.path.clone()),
                Answer::Take => request.decisions.take.push(conflict.path.clone()),
                Answer::LeaveAll => {
                    request.decisions.leave.extend(rest);
                    break;
                }
                Answer::TakeAll => {
                    request.decisions.take.extend(rest);
                    break;
                }
                Answer::Stop => return Ok(None),
            }
            // Only the first question has the plan above it.
            shown.clear();
        }
        Ok(Some(request))
    }

    /// Asks about one path until the answer decides it. `count`: this path and those that follow it.
    fn answer(
        &self,
        session: &mut CliSession,
        request: &LayeredRequest<'_>,
        shown: &str,
        (conflict, count): (&Conflict, usize),
    ) -> Result<Answer> {
        let can_take = ic_undo::can_be_taken(self.tree, conflict);
        // Where only the person knows whose it is, the answer tells.
        let (leave, take) = if ic_undo::may_be_yours(&conflict.reason) {
            ("it is mine, leave it [l]", "it is the agent's, take it out [t]")
        } else {
            ("leave what others changed [l]", "take this work out anyway [t]")
        };
        let mut question = leave.to_owned();
        if can_take {
            question += &format!(", {take}, see the difference [d]");
        }
        if count > 1 {
            let both = if can_take { "L] or [T" } else { "L" };
            question += &format!(", the same for all {count} [{both}]");
        }
        question += ", or stop [s]?";
        // A small letter decides this path; a capital letter also decides those that follow.
        let letters = match (can_take, count > 1) {
            (true, true) => "ltdsLT",
            (true, false) => "ltds",
            (false, true) => "lsL",
            (false, false) => "ls",
        };
        let mut text = format!("{shown}{}", conflict_line(conflict));
        loop {
            match CliSession::letter(&text, &question, letters)? {
                Some('l') => return Ok(Answer::Leave),
                Some('t') => return Ok(Answer::Take),
                Some('L') => return Ok(Answer::LeaveAll),
                Some('T') => return Ok(Answer::TakeAll),
                Some('d') => self.show(session, request, conflict)?,
                // The person typed `s`, or the terminal was closed.
                _ => return Ok(Answer::Stop),
            }
            text = conflict_line(conflict);
        }
    }

    /// Prints what goes from a path if the work is taken out of it.
    fn show(&self, session: &mut CliSession, request: &LayeredRequest<'_>, conflict: &Conflict) -> Result<()> {
        let mut request = request.clone();
        // No hash is expected: the caller's hash is that of the plan without this decision.
        request.base = RollbackRequest { dry_run: true, expect_plan: None, ..request.base };
        // A plan of its own: of a path that may be a person's, the plan that is shown has no change.
        request.decisions.take.push(conflict.path.clone());
        let watch = RestoreWatch::default();
        let taken: LayeredRollback =
            ic_undo::roll_back(self.kernel, self.settings, &request, &mut Progress::new(session), &watch)?;
        let Some(tree) = &taken.parts.tree else { return Ok(()) };
        let workspace = Workspace::open(self.kernel, tree.target.root.clone(), self.settings)?;
        let heading = "Lines with + go, and lines with - come back:\n";
        let path = [conflict.path.0.clone()];
        ShownDiff::of_plan(&workspace, tree, &path).print_below(session, DiffShape::Unified, heading)?;
        Ok(())
    }
}
