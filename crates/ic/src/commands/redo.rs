//! `ic redo`

mod entry;
mod rewind;
mod rollback;

use ic_base::RollbackId;
use ic_kernel::Kernel;
use ic_kernel::journal::Force;
use ic_undo::{NewestUndo, RedoOwner};

use crate::commands::prelude::*;
pub(crate) use entry::{EntryUndo, without_meaning};

/// Redo what was undone last: undo the newest undo, rollback or restore; or the one with this ID.
///
/// The run, its files, git's state and rows are again as they were before it. What was done since stays: prompts come
/// back merged with it, and the redo of a rollback is refused where it would overwrite it. The undo of a restore may
/// replace what came since at its paths: a checkpoint keeps that, and the report names it. Effects that were undone are
/// not made again, but for restored files (--restore-file), and cancelled work stays cancelled: both are listed.
///
/// A rewind of rows is undone by its ID alone. `ic undo ID` does the same with an ID of these. After the redo of a
/// restore, it makes the restore again.
///
/// The hash for --expect-plan is the `undo_plan_hash` of a dry run; for the redo of a restore, its `plan_hash`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic redo --dry-run
  ic redo --yes
  ic redo 3f9a12c4 --yes            # that undo, rollback, restore or rewind
  ic redo --without-effects --yes   # undone effects stay undone
  ic redo --run 7f3a9c21 --yes

Exit 1 when the run or the tree changed since: the change is named, and nothing is done. Exit 4 when something could not be
restored. In the meantime the run is closed; after a failure or a crash, repeat the call or run ic rollback resume.")]
pub(crate) struct RedoArgs {
    /// What is undone: a rollback, its run, or the work that it undid; a restore, by its safety checkpoint; or a rewind
    ///
    /// An id, or the end of one; of a run also @ or scope:NAME.
    #[arg(conflicts_with = "run")]
    id: Option<String>,
    /// Only what was undone of this run; several active ones need it [default: what was undone last here]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// The reason, recorded with the redo
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Redo the rest although undone effects are not made again
    #[arg(long)]
    without_effects: bool,
    #[command(flatten)]
    plan: PlanFlags,
    /// Of a restore: overwrite what others changed since, even while workers run
    #[arg(long)]
    force: bool,
    /// Of a restore: keep what others changed since
    #[arg(long, conflicts_with = "force")]
    keep_theirs: bool,
}

impl RedoArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        input::optional_text("--reason", self.reason.as_deref())?;
        let undo = self.undo();
        let kernel = session.kernel_to_change(None)?;
        if let Some(id) = &self.id {
            return match ic_undo::entry_of_journal(&kernel, id)? {
                Some(entry) => undo.run(session, &entry),
                None => undo.of_rollback(id)?.run(session, |error| error),
            };
        }
        ic_undo::require_whole(&kernel)?;
        let run = match &self.run {
            Some(run) => Some(kernel.read(|snapshot| kernel.run(snapshot, run))?),
            None => kernel
                .read(|snapshot| ic_undo::points::run_here(&kernel, snapshot))
                .map_err(ic_undo::points::named_by_a_flag)?,
        };
        // A run that was not named stands for all runs of sessions in this work tree, if it is one of them.
        let whose = match &run {
            Some(run) if self.run.is_some() => RedoOwner::Run(run),
            run => RedoOwner::Here(run.as_ref()),
        };
        match ic_undo::newest(&kernel, whose)? {
            NewestUndo::Rollback(id) => {
                // Who names a run means that run, and no older undo of another one.
                let explain = |error| if self.run.is_some() { error } else { with_older(&kernel, &id, error) };
                undo.of_rollback(id.as_str())?.run(session, explain)
            }
            NewestUndo::Restore => undo.of_restore()?.undo(session, None),
        }
    }

    fn undo(&self) -> EntryUndo<'_> {
        EntryUndo {
            reason: self.reason.as_deref(),
            without_effects: Some(self.without_effects),
            plan: &self.plan,
            force: Force::all_if(self.force),
            keep_theirs: self.keep_theirs,
        }
    }
}

/// Adds to the refusal of the newest undo the older one that can be redone: the newest may be of another session.
fn with_older(kernel: &Kernel, refused: &RollbackId, error: Diagnosis) -> Diagnosis {
    let is_blocked = matches!(
        error.code(),
        Code::RunChanged
            | Code::NotUndoable
            | Code::FileConflict
            | Code::ForeignCommits
            | Code::EffectsUndone
            | Code::WorkRunning
    );
    // If the older one cannot be looked up, the refusal is returned without it.
    let Some(older) = is_blocked.then(|| ic_undo::older(kernel, refused).ok().flatten()).flatten() else {
        return error;
    };
    let way = format!("an older undo can be redone: ic redo {} --yes", older.short());
    let hint = error.get_hint().map_or_else(|| way.clone(), |hint| format!("{hint}; {way}"));
    error.hint(hint).detail("older_rollback_id", older.as_str())
}
