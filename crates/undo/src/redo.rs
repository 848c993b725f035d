//! The newest rollback or restore that stands: what a person means by "redo".

use ic_base::{Code, Diagnosis, Result, RollbackId, RunId};
use ic_checkpoint::restore::journal;
use ic_phase::{Run, run};

use ic_kernel::Kernel;
use ic_kernel::journal::kept_checkpoints::{that_left_effects, that_restored};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_ledger::Snapshot;

use super::dispatch_changes;
use super::request::UndoRequest;
use super::reversal::undoable;

/// What is undone so that the last undone work comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewestUndo {
    /// A rollback of the run.
    Rollback(RollbackId),
    /// A restore of this working tree, which no rollback made.
    Restore,
}

/// The runs whose rollbacks are meant.
#[derive(Debug, Clone, Copy)]
pub enum RedoOwner<'r> {
    /// The rollbacks of this run.
    Run(&'r Run),
    /// Those of this run, which the caller did not name: where it was made for a session, those of all such runs of this working tree.
    Here(Option<&'r Run>),
}

/// The newest rollback, or restore of this working tree, that stands.
///
/// Errors: `rolling_back` while a rollback of the run is not finished; `nothing_to_undo` if none stands.
pub fn newest(kernel: &Kernel, whose: RedoOwner<'_>) -> Result<NewestUndo> {
    kernel.read(|snapshot| {
        let (RedoOwner::Run(run) | RedoOwner::Here(Some(run))) = whose else {
            return newest_of(kernel, snapshot, None);
        };
        table::require_finished(snapshot, &run.id)?;
        let is_of_session = (kernel.above.is_of_session)(snapshot, &run.id)?;
        // In an agent's own shell, only its own session is meant.
        let is_any = is_of_session && matches!(whose, RedoOwner::Here(_)) && kernel.own_run.is_none();
        let rollback = if is_any {
            of_sessions(kernel, snapshot)?
        } else {
            let all = table::of_run(snapshot, &run.id)?;
            all.into_iter().rev().find(|one| one.status == RollbackStatus::Done)
        };
        let own = rollback.as_ref().map(|own| own.id.clone());
        // The tree belongs to all runs: a newer restore in it may be part of the rollback of another one.
        let newest = newest_of(kernel, snapshot, rollback)?;
        match (&newest, whose) {
            (NewestUndo::Rollback(found), RedoOwner::Run(run)) if own.as_ref() != Some(found) => {
                of_another(snapshot, run, found, own)
            }
            _ => Ok(newest),
        }
    })
}

/// A caller that names a run means its own undos, also where another run was undone in the same tree since.
fn of_another(snapshot: &Snapshot<'_>, run: &Run, found: &RollbackId, own: Option<RollbackId>) -> Result<NewestUndo> {
    if let Some(own) = own {
        return Ok(NewestUndo::Rollback(own));
    }
    let other = table::get(snapshot, found)?.run_id;
    let message = format!("The run {} has no undo that could be redone.", run.id.short());
    let hint =
        format!("the newest undo here is of the run {}: ic redo --run {} --dry-run", other.short(), other.short());
    Err(Diagnosis::new(Code::NothingToUndo, message).hint(hint).detail("run_id", run.id.as_str()))
}

/// The newest rollback that stands of a run that was made for a session in this working tree.
fn of_sessions(kernel: &Kernel, snapshot: &Snapshot<'_>) -> Result<Option<RollbackRecord>> {
    first_of_sessions(kernel, snapshot, |_| Ok(true))
}

/// The newest of those that satisfies `is_meant`.
fn first_of_sessions(
    kernel: &Kernel,
    snapshot: &Snapshot<'_>,
    is_meant: impl Fn(&RollbackRecord) -> Result<bool>,
) -> Result<Option<RollbackRecord>> {
    // No person undoes more often than this without looking.
    const MOST: i64 = 100;
    for one in table::done(snapshot, MOST)? {
        let run = run::get(snapshot, &one.run_id)?;
        let is_here = ic_ledger::project_root(&run.project_dir) == kernel.project.root;
        if is_here && (kernel.above.is_of_session)(snapshot, &run.id)? && is_meant(&one)? {
            return Ok(Some(one));
        }
    }
    Ok(None)
}

/// The newest rollback of a session's run, older than one that is refused, that the ledger would let be undone.
pub fn older(kernel: &Kernel, refused: &RollbackId) -> Result<Option<RollbackId>> {
    kernel.read(|snapshot| {
        let refused = table::get(snapshot, refused)?;
        let found = first_of_sessions(kernel, snapshot, |one| {
            // In an agent's own shell, only its own session is meant.
            let is_own = kernel.own_run.as_ref().is_none_or(|own| *own == one.run_id);
            let request =
                UndoRequest { rollback: one.id.as_str(), without_effects: false, reason: None, expect_plan: None };
            Ok(one.seq < refused.seq && is_own && undoable(snapshot, &request, one.id.as_str()).is_ok())
        })?;
        Ok(found.map(|one| one.id))
    })
}

/// The newer one of a rollback and the newest restore of this working tree.
fn newest_of(kernel: &Kernel, snapshot: &Snapshot<'_>, rollback: Option<RollbackRecord>) -> Result<NewestUndo> {
    let restores = journal::finished(snapshot, &kernel.project.root)?;
    let again = dispatch_changes::made_again(snapshot, &kernel.project.root, &table::all(snapshot)?)?;
    let mut restore = None;
    let mut is_covered = false;
    // This finds the newest restore that stands, by itself or with its rollback. What a redo restored is not an undo, and
    // what an ended rollback restored is gone.
    for one in journal::stacks(&restores).0.into_iter().rev() {
        // A restore by which a redo merged work back is no undo; and what an undo restored stands no longer once the work came back.
        let ended = [that_restored(snapshot, &one.target_id, false)?, that_left_effects(snapshot, &one.target_id)?];
        let mut is_redo = false;
        for ended in ended.iter().flatten() {
            is_redo |= dispatch_changes::reverts(snapshot, ended)?.iter().any(|during| during.contains(&one.seq));
        }
        let is_redo = is_redo || again.iter().any(|(look, during)| *look == one.target_id && during.contains(&one.seq));
        if !is_redo && that_restored(snapshot, &one.safety_id, false)?.is_none() {
            restore = Some(one);
            break;
        }
        is_covered = true;
    }
    let by = match restore {
        Some(restore) => that_restored(snapshot, &restore.safety_id, true)?,
        None => None,
    };
    // Only the last restore can be undone by itself: where work came back since, the last restore is that of the redo.
    restore = restore.filter(|_| !is_covered || by.is_some());
    // A redo in an agent's own shell restores nothing that was undone elsewhere.
    let is_elsewhere = |own: &RunId| by.as_ref().is_some_and(|by| by.run_id != *own);
    if kernel.own_run.as_ref().is_some_and(is_elsewhere) {
        return rollback.map(|rollback| NewestUndo::Rollback(rollback.id)).ok_or_else(nothing);
    }
    // `rollback` is of the runs that are meant, `restore` is the newest of this root, and `by` the rollback that made
    // that one. The newer of the two sides is meant.
    match (rollback, restore, by) {
        // The newest restore is part of a rollback: the rollback is undone as a whole, whatever its run.
        (Some(rollback), Some(_), Some(by)) if by.seq > rollback.seq => Ok(NewestUndo::Rollback(by.id)),
        (None, Some(_), Some(by)) => Ok(NewestUndo::Rollback(by.id)),
        (Some(rollback), Some(restore), None) if restore.seq < rollback.seq => Ok(NewestUndo::Rollback(rollback.id)),
        (_, Some(_), None) => Ok(NewestUndo::Restore),
        (Some(rollback), ..) => Ok(NewestUndo::Rollback(rollback.id)),
        // An interrupted restore is finished first, and then undone like any other.
        (None, None, _) if journal::unfinished(snapshot, &kernel.project.root)?.is_some() => Ok(NewestUndo::Restore),
        (None, None, _) => Err(nothing()),
    }
}

fn nothing() -> Diagnosis {
    Diagnosis::new(Code::NothingToUndo, "There is no rollback or restore to undo here.")
        .hint("see what there was: ic rollback list; ic checkpoint list")
}
