//! One rollback over several layers: planned without a lock, fenced in one transaction, carried out step by step with a journal,
//! settled in one transaction.
//!
//! Locking: the run's owner lock and token ([`Saga`]) from the fence to the end; every write of the journal checks the token. A
//! step that was begun and not finished is begun again: effects that are undone are not open any more, a restore
//! settles the one before it and then finds nothing to do.

use ic_base::{Code, Diagnosis, Result, RollbackId};
use ic_kernel::Kernel;
use ic_kernel::journal::choices::{self, Choices};
use ic_kernel::journal::steps::{self, RollbackStep, RollbackStepState, StepEvent, StepKind};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_kernel::owner::OwnerLock;
use ic_ledger::Snapshot;
use ic_ledger::events::{EventType, NewEvent};
use ic_phase::run;
use ic_worktree::{CaptureSettings, RestoreWatch, root_of};
use serde_json::json;

use super::coverage::{Covered, cut_of};
use super::events::event;
use super::execute::{Drive, Driven};
use super::git_remains;
use super::later_restores;
use super::layers;
use super::outcome::{LayeredRollback, LayeredStatus, Parts, RollbackOutput, RollbackSummary};
use super::plan::RollbackPlan;
use super::preflight::{hash, plan};
use super::reference::unfinished;
use super::refusals::refusals;
use super::request::{LayeredRequest, ResumeRequest};
use super::rollback_marks;
use super::straddling_work;
use super::thread_undo::{self, Decided};
use crate::compensation::{self, Saga, Sink};

impl From<Driven> for RollbackOutput {
    fn from(driven: Driven) -> Self {
        let is_back = steps::course(&driven.steps).is_back();
        let parts = if is_back { Parts::default() } else { driven.work.into() };
        Self { remembered: driven.remembered, steps: driven.steps, parts }
    }
}

/// Errors: `not_on_server` where only the record can be rolled back.
pub fn require_whole(kernel: &Kernel) -> Result<()> {
    kernel
        .ledger
        .require_one_host("A rollback of more than the record")
        .map_err(|error| error.hint("the record alone can be rolled back, by ic run rollback: docs/FLEET.md"))
}

/// Takes a run back over several layers, or says what that would do.
///
/// A refusal comes before anything is changed: `file_conflict`, `pivot`, `no_checkpoint`, `work_running`, `git_in_progress`, ..., and those
/// of [`super::rollback`]. A later failure is recorded in the steps: the run stays closed, and [`resume`] continues.
pub fn roll_back(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &LayeredRequest<'_>,
    sink: &mut dyn Sink,
    watch: &RestoreWatch,
) -> Result<LayeredRollback> {
    require_whole(kernel)?;
    // The undo of a prompt leaves open whether a run goes back or works are undone. From here on the target is one of
    // the two.
    let Decided { request, planned } = thread_undo::decide(kernel, settings, request, watch)?;
    let request = &request;
    let layers = request.layers.of(request.base.to, settings)?;
    let mut planned = match planned {
        Some(planned) => planned,
        None => plan(kernel, settings, request, &layers, watch)?,
    };
    if request.base.dry_run {
        return Ok(planned);
    }
    // Refusals are looked for once for both: a preview must not end otherwise than the rollback itself.
    if let Some(refusal) = planned.refusals.drain(..).next() {
        return Err(refusal.error);
    }
    // The run is taken after the plan, which looked at a tree. What the run recorded until now is planned again in
    // `fence`.
    let mut saga = Saga::take_for_rollback(kernel, settings, &planned.rollback.plan.run.id)?;
    saga.interrupted = watch.interrupted.clone();
    // This is the last moment at which an interruption leaves nothing behind: the next transaction closes the run.
    require_undisturbed(&saga)?;
    // The owner's lock is held to the end. Each step takes the locks below it in the order of `ic_checkpoint::lock`:
    // the database, or the root and the store. Each write takes the ledger's.
    let id: RollbackId = kernel.context.new_id();
    let begun = fence(&saga, &id, planned, request)?;
    // From here on the calling dispatch may itself be marked as rolled back, and must still finish this.
    kernel.accept_late();
    // Only a caller that insists on a plan is held to what it saw: otherwise a rollback never loses to an advance.
    // An exact undo of works is, too: what others do until it is done is theirs.
    let is_held = request.base.expect_plan.is_some() || begun.rollback.plan.is_exact;
    let seen = is_held.then_some(&begun.parts);
    let drive = Drive { saga: &saga, id: &id, force: request.force, seen, turned: None, watch };
    let outcome = drive.to_its_end(Some(sink)).map(RollbackOutput::from).map_err(|error| {
        error.hint(format!("the run stays closed; resume it: ic rollback resume {} --yes", id.short()))
    })?;
    let is_done = outcome.remembered.status == RollbackStatus::Done;
    let status = match is_done {
        true if steps::is_in_part(&outcome.remembered, &outcome.steps) => LayeredStatus::RolledBackInPart,
        true => LayeredStatus::RolledBack,
        false => LayeredStatus::RollingBack,
    };
    // Where the repository cannot be asked, the warnings of the plan are repeated: the rollback is done, and must not fail for them.
    let git_remains = if is_done {
        let found = git_remains::remaining(kernel, settings, &begun.rollback.plan, &outcome.parts, true);
        found.unwrap_or(begun.git_remains)
    } else {
        begun.git_remains
    };
    Ok(LayeredRollback {
        rollback: RollbackSummary { done: Some((id, outcome.remembered.seq)), ..begun.rollback },
        layers: begun.layers,
        // A rollback that stopped before the tree still names the commits that are to leave.
        parts: Parts {
            commits: outcome.parts.commits.or(begun.parts.commits),
            own_commits: begun.parts.own_commits,
            ..outcome.parts
        },
        status,
        steps: outcome.steps,
        refusals: Vec::new(),
        rows_stay: begun.rows_stay,
        git_stays: begun.git_stays,
        work_stays: begun.work_stays,
        git_remains,
    })
}

/// Resumes a rollback that stopped, or whose process died, in the direction in which it last went.
///
/// Errors: `work_running` while another process works on it, `nothing_to_resume`, `nothing_to_skip` when no step has failed that could be skipped,
/// `compensation_not_found` for an effect that is not open.
pub fn resume(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &ResumeRequest<'_>,
    sink: &mut dyn Sink,
    watch: &RestoreWatch,
) -> Result<RollbackOutput> {
    let (mut saga, remembered, all) = take_unfinished(kernel, settings, request.rollback)?;
    saga.interrupted = watch.interrupted.clone();
    if request.skip_step {
        skip_step(&saga, &remembered, request.reason)?;
    }
    if !request.skip_effects.is_empty() {
        let (cut, reason) = (cut_of(&remembered)?, request.reason.unwrap_or_default());
        compensation::leave(&saga, request.skip_effects, reason, Some((&cut, &remembered.id)))?;
    }
    if !steps::course(&all).is_back() {
        // A decision is kept with the journal: another refusal may come after it, and its command need not repeat this one.
        let decided = Choices::of(&remembered)?.with(request.force);
        if decided != Choices::of(&remembered)? {
            saga.write(|tx, _| table::decide(tx, &remembered, json!(decided)))?;
        }
    }
    let drive = Drive { saga: &saga, id: &remembered.id, force: request.force, seen: None, turned: None, watch };
    drive.to_its_end(Some(sink)).map(RollbackOutput::from)
}

/// Records that the step which failed is skipped. Errors: `nothing_to_skip` if none did.
fn skip_step(saga: &Saga<'_>, remembered: &RollbackRecord, reason: Option<&str>) -> Result<()> {
    let all = saga.kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    let skipped = to_skip(&all, remembered)?;
    // What an undo or abort is to revert was recorded on the way forward.
    let is_tree = skipped.kind == StepKind::Tree && !steps::course(&all).is_back();
    let of_tree = is_tree.then(|| layers::detail_of_skipped(saga.kernel, saga.settings, remembered, skipped));
    let detail = of_tree.transpose()?.flatten();
    saga.write(|tx, now| {
        let all = steps::of_rollback(tx, &remembered.id)?;
        let step = to_skip(&all, remembered)?;
        let skipped = NewEvent { reason, ..event(remembered, EventType::RollbackStepSkipped, step.kind) };
        ic_ledger::events::append(tx, now, &skipped)?;
        steps::set(tx, now, &remembered.id, step.ord, StepEvent::IsSkipped, detail.as_ref())
    })
}

/// The step that is skipped. Errors: `nothing_to_skip` if none failed.
pub(super) fn to_skip<'s>(all: &'s [RollbackStep], remembered: &RollbackRecord) -> Result<&'s RollbackStep> {
    // A step that was never tried cannot be skipped, and neither can the last one.
    let was_tried = |step: &&RollbackStep| {
        step.kind != StepKind::Settle && matches!(step.state, RollbackStepState::Failed | RollbackStepState::Running)
    };
    all.iter().find(was_tried).ok_or_else(|| {
        Diagnosis::new(Code::NothingToSkip, "It has no failed step to skip.")
            .hint(format!("see: ic rollback show {}", remembered.id.short()))
    })
}

/// Errors: `interrupted` if the user interrupts before the run is closed.
pub(super) fn require_undisturbed(saga: &Saga<'_>) -> Result<()> {
    if !saga.is_interrupted() {
        return Ok(());
    }
    Err(Diagnosis::new(Code::Interrupted, "It was interrupted before it began. Nothing was changed.")
        .hint("call again"))
}

/// Takes over the run of an unfinished rollback, and ends what a dead process left running in it. The reference is resolved again once the
/// run is taken: the process that had it before may have finished the rollback.
pub(super) fn take_unfinished<'k>(
    kernel: &'k Kernel,
    settings: &'k CaptureSettings,
    reference: &str,
) -> Result<(Saga<'k>, RollbackRecord, Vec<RollbackStep>)> {
    let remembered = kernel.read(|snapshot| unfinished(kernel, snapshot, reference))?;
    // The caller may be work that this rollback marked. It may still finish the rollback that it began.
    kernel.accept_late_of(&remembered.id)?;
    let saga = Saga::take_for_rollback(kernel, settings, &remembered.run_id)?;
    // Before the journal is read: what a dead process left running could still change effects.
    saga.end_attempts()?;
    let (remembered, steps) = kernel.read(|snapshot| {
        // It is looked up by its own id: the reference may be a run, which has another unfinished rollback by now.
        let remembered = unfinished(kernel, snapshot, remembered.id.as_str())?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, steps))
    })?;
    Ok((saga, remembered, steps))
}

/// Whether a living process executes a rollback that is not finished: then no other process may resume it.
pub fn is_at_work(kernel: &Kernel, remembered: &RollbackRecord) -> bool {
    let store = kernel.store();
    !remembered.status.is_over() && OwnerLock::require_free(store, &remembered.run_id).is_err()
}

/// Whether another call rolled the run back since a plan was made, or restored something that an exact one would revert.
fn is_overtaken(snapshot: &Snapshot<'_>, before: &RollbackPlan, now: &RollbackPlan) -> Result<bool> {
    let root = root_of(&now.run.project_dir);
    // The cut of a phase is the last move across it. Only a run that went back since can cross the phase again; an
    // advance from where it was does not move the cut.
    let is_moved = now.cut.seq != before.cut.seq;
    Ok(is_moved || now.is_exact && later_restores::is_any_of_others(snapshot, &root, now.cut.seq)?)
}

/// Closes the run and writes the journal, in one transaction, and returns what is to be done after that.
///
/// A rollback never loses to an advance: what the run recorded while the tree was captured is rolled back too. Errors: `plan_changed` if
/// the caller insists on a plan, or if the run was rolled back by another call since; `pivot` as before.
fn fence(
    saga: &Saga<'_>,
    id: &RollbackId,
    planned: LayeredRollback,
    request: &LayeredRequest<'_>,
) -> Result<LayeredRollback> {
    let LayeredRollback { rollback: before, layers, mut parts, .. } = planned;
    let (rollback, effects) = saga.write(|tx, now| {
        // One commit has the event, the row with its steps, the closed run and the marks. A reader sees all of them
        // or none.
        // Planned again under the write lock: the run may have recorded more while the tree was captured.
        let again = super::apply::planned_by_cut(saga.kernel, tx, &request.base)?;
        // What the tree loses is known from the look. Which work it belongs to is asked again: more may be recorded
        // by now.
        let again = straddling_work::add(tx, again, parts.lost.as_ref())?;
        let again = RollbackSummary::planned(again, request.base.reason);
        let effects = match parts.effects {
            Some(_) => {
                let covered = Covered::planned(&again.plan, &layers, request, saga.settings);
                Some(layers::plan_effects(tx, &covered, request.force.past_pivot)?)
            }
            None => None,
        };
        let is_same = again.plan == before.plan && effects == parts.effects;
        if is_overtaken(tx, &before.plan, &again.plan)? || (request.base.expect_plan.is_some() && !is_same) {
            return Err(Diagnosis::new(
                Code::PlanChanged,
                "The run changed while its rollback was planned. Nothing was changed.",
            )
            .hint("look at the new plan: --dry-run"));
        }
        // Only effects can be refused here: files, git and rows are not asked about under the write lock, which other processes wait for.
        let fresh = Parts { effects, ..Parts::default() };
        if let Some(refusal) = refusals(&fresh, request, again.plan.point_of_one()).into_iter().next() {
            return Err(refusal.error);
        }
        let plan = &again.plan;
        let begun = NewEvent {
            subject_id: Some(id.as_str()),
            from: Some(&plan.run.phase),
            to: Some(&plan.to_phase),
            reason: again.reason.as_deref(),
            payload: Some(
                json!({ "layers": layers.iter().map(|l| l.as_str()).collect::<Vec<_>>(), "cut_seq": plan.cut.seq }),
            ),
            ..NewEvent::of(&plan.run.id, plan.next_epoch(), EventType::RollbackBegun)
        };
        // This event comes before everything else in this transaction: what the rollback itself records has a higher
        // number than its own place.
        let seq = ic_ledger::events::append(tx, now, &begun)?;
        // The plan is hashed again: the row keeps the one that is carried out, which may cover more than the one that
        // was shown.
        let plan_hash = hash(&again, &layers, request.force, fresh.effects.as_ref(), &parts);
        let whole = RollbackSummary { plan_hash, ..again.clone() };
        let mut remembered = plan.to_json();
        let strategy = parts.tree.as_ref().map(|tree| tree.strategy);
        let state = parts.data.as_ref().and(saga.settings.state.as_ref());
        // A call that resumes after a crash does not repeat the flags, so the decisions are kept with the plan.
        let choices = Choices::new(request.force, request.keep_theirs, request.mine, strategy, state);
        let beside = parts.tree.as_ref().map(|tree| tree.beside.clone()).unwrap_or_default();
        let choices = choices.with_paths(&request.decisions).with_beside(beside);
        remembered[choices::KEY] = json!(choices);
        // The row and its steps are committed before anything outside of the ledger changes, so that a crash leaves a rollback to resume.
        table::insert(tx, now, &whole.row(id, seq, &layers, &remembered))?;
        steps::insert(tx, now, id, &layers::kinds(&layers))?;
        if plan.cut.is_of_works() {
            // The other dispatches of the run continue where they are once it is done, so their epoch must not change.
            run::close_for_rollback(tx, now, &plan.run.id)?;
        } else {
            run::fence(tx, now, &plan.run.id)?;
        }
        // The place to which the run goes lies before these undos: the work that they undid stands there.
        rollback_marks::off(tx, now, &plan.reinstated)?;
        let reason = again.reason.as_deref();
        // The work is marked now and not at the end: from this commit on each report of it is late, while its files
        // still go back.
        rollback_marks::call_off(tx, now, plan, id, reason)?;
        Ok((whole, fresh.effects))
    })?;
    parts.effects = effects;
    let refusals = Vec::new();
    Ok(LayeredRollback { rollback, layers, parts, refusals, ..planned })
}
