//! What an undo or abort of a rollback would do: nothing is changed or locked, and the run stays where it is.

use ic_base::{Code, Diagnosis, Result, Seq};
use ic_effects::Compensation;
use ic_kernel::Kernel;
use ic_kernel::journal::steps::{self, Course, RollbackStep, RollbackStepState, StepKind};
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_kernel::journal::{Force, choices};
use ic_ledger::Snapshot;
use ic_worktree::{CaptureSettings, Conflict, RestoreWatch};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::coverage::{Covered, cut_of};
use super::execute::{Driven, is_outside};
use super::layered_rollback::to_skip;
use super::layers::{self, LayerWork, Site};
use super::outcome::{Refusal, Resuming, UndoneRollback};
use super::outside_change::OutsideChange;
use super::reference::unfinished;
use super::refusals::refused_effects;
use super::request::{ResumeRequest, UndoRequest};
use super::reversal::undoable_but_for;
use super::undo_preconditions::{settled, undone_effects};
use crate::compensation::{self, Saga};

/// What [`super::undo`] would do now, and what would refuse it where a plan can be made in spite of that.
///
/// Errors: those of `undo` that leave no plan, `plan_changed` among them. A restore of the tree that was interrupted counts as finished,
/// because `undo` finishes it first.
pub fn preview_undo(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &UndoRequest<'_>,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    let (named, _) = super::reference::named(kernel, request.rollback)?;
    let (remembered, ..) = kernel.read(|snapshot| undoable_but_for(snapshot, request, named.id.as_str()))?;
    Saga::require_free(kernel, &remembered.run_id)?;
    let mut planned = planned(kernel, settings, request, &remembered, watch)?;
    require_hash(request, &planned)?;
    // A plan that is refused has no hash: a caller must not approve it.
    planned.plan_hash = planned.plan_hash.filter(|_| planned.refusals.is_empty());
    Ok(planned)
}

/// Errors: `plan_changed` if the caller insists on another plan than this undo of a rollback has now, and those of [`preview_undo`].
pub(super) fn require_expected(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &UndoRequest<'_>,
    named: &RollbackRecord,
    watch: &RestoreWatch,
) -> Result<()> {
    if request.expect_plan.is_none() {
        return Ok(());
    }
    let mut planned = planned(kernel, settings, request, named, watch)?;
    if !planned.refusals.is_empty() {
        return Err(planned.refusals.swap_remove(0).error);
    }
    require_hash(request, &planned)
}

fn require_hash(request: &UndoRequest<'_>, planned: &UndoneRollback) -> Result<()> {
    match (request.expect_plan, &planned.plan_hash) {
        (Some(expected), Some(hash)) if expected != hash => Err(Diagnosis::new(
            Code::PlanChanged,
            "The plan is not the expected one: something changed since it was made, or it was made with other flags.",
        )
        .hint("look at the new plan: add --dry-run and leave out --expect-plan")
        .detail("expected", expected)
        .detail("undo_plan_hash", hash.as_str())),
        _ => Ok(()),
    }
}

/// What an undo of this rollback would do, and what refuses it. Takes no lock: a process may have the run.
fn planned(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &UndoRequest<'_>,
    named: &RollbackRecord,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    let (remembered, until, mut refusals, steps) = kernel.read(|snapshot| {
        let (remembered, until, refusals) = undoable_but_for(snapshot, request, named.id.as_str())?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, until, refusals, steps))
    })?;
    let is_rest = remembered.status.is_over() && until.is_none();
    // A step that was skipped is undone too, except by an undo that has begun.
    let begins = until.is_some() || steps::course(&steps) == Course::Reapply;
    let is_left = |step: &RollbackStep| match step.state {
        RollbackStepState::Pending => false,
        RollbackStepState::Skipped => is_rest || begins,
        RollbackStepState::Running | RollbackStepState::Done | RollbackStepState::Failed => !is_rest,
    };
    let effects = kernel.read(|snapshot| {
        if is_rest {
            return table::require_finished(snapshot, &remembered.run_id).map(|()| Vec::new());
        }
        not_made_again(snapshot, &remembered, settled(snapshot, &remembered)?.seq)
    })?;
    let left: Vec<&RollbackStep> = steps.iter().filter(|step| is_outside(step) && is_left(step)).collect();
    // A rollback that was aborted was never settled; a step that was skipped then is undone in the direction of its journal.
    let course = if steps::course(&steps) == Course::Abort { Course::Abort } else { Course::Undo };
    let (work, refused) = looked_at(kernel, settings, &remembered, (course, &left), Force::default(), watch)?;
    refusals.extend(refused);
    let looked = Driven { remembered, steps, work };
    // For the caller it is an undo, also of a step that an abort had skipped.
    let undone = UndoneRollback::of(looked, Course::Undo, effects);
    let undone = UndoneRollback { is_rest, is_dry_run: true, refusals, ..undone };
    Ok(UndoneRollback { plan_hash: Some(hash(&undone, request.without_effects)), ..undone })
}

/// The effects that stay undone. An effect that is a file comes back with the tree.
pub(super) fn not_made_again(
    snapshot: &Snapshot<'_>,
    remembered: &RollbackRecord,
    until: Seq,
) -> Result<Vec<Compensation>> {
    let mut effects = undone_effects(snapshot, remembered, until)?;
    effects.retain(|effect| !effect.goes_with_tree());
    Ok(effects)
}

/// The SHA-256 of what an undo does, in hex: the same for a dry run and the real call while nothing that it touches changes.
fn hash(undone: &UndoneRollback, without_effects: bool) -> String {
    // The hash covers the states of the steps: once a part of it is undone, the rest is another plan.
    let steps: Vec<_> =
        undone.steps.iter().map(|step| json!([step.ord, step.kind.as_str(), step.state.as_str()])).collect();
    let tree: Vec<&str> = undone.tree.iter().map(|report| report.plan_hash.as_str()).collect();
    let data = undone.data.as_ref().map(|data| json!([data.database.to_string_lossy(), data.rows]));
    let effects: Vec<&str> = undone.effects.iter().map(|one| one.id.as_str()).collect();
    let outside: Vec<_> = undone.outside.iter().map(OutsideChange::named).collect();
    let whole = json!({
        "rollback": undone.remembered.id.as_str(), "status": undone.remembered.status.as_str(), "rest": undone.is_rest,
        "steps": steps, "tree": tree, "data": data, "effects": effects, "without_effects": without_effects,
        "outside": outside,
    });
    ic_ledger::events::hex(&Sha256::digest(whole.to_string().as_bytes()).into())
}

/// What [`super::abort`] would do now: restore what an unfinished rollback removed, or make a rollback again whose undo is not finished.
///
/// Errors: those of `abort` that leave no plan, and what would stop it in the middle. A restore of the tree that was interrupted counts as
/// finished, because `abort` finishes it first.
pub fn preview_abort(
    kernel: &Kernel,
    settings: &CaptureSettings,
    reference: &str,
    watch: &RestoreWatch,
) -> Result<UndoneRollback> {
    let (remembered, steps) = kernel.read(|snapshot| {
        let remembered = unfinished(kernel, snapshot, reference)?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, steps))
    })?;
    kernel.accept_late_of(&remembered.id)?;
    Saga::require_free(kernel, &remembered.run_id)?;
    let now = steps::course(&steps);
    // The steps count as `turn` and `abort_undo` will set them, because a preview must not write.
    let is_left = |step: &RollbackStep| match now {
        // A step that was skipped on the way forward is decided anew by the abort.
        Course::Forward => steps::may_have_changed(step, &steps),
        Course::Abort => !matches!(step.state, RollbackStepState::Pending | RollbackStepState::Skipped),
        Course::Undo => step.state != RollbackStepState::Done,
        Course::Reapply => !step.state.is_over(),
    };
    let left: Vec<&RollbackStep> = steps.iter().filter(|step| is_outside(step) && is_left(step)).collect();
    let course = now.aborted();
    let effects = if course.is_back() {
        choices::run_status(&remembered)?;
        kernel.read(|snapshot| not_made_again(snapshot, &remembered, Seq::MAX))?
    } else {
        Vec::new()
    };
    let (work, refusals) = looked_at(kernel, settings, &remembered, (course, &left), Force::default(), watch)?;
    let looked = Driven { remembered, steps, work };
    Ok(UndoneRollback { is_dry_run: true, refusals, ..UndoneRollback::of(looked, course, effects) })
}

/// What [`super::resume`] would still do now, and what would stop it again. The real call stops there; the preview continues past it.
///
/// Errors: those of `resume` that change nothing.
pub fn preview_resume(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &ResumeRequest<'_>,
    watch: &RestoreWatch,
) -> Result<Resuming> {
    let (remembered, steps) = kernel.read(|snapshot| {
        let remembered = unfinished(kernel, snapshot, request.rollback)?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, steps))
    })?;
    kernel.accept_late_of(&remembered.id)?;
    Saga::require_free(kernel, &remembered.run_id)?;
    let course = steps::course(&steps);
    let is_left = |step: &&RollbackStep| match step.state {
        // The settlement changes the record alone, and nothing of it can be refused.
        _ if step.kind == StepKind::Settle => false,
        RollbackStepState::Pending => !course.is_back(),
        RollbackStepState::Skipped => false,
        RollbackStepState::Done => course.is_back() && is_outside(step),
        RollbackStepState::Running | RollbackStepState::Failed => !course.is_back() || is_outside(step),
    };
    let mut left: Vec<&RollbackStep> = steps.iter().filter(is_left).collect();
    if request.skip_step {
        let skipped = to_skip(&steps, &remembered)?;
        left.retain(|step| step.ord != skipped.ord);
    }
    if !request.skip_effects.is_empty() {
        let cut = cut_of(&remembered)?;
        kernel
            .read(|snapshot| compensation::require_left_in(snapshot, &remembered.run_id, request.skip_effects, &cut))?;
    }
    let looked = looked_at(kernel, settings, &remembered, (course, &left), request.force, watch);
    // The real call would begin anyway, and stop there.
    let (mut work, mut refusals) =
        looked.unwrap_or_else(|error| (LayerWork::default(), vec![Refusal { error, flag: None }]));
    if let Some(effects) = &mut work.effects {
        for list in [&mut effects.compensations, &mut effects.left] {
            list.retain(|one| !request.skip_effects.contains(&one.step));
        }
    }
    if !course.is_back() {
        refusals.extend(would_stop(kernel, &remembered, request, &work)?);
    }
    let (effects, tree, data) = (work.effects, work.tree, work.data);
    let commits = work.commits.unwrap_or_default();
    Ok(Resuming { remembered, steps, effects, tree, commits, data, refusals })
}

/// The refusals of a plan that a preview does not meet as errors, and that would stop the real call.
fn would_stop(
    kernel: &Kernel,
    remembered: &RollbackRecord,
    request: &ResumeRequest<'_>,
    work: &LayerWork,
) -> Result<Vec<Refusal>> {
    let covered = Covered::begun(kernel, remembered)?;
    let (force, choices) = (covered.force(request.force)?, covered.choices()?);
    let left = work.effects.as_ref().filter(|effects| !effects.left.is_empty() && !force.past_pivot);
    let is_open = |one: &&Conflict| !force.files && choices.about(&one.path.0).is_none();
    let open = work.tree.iter().map(|tree| tree.conflicts.iter().filter(is_open).collect::<Vec<_>>());
    let files = open
        .filter(|open| !open.is_empty())
        .map(|open| Refusal { error: ic_worktree::refused(&open), flag: Some("--force-files") });
    Ok(left.map(refused_effects).into_iter().chain(files).collect())
}

/// What these steps would do in this direction, and what refuses it in the tree or in rows. `decided`: the refusals that the caller passes.
fn looked_at(
    kernel: &Kernel,
    settings: &CaptureSettings,
    remembered: &RollbackRecord,
    (course, left): (Course, &[&RollbackStep]),
    decided: Force,
    watch: &RestoreWatch,
) -> Result<(LayerWork, Vec<Refusal>)> {
    let covered = Covered::begun(kernel, remembered)?;
    let (mut work, mut refused) = (LayerWork::default(), Vec::new());
    // An undo or abort restores rows before the tree; the preview has the same order.
    let mut left = left.to_vec();
    if course.is_back() {
        left.reverse();
    }
    for step in left {
        let mut force = decided;
        let seen = work.tree.len();
        loop {
            let mut site = Site { force, ..Site::to_look(kernel, settings, &covered, course, watch) };
            let Err(error) = layers::of(step.kind).go(&mut site, step, &mut work) else { break };
            // A preview passes what the real call would not: it shows both the plan and the refusal. One flag is enough for all files,
            // because whose they are is one question.
            let passed = Force::of_tree(error.code()).map(|by| Force { files: true, ..by.or(force) });
            let Some(passed) = passed.filter(|passed| *passed != force) else { return Err(error) };
            force = passed;
            // The step is looked at again, and must not be reported twice.
            work.tree.truncate(seen);
            // No flag decides a refusal of an undo or abort.
            let flag = Force::of_tree(error.code()).filter(|_| !course.is_back());
            refused.push(Refusal { error, flag: flag.and_then(|by| by.flags().first().copied()) });
        }
    }
    Ok((work, refused))
}
