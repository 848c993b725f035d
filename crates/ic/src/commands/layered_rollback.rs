//! Shows the plan of a rollback, asks, and carries it out: shared by `run rollback` and `undo`.

use std::sync::Arc;

use clap::ValueEnum;
use ic_base::display::path_text;
use ic_kernel::Kernel;
use ic_kernel::journal::Force;
use ic_undo::{LayeredRequest, LayeredRollback, LayeredStatus, RollbackRequest};
use ic_worktree::{CaptureSettings, RestoreWatch};

use crate::commands::conflict_questions::ConflictQuestions;
use crate::commands::conversation;
use crate::commands::prelude::*;
use crate::commands::workflow::WorkflowWatch as Progress;
use crate::signals;
use crate::views::rollback::RollbackJson;

/// A layer, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayerArg {
    /// Phase pointer, skips, artifacts, dispatches, agents
    Workflow,
    /// Only list commits and files, by dispatch: rolls nothing back
    Code,
    /// Outside effects, by their compensations
    Effects,
    /// Files of the working tree
    Files,
    /// HEAD, branch, index, stash
    Git,
    /// Rows of the application's tables
    Data,
    /// Workflow, effects, files, git, and data where a state database is configured
    All,
}

impl LayerArg {
    /// The layers that are named; `None` for all of them, which is also the default.
    ///
    /// Errors: `usage` for `code`, which is a report and no layer of a rollback.
    pub(crate) fn named(typed: &[Self]) -> Result<Option<Vec<ic_undo::LayerName>>> {
        use ic_undo::LayerName as L;
        if typed.is_empty() || typed.contains(&Self::All) {
            return Ok(None);
        }
        let one = |layer: &Self| match layer {
            Self::Workflow => Ok(L::Workflow),
            Self::Effects => Ok(L::Effects),
            Self::Files => Ok(L::Files),
            Self::Git => Ok(L::Git),
            Self::Data => Ok(L::Data),
            Self::Code | Self::All => {
                Err(Diagnosis::new(Code::Usage, "The layer code only reads: it cannot be rolled back.")
                    .hint("to read it: ic run rollback RUN --layer=code"))
            }
        };
        typed.iter().map(one).collect::<Result<_>>().map(Some)
    }
}

/// The refusals that a person overrides.
#[derive(Debug, Default, Clone, Copy, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Forced {
    /// The four flags that follow, together
    #[arg(long)]
    force: bool,
    /// Replace what others may have changed; of prompts, the same lines alone
    #[arg(long)]
    force_files: bool,
    /// Take pushed commits, and others', off their branches
    #[arg(long)]
    force_commits: bool,
    /// Go ahead while workers still run
    #[arg(long)]
    force_workers: bool,
    /// Undo effects before one that has no undo (a pivot)
    #[arg(long)]
    past_pivot: bool,
}

impl Forced {
    pub(crate) fn decided(self) -> Force {
        let each = Force {
            files: self.force_files,
            commits: self.force_commits,
            workers: self.force_workers,
            past_pivot: self.past_pivot,
        };
        each.or(Force::all_if(self.force))
    }

    /// Errors: `usage` if one of these flags was given, or another one of files (`is_more`), and the layers that were named have no files.
    pub(crate) fn require_none_for_record(self, layers: &[LayerArg], is_more: bool) -> Result<()> {
        // Code is a report, which changes even less.
        let is_of_record = layers.iter().all(|layer| matches!(layer, LayerArg::Workflow | LayerArg::Code));
        if is_of_record && (is_more || self.decided() != Force::default()) {
            let message = "The --force flags, --keep-theirs and --mine have no effect on the record alone; choose other layers with --layer.";
            return Err(Diagnosis::new(Code::Usage, message));
        }
        Ok(())
    }
}

/// A rollback that a person asks for, with `--yes` or without.
pub(crate) struct Rolling<'a> {
    /// The point, the layers and the flags.
    pub(crate) request: LayeredRequest<'a>,
    /// Whether it is done without a question.
    pub(crate) yes: bool,
}

impl Rolling<'_> {
    /// Carries out the rollback. Without `yes` it first shows the plan and asks; without a terminal it is refused.
    pub(crate) fn go(
        &self,
        session: &mut CliSession,
        kernel: &Kernel,
        settings: &CaptureSettings,
    ) -> Result<ExitStatus> {
        // --dry-run   plan, and print it
        // --yes       plan and roll back in one call
        // else        plan; refused by paths alone, at a terminal: ask about each of them, and begin again
        //                   refused otherwise: print the refusal
        //                   not refused: ask, then roll back by exactly this plan
        let mut progress = Progress::new(session);
        let mut roll_back = |base: RollbackRequest<'_>| {
            // A preview changes nothing, so Ctrl-C may end it at once.
            let interrupted = if base.dry_run { Arc::default() } else { signals::interrupted()? };
            let watch = RestoreWatch { interrupted, ..RestoreWatch::default() };
            let request = LayeredRequest { base, ..self.request.clone() };
            ic_undo::roll_back(kernel, settings, &request, &mut progress, &watch)
        };
        let base = self.request.base;
        // `preview` is declared here, because `sure` borrows the hash of its plan.
        let preview;
        let mut sure = base;
        if !base.dry_run && !self.yes {
            preview = roll_back(RollbackRequest { dry_run: true, ..base })?;
            if !preview.refusals.is_empty() {
                return match self.decided(session, kernel, settings, &preview)? {
                    // This plans and asks once more: the answers make it another plan.
                    Some(decided) => decided.go(session, kernel, settings),
                    None => finish(session, kernel, settings, &preview),
                };
            }
            let question = Question {
                does: "This rollback changes more than the ledger",
                look: Some("--dry-run"),
                asks: "Roll back?",
            };
            say_where(session, kernel, &preview);
            if !session.confirm(false, &question, || Ok(views::rollback::layers_plan::plan(&preview)))? {
                return Ok(ExitStatus::No);
            }
            session.output.warn_all(preview.stays());
            // The plan was shown; a plan that has changed since is refused.
            sure.expect_plan = Some(&preview.rollback.plan_hash);
        }
        let whole = roll_back(sure)?;
        // Otherwise the question has said it already.
        if base.dry_run || self.yes {
            say_where(session, kernel, &whole);
        }
        finish(session, kernel, settings, &whole)
    }
}

impl Rolling<'_> {
    /// Asks a person about paths that keep an undo of works from being done, and returns the undo as they decide; `None`: there is no person
    /// to ask, something else refuses it, or they stop.
    fn decided(
        &self,
        session: &mut CliSession,
        kernel: &Kernel,
        settings: &CaptureSettings,
        preview: &LayeredRollback,
    ) -> Result<Option<Self>> {
        let is_conflict = |refusal: &ic_undo::Refusal| refusal.error.code() == Code::FileConflict;
        // An answer about a path removes no other refusal, so nothing is asked beside another one.
        let is_of_paths = preview.refusals.iter().all(is_conflict);
        let Some(tree) = preview.parts.tree.as_ref().filter(|_| is_of_paths && session.can_ask()) else {
            return Ok(None);
        };
        let text = views::rollback::layers_plan::plan(preview);
        let decided = ConflictQuestions { kernel, settings, tree }.ask(session, self.request.clone(), &text)?;
        Ok(decided.map(|request| Self { request, yes: self.yes }))
    }
}

/// Says where the run works, if that is not here: the paths of the plan belong to that tree.
fn say_where(session: &CliSession, kernel: &Kernel, whole: &LayeredRollback) {
    if let Some(tree) = &whole.parts.tree
        && tree.target.root != kernel.project.root
    {
        let (run, root) = (whole.rollback.plan.run.id.short(), path_text(&tree.target.root));
        session.output.warn(&format!("the run {run} works in {root}: the paths below are there"));
    }
}

/// Prints the plan or the outcome, and returns the exit that it leads to.
fn finish(
    session: &mut CliSession,
    kernel: &Kernel,
    settings: &CaptureSettings,
    whole: &LayeredRollback,
) -> Result<ExitStatus> {
    session.output.warn_all(whole.stays());
    let conversations = conversation::of_undone(kernel, whole);
    let ways_on: String = conversations.iter().map(views::conversation::way_on).collect();
    let mut record = RollbackJson::from(whole);
    record.conversations = conversations;
    let files_alone = files_alone(kernel, settings, whole);
    session.output.record(&record, || views::rollback::layers_plan::layered(whole, files_alone.as_ref()) + &ways_on)?;
    if let Some(refusal) = whole.refusals.first() {
        return Ok(ExitStatus::from(refusal.error.kind()));
    }
    let leaves_parts = whole.parts.tree.as_ref().is_some_and(|tree| !tree.parts_left.is_empty());
    let leaves_any =
        leaves_parts || whole.parts.is_partial() || !whole.work_stays.is_empty() || !whole.git_remains.is_empty();
    Ok(match whole.status {
        // This comes first: a rollback that is done, or planned, may still leave something.
        _ if leaves_any => ExitStatus::Partly,
        LayeredStatus::Planned | LayeredStatus::RolledBack | LayeredStatus::AlreadyThere => ExitStatus::Done,
        LayeredStatus::RolledBackInPart | LayeredStatus::RollingBack => ExitStatus::Partly,
    })
}

/// The files whose restore alone can be undone: see [`ic_undo::files_alone`]. An error there is ignored, because the rest is still
/// worth showing, and the undo itself reports it.
fn files_alone(kernel: &Kernel, settings: &CaptureSettings, whole: &LayeredRollback) -> Option<ic_undo::FilesAlone> {
    // A preview has changed nothing that an undo could restore.
    let (id, _) = whole.rollback.done.as_ref()?;
    let (remembered, steps) = ic_undo::named(kernel, id.as_str()).ok()?;
    ic_undo::files_alone(kernel, settings, (&remembered, &steps)).ok()?
}
