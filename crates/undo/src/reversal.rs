//! Changing the direction of a rollback: undoing one that is done, aborting one that stopped half way, and aborting such an undo.
//!
//! What was marked counts again, and tree and rows are as they were before. No dispatch and no agent is revived, and effects that were
//! undone are not made again: both are named. Refusals are found before the run is closed; the steps are executed by [`super::execute`].

use ic_base::{Code, Result, Seq};
use ic_effects::Compensation;
use ic_kernel::Kernel;
use ic_kernel::journal::steps::{self, Course, RollbackStepState, StepEvent, StepKind};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_kernel::journal::{Force, choices};
use ic_ledger::Snapshot;
use ic_ledger::events::{EventType, NewEvent};
use ic_phase::run;
use ic_worktree::{CaptureSettings, RestoreWatch};

use super::coverage::Covered;
use super::events::{event, event_back, step_event};
use super::execute::{Drive, Driven, Turned, is_outside, is_turned};
use super::layered_rollback::{require_undisturbed, take_unfinished};
use super::layers::{self, LayerWork, Site, end_of_undo, require_own};
use super::outcome::{Refusal, UndoneRollback};
use super::preview::{not_made_again, require_expected};
use super::reference::named;
use super::request::UndoRequest;
use super::undo_preconditions::{require_done, require_no_effects, require_quiet, settled, undone_effects};
use crate::compensation::{Saga, Sink};

/// Undoes a rollback that is done, if only reads and late reports happened in its run since and the tree is as the rollback left it.
/// Resumes an undo that was begun, or undoes the steps that an earlier undo skipped.
///
/// During this the run is closed, unless only the workflow layer is undone. Errors: `run_changed`, naming what happened since,
/// `file_conflict`, effects that ran, unless `without_effects`; `work_running`; `plan_changed`; `rollback_not_found`: nothing is changed.
pub fn undo(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &UndoRequest<'_>,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    // The first check is made without the lock: a call that is refused here writes nothing, not even that it owns the
    // run.
    let (remembered, _) = named(kernel, request.rollback)?;
    let (remembered, _) = kernel.read(|snapshot| undoable(snapshot, request, remembered.id.as_str()))?;
    require_expected(kernel, settings, request, &remembered, watch)?;
    let mut saga = Saga::take_for_rollback(kernel, settings, &remembered.run_id)?;
    saga.interrupted = watch.interrupted.clone();
    // The process that had the run before may have undone it already.
    let (remembered, until) = kernel.read(|snapshot| undoable(snapshot, request, remembered.id.as_str()))?;
    // Checked again, now that no other process can move the run.
    require_expected(kernel, settings, request, &remembered, watch)?;
    let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    // No settlement is named if an undo has begun already, or if only the steps are left that an earlier undo skipped.
    let Some(until) = until else {
        if remembered.status.is_over() {
            return make_skipped(&saga, &remembered, request.reason, watch);
        }
        // An undo that was aborted becomes an undo again, if that abort did not end.
        if steps::course(&all) == Course::Reapply {
            turn(&saga, &remembered, Course::Undo, None, |_| Ok(()))?;
        }
        return drive_back(&saga, &remembered, Course::Undo, None, watch);
    };
    let covered = Covered::begun(kernel, &remembered)?;
    // What is in the way in the tree is found while the run is still open, so that a refusal leaves the journal
    // unchanged.
    let settled = require_own(kernel, settings, &covered, Course::Undo, watch)?;
    let check = |snapshot: &Snapshot<'_>| require_quiet(snapshot, &remembered, until);
    // Nothing outside of the ledger can fail half-way, so the run need not be closed first.
    if !all.iter().any(is_outside) {
        return undo_record(&saga, &remembered, request.reason, check);
    }
    // This is the last moment at which an interruption leaves nothing behind: the next transaction closes the run.
    require_undisturbed(&saga)?;
    let turned = turn(&saga, &remembered, Course::Undo, request.reason, check)?;
    drive_back(&saga, &remembered, Course::Undo, Some(&turned), watch).map(|undone| undone.after(settled))
}

/// The rollback that is named, and the event that settled it, unless its undo has begun already.
///
/// Errors: what the ledger says against an undo.
pub(super) fn undoable(
    snapshot: &Snapshot<'_>,
    request: &UndoRequest<'_>,
    reference: &str,
) -> Result<(RollbackRecord, Option<Seq>)> {
    let (remembered, until, refused) = undoable_but_for(snapshot, request, reference)?;
    refused.into_iter().next().map_or(Ok((remembered, until)), |refusal| Err(refusal.error))
}

/// As [`undoable`], but returns the refusals of the ledger where the effect of an undo can be shown in spite of them.
pub(super) fn undoable_but_for(
    snapshot: &Snapshot<'_>,
    request: &UndoRequest<'_>,
    reference: &str,
) -> Result<(RollbackRecord, Option<Seq>, Vec<Refusal>)> {
    let remembered = table::resolve(snapshot, reference)?;
    if is_being_undone(snapshot, &remembered)? || has_rest(snapshot, &remembered)? {
        return Ok((remembered, None, Vec::new()));
    }
    require_done(&remembered)?;
    choices::run_status(&remembered)?;
    let until = settled(snapshot, &remembered)?.seq;
    let mut refused = Vec::new();
    let mut note = |outcome: Result<()>, code: Code, flag| match outcome {
        Err(error) if error.code() == code => {
            refused.push(Refusal { error, flag });
            Ok(())
        }
        outcome => outcome,
    };
    note(require_quiet(snapshot, &remembered, until), Code::RunChanged, None)?;
    if !request.without_effects {
        let effects = undone_effects(snapshot, &remembered, until)?;
        note(require_no_effects(&effects), Code::EffectsUndone, Some("--without-effects"))?;
    }
    Ok((remembered, Some(until), refused))
}

/// Whether a rollback that is done can be undone, as far as the ledger says, and with which flag: `true` if effects that it undid have to
/// stay undone (`--without-effects`). `None`: it cannot be undone, or nothing of it is left. The tree is not checked.
pub fn way_back(kernel: &Kernel, remembered: &RollbackRecord) -> Option<bool> {
    if remembered.status != RollbackStatus::Done {
        return None;
    }
    let id = remembered.id.as_str();
    let request = UndoRequest { rollback: id, without_effects: false, reason: None, expect_plan: None };
    let (.., refused) = kernel.read(|snapshot| undoable_but_for(snapshot, &request, id)).ok()?;
    // Other refusals have no flag that passes them.
    let is_of_effects = |refusal: &Refusal| refusal.error.code() == Code::EffectsUndone;
    refused.iter().all(is_of_effects).then_some(!refused.is_empty())
}

/// Aborts an unfinished rollback: what it had changed is restored, and the run is active where it was. Or aborts the undo of a rollback:
/// the rollback stands, and what the undo had restored is removed again.
///
/// Errors: `work_running` while another process works on it, `nothing_to_resume`, `file_conflict` when others changed
/// what it had changed: nothing is changed.
pub fn abort(
    kernel: &Kernel,
    settings: &CaptureSettings,
    (reference, reason): (&str, Option<&str>),
    sink: &mut dyn Sink,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    let (mut saga, remembered, all) = take_unfinished(kernel, settings, reference)?;
    saga.interrupted = watch.interrupted.clone();
    let mut settled = None;
    let turned = match steps::course(&all) {
        Course::Undo => {
            abort_undo(&saga, &remembered, reason)?;
            None
        }
        Course::Forward => {
            let covered = Covered::begun(kernel, &remembered)?;
            settled = require_own(kernel, settings, &covered, Course::Abort, watch)?;
            require_undisturbed(&saga)?;
            Some(turn(&saga, &remembered, Course::Abort, reason, |_| Ok(()))?)
        }
        // An earlier call turned it and stopped; this one only continues.
        Course::Reapply | Course::Abort => None,
    };
    // `all` is from before the turn, so its course is the one that was aborted.
    match steps::course(&all).aborted() {
        Course::Reapply => {
            let id = &remembered.id;
            let drive = Drive { saga: &saga, id, force: Force::default(), seen: None, turned: None, watch };
            let driven = drive.to_its_end(Some(sink))?;
            let is_done = driven.remembered.status == RollbackStatus::Done;
            let seq = is_done.then_some(driven.remembered.seq);
            Ok(UndoneRollback { seq, ..UndoneRollback::of(driven, Course::Reapply, Vec::new()) })
        }
        course => drive_back(&saga, &remembered, course, turned.as_ref(), watch).map(|undone| undone.after(settled)),
    }
}

impl UndoneRollback {
    pub(super) fn of(driven: Driven, course: Course, effects: Vec<Compensation>) -> Self {
        let Driven { remembered, steps, work } = driven;
        Self {
            remembered,
            steps,
            tree: work.tree,
            outside: work.outside,
            data: work.data,
            effects,
            seq: work.seq,
            course,
            is_rest: false,
            is_dry_run: false,
            plan_hash: None,
            refusals: Vec::new(),
        }
    }
}

/// Executes an undo or abort that was begun until it ends or stops.
fn drive_back(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    course: Course,
    turned: Option<&Turned>,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    // Asked now: after the end the journal no longer says which effects were covered.
    let effects = effects_undone(saga, remembered, course)?;
    let drive = Drive { saga, id: &remembered.id, force: Force::default(), seen: None, turned, watch };
    let driven = drive.to_its_end(None).map_err(|error| {
        let id = &remembered.id;
        // An undo that could not begin leaves the run open.
        match saga.kernel.read(|snapshot| table::get(snapshot, id)) {
            Ok(now) if now.status.is_over() => error,
            _ => error.hint(format!("the run stays closed; resume it: ic rollback resume {} --yes", id.short())),
        }
    })?;
    Ok(UndoneRollback::of(driven, course, effects))
}

fn effects_undone(saga: &Saga<'_>, remembered: &RollbackRecord, course: Course) -> Result<Vec<Compensation>> {
    saga.kernel.read(|snapshot| not_made_again(snapshot, remembered, layers::until(snapshot, remembered, course)?))
}

/// Records that a rollback changes its direction; returns its state before. The run is closed from now on.
///
/// Errors: those of `check`, which looks at the run in the same transaction: nothing is changed.
fn turn(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    course: Course,
    reason: Option<&str>,
    check: impl Fn(&Snapshot<'_>) -> Result<()>,
) -> Result<Turned> {
    let id = &remembered.id;
    let event_type = match course {
        Course::Undo => EventType::RollbackUndoBegun,
        _ => EventType::RollbackAbortBegun,
    };
    let before = saga.write(|tx, now| {
        // This is checked again under the write lock: the run is open until this commits, so it may have moved since
        // the check before.
        check(tx)?;
        // A status that the end needs must be readable before anything outside of the ledger is changed.
        choices::run_status(remembered)?;
        let begun = NewEvent { reason, ..event_back(tx, remembered, event_type, course)? };
        ic_ledger::events::append(tx, now, &begun)?;
        let before = steps::of_rollback(tx, id)?;
        //   any state ── turns back ──▶ done ── begins back ──▶ running ── is undone ──▶ pending
        for step in before.iter().filter(|step| is_turned(step, &before)) {
            steps::set(tx, now, id, step.ord, StepEvent::TurnsBack, None)?;
        }
        steps::set_course(tx, now, id, &before, course)?;
        table::set_status(tx, now, id, RollbackStatus::InProgress)?;
        // The epoch does not change here. The end raises it, once for the whole undo.
        run::close_for_rollback(tx, now, &remembered.run_id)?;
        Ok(before)
    })?;
    Ok(Turned { status: remembered.status, steps: before })
}

/// Records that the undo of a rollback is aborted: the steps that are left go forward again.
fn abort_undo(saga: &Saga<'_>, remembered: &RollbackRecord, reason: Option<&str>) -> Result<()> {
    let id = &remembered.id;
    saga.write(|tx, now| {
        let all = steps::of_rollback(tx, id)?;
        // A step that still is `done` was not reached by the undo, so the rollback holds in it.
        for step in all.iter().filter(|step| is_outside(step) && step.state != RollbackStepState::Done) {
            steps::set(tx, now, id, step.ord, StepEvent::IsToCome, None)?;
        }
        steps::set_course(tx, now, id, &all, Course::Reapply)?;
        table::set_status(tx, now, id, RollbackStatus::InProgress)?;
        let begun = NewEvent { reason, ..event(remembered, EventType::RollbackUndoAborted, StepKind::Settle) };
        ic_ledger::events::append(tx, now, &begun).map(|_| ())
    })
}

/// Undoes a rollback that changed nothing outside of the ledger, in one transaction. Errors: those of `check`.
fn undo_record(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    reason: Option<&str>,
    check: impl Fn(&Snapshot<'_>) -> Result<()>,
) -> Result<UndoneRollback> {
    let effects = effects_undone(saga, remembered, Course::Undo)?;
    let seq = saga.write(|tx, now| {
        check(tx)?;
        end_of_undo(tx, now, remembered, Course::Undo, reason)
    })?;
    let work = LayerWork { seq: Some(seq), ..LayerWork::default() };
    Ok(UndoneRollback::of(driven(saga, remembered, work)?, Course::Undo, effects))
}

/// Undoes the steps that were skipped when the rollback was undone. The run stays where it is.
///
/// Errors: those of a step; the steps before it are done, and the same call does the others.
fn make_skipped(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    reason: Option<&str>,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    let kernel = saga.kernel;
    // The run is not closed for this, so no other rollback of it may be unfinished.
    kernel.read(|snapshot| table::require_finished(snapshot, &remembered.run_id))?;
    let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    let course = steps::course(&all);
    let covered = Covered::begun(kernel, remembered)?;
    let mut work = LayerWork::default();
    for step in steps::not_put_back(remembered, &all).into_iter().rev() {
        let mut site = Site::of_owner(saga, &covered, course, watch);
        layers::of(step.kind).go(&mut site, step, &mut work)?;
        // The step is never `running` in between: it is `skipped` until it is undone, so after a failure or a crash the
        // same call finds it again.
        work.seq = Some(saga.write(|tx, now| {
            steps::set(tx, now, &remembered.id, step.ord, StepEvent::IsUndone, None)?;
            let event = step_event(tx, remembered, EventType::RollbackStepDone, step.kind, course)?;
            ic_ledger::events::append(tx, now, &NewEvent { reason, ..event })
        })?);
    }
    let undone = UndoneRollback::of(driven(saga, remembered, work)?, Course::Undo, Vec::new());
    Ok(UndoneRollback { is_rest: true, ..undone })
}

fn driven(saga: &Saga<'_>, remembered: &RollbackRecord, work: LayerWork) -> Result<Driven> {
    let id = &remembered.id;
    let (remembered, steps) =
        saga.kernel.read(|snapshot| Ok((table::get(snapshot, id)?, steps::of_rollback(snapshot, id)?)))?;
    Ok(Driven { remembered, steps, work })
}

fn is_being_undone(snapshot: &Snapshot<'_>, remembered: &RollbackRecord) -> Result<bool> {
    let course = steps::course(&steps::of_rollback(snapshot, &remembered.id)?);
    Ok(!remembered.status.is_over() && matches!(course, Course::Undo | Course::Reapply))
}

fn has_rest(snapshot: &Snapshot<'_>, remembered: &RollbackRecord) -> Result<bool> {
    let all = steps::of_rollback(snapshot, &remembered.id)?;
    Ok(!steps::not_put_back(remembered, &all).is_empty())
}
