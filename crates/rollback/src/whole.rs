//! One rollback over several layers: planned without a lock, fenced in one transaction, carried out step by step with a journal,
//! settled in one transaction.
//!
//! Locking: the run's owner lock and token ([`Saga`]) from the fence to the end; every write of the journal checks the token. A
//! step that was begun and not finished is begun again: effects that are undone are not open any more, a restore
//! settles the one before it and then finds nothing to do.

use ic_base::{Code, Diagnosis, Result, RollbackId};
use ic_dispatch::cancel_by_phases;
use ic_events::{EventType, NewEvent};
use ic_journal::Force;
use ic_journal::choices::{self, Choices};
use ic_journal::layer::{self, Layer};
use ic_journal::steps::{self, Happening, Step, StepKind, StepState};
use ic_journal::table::{self, Remembered, RollbackStatus};
use ic_kernel::Kernel;
use ic_phase::run;
use ic_saga::Compensation;
use ic_saga::owner::OwnerLock;
use ic_worktree::{Report, Settings, Watch};
use serde_json::json;

use super::apply::{Request, Rollback};
use super::carry::{carry_on, cut_of, event};
use super::data::Data;
use super::leaving::LeavingCommit;
use super::lift;
use super::own::OwnCommit;
use super::preflight::{has_tree, hash, plan, plan_effects, refusals};
use super::reference::unfinished;
use super::undo::go_back;
use crate::compensation::{self, Saga, Sink};

/// What is to be taken back, and how.
#[derive(Debug, Clone)]
pub struct WholeRequest<'a> {
    /// The run, the phase, and what the caller expects.
    pub base: Request<'a>,
    /// Which layers.
    pub layers: &'a [Layer],
    /// Which refusals the caller has decided to pass.
    pub force: Force,
    /// Conflicts stay as they are.
    pub keep_theirs: bool,
    /// Only files that this run recorded.
    pub mine: bool,
    /// What another run that was at work here meanwhile may have changed is asked for too, though nobody recorded whose it is.
    pub beside_runs: bool,
}

/// The effects that are undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// In the order of undoing.
    pub compensations: Vec<Compensation>,
    /// Those that are not undone.
    pub left: Vec<Compensation>,
    /// The step that cannot be undone, and because of which some are left.
    pub pivot: Option<String>,
}

/// What the layers outside of the ledger do, or did.
#[derive(Debug, Default)]
pub struct Parts {
    /// Outside effects.
    pub effects: Option<Effects>,
    /// Files and git's state.
    pub tree: Option<Report>,
    /// Commits that leave their branches, newest first; `None` if git's state stays.
    pub commits: Option<Vec<LeavingCommit>>,
    /// The commits of the dispatch that alone is undone, which stay on their branches, newest first; `None` of any other rollback.
    pub own_commits: Option<Vec<OwnCommit>>,
    /// Rows of the application's tables.
    pub data: Option<Data>,
}

/// How far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeStatus {
    /// It was a dry run.
    Planned,
    /// Everything is taken back.
    RolledBack,
    /// A step failed; the rest waits.
    RollingBack,
}

/// A rollback over several layers.
#[derive(Debug)]
pub struct Whole {
    /// The workflow layer's plan, the hash of the whole, and its id once it is begun.
    pub rollback: Rollback,
    /// The layers.
    pub layers: Vec<Layer>,
    /// What is planned outside of the ledger.
    pub parts: Parts,
    /// How far it came.
    pub status: WholeStatus,
    /// Its steps; empty for a dry run.
    pub steps: Vec<Step>,
    /// What the real call would answer instead of rolling back, with the same flags, and then, one after another, with each flag that decides
    /// the one before; only of a dry run.
    pub refusals: Vec<Refusal>,
}

/// Why the real call would be refused.
#[derive(Debug)]
pub struct Refusal {
    /// What it would answer.
    pub error: Diagnosis,
    /// The flag that decides it; `None`: nobody can.
    pub flag: Option<&'static str>,
}

/// How far a rollback that was begun came.
#[derive(Debug)]
pub struct Outcome {
    /// The rollback.
    pub remembered: Remembered,
    /// Its steps.
    pub steps: Vec<Step>,
    /// What this call took back; nothing on the way back, of which the steps tell.
    pub parts: Parts,
}

/// Takes a run back over several layers, or says what that would do.
///
/// A refusal comes before anything is changed: `file_conflict`, `pivot`, `no_checkpoint`, `work_running`, `git_in_progress`, ..., and
/// those of [`super::rollback`]. What fails later is in the steps: the run stays closed, and [`resume`] goes on.
pub fn roll_back(
    kernel: &Kernel,
    settings: &Settings,
    request: &WholeRequest<'_>,
    sink: &mut dyn Sink,
    watch: &Watch,
) -> Result<Whole> {
    let layers = layer::checked(request.layers)?;
    let mut planned = plan(kernel, settings, request, &layers, watch)?;
    if request.base.dry_run {
        return Ok(planned);
    }
    // Asked once for both: a preview must not end otherwise than the deed.
    if let Some(refusal) = planned.refusals.drain(..).next() {
        return Err(refusal.error);
    }
    let mut saga = Saga::take_for_rollback(kernel, settings, &planned.rollback.plan.run.id)?;
    saga.interrupted = watch.interrupted.clone();
    require_undisturbed(&saga)?;
    let id: RollbackId = kernel.context.new_id();
    let begun = fence(&saga, &id, planned, request)?;
    kernel.accept_late();
    let seen = request.base.expect_plan.map(|_| &begun.parts);
    let outcome = carry_on(&saga, &id, (request.force, seen), sink, watch).map_err(|error| {
        error.hint(format!("the run stays closed; go on: ic rollback resume {} --yes", id.short()))
    })?;
    let is_done = outcome.remembered.status == RollbackStatus::Done;
    Ok(Whole {
        rollback: Rollback { done: Some((id, outcome.remembered.seq)), ..begun.rollback },
        layers: begun.layers,
        // What did not come to the tree still says what is to leave.
        parts: Parts {
            commits: outcome.parts.commits.or(begun.parts.commits),
            own_commits: begun.parts.own_commits,
            ..outcome.parts
        },
        status: if is_done { WholeStatus::RolledBack } else { WholeStatus::RollingBack },
        steps: outcome.steps,
        refusals: Vec::new(),
    })
}

/// What is to be gone on with, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResumeRequest<'a> {
    /// The rollback, or its run.
    pub rollback: &'a str,
    /// The step that failed is passed over.
    pub skip_step: bool,
    /// The effects of these steps stay as they are.
    pub skip_effects: &'a [String],
    /// Why they are left.
    pub reason: Option<&'a str>,
    /// Which refusals the caller has decided to pass, beside those decided when it was begun.
    pub force: Force,
}

/// Goes on with a rollback that stopped, or whose process died: the way that it went last, forward or back.
///
/// Errors: `work_running` while another process works on it, `nothing_to_resume`, `conflict` when no step has failed that could be skipped,
/// `compensation_not_found` for an effect that is not open.
pub fn resume(
    kernel: &Kernel,
    settings: &Settings,
    request: &ResumeRequest<'_>,
    sink: &mut dyn Sink,
    watch: &Watch,
) -> Result<Outcome> {
    let (mut saga, remembered, all) = take_unfinished(kernel, settings, request.rollback)?;
    saga.interrupted = watch.interrupted.clone();
    if request.skip_step {
        skip_step(&saga, &remembered, request.reason)?;
    }
    if !request.skip_effects.is_empty() {
        let (cut, reason) = (cut_of(&remembered)?, request.reason.unwrap_or_default());
        compensation::leave(&saga, request.skip_effects, reason, Some((&cut, &remembered.id)))?;
    }
    let course = steps::course(&all);
    if course.is_back() {
        let undone = go_back(&saga, remembered, (course, request.force), watch)?;
        let (remembered, steps) = (undone.remembered, undone.steps);
        return Ok(Outcome { remembered, steps, parts: Parts::default() });
    }
    // What is decided now stays decided: another refusal may come after it, and its command need not repeat this one.
    let decided = Choices::of(&remembered)?.with(request.force);
    if Some(&decided) != Choices::of(&remembered).ok().as_ref() {
        saga.write(|tx, _| table::decide(tx, &remembered, json!(decided)))?;
    }
    carry_on(&saga, &remembered.id, (request.force, None), sink, watch)
}

/// Records that the step which failed is left as it is. Errors: `conflict` if none did.
fn skip_step(saga: &Saga<'_>, remembered: &Remembered, reason: Option<&str>) -> Result<()> {
    saga.write(|tx, now| {
        // What was not tried yet is not passed over, and neither is the end.
        let was_tried = |step: &Step| {
            step.kind != StepKind::Settle && matches!(step.state, StepState::Failed | StepState::Running)
        };
        let Some(step) = steps::of_rollback(tx, &remembered.id)?.into_iter().find(was_tried) else {
            return Err(Diagnosis::new(
                Code::Conflict,
                "No step of it has failed, so none can be passed over.",
            )
            .hint(format!("see: ic rollback show {}", remembered.id.short())));
        };
        let skipped = NewEvent { reason, ..event(remembered, EventType::RollbackStepSkipped, step.kind) };
        ic_events::append(tx, now, &skipped)?;
        steps::set(tx, now, &remembered.id, step.ord, Happening::IsSkipped, None)
    })
}

/// Errors: `interrupted` if somebody interrupts before the run is closed.
pub(super) fn require_undisturbed(saga: &Saga<'_>) -> Result<()> {
    if !saga.is_interrupted() {
        return Ok(());
    }
    Err(Diagnosis::new(Code::Interrupted, "It was interrupted before it began. Nothing was changed.")
        .hint("call again"))
}

/// Takes over the run of an unfinished rollback, and ends what a dead process left running in it. What the reference names is looked
/// up again once the run is ours: whoever had it before may have finished the rollback.
pub(super) fn take_unfinished<'k>(
    kernel: &'k Kernel,
    settings: &'k Settings,
    reference: &str,
) -> Result<(Saga<'k>, Remembered, Vec<Step>)> {
    let remembered = kernel.read(|snapshot| unfinished(kernel, snapshot, reference))?;
    kernel.accept_late_of(&remembered.id)?;
    let saga = Saga::take_for_rollback(kernel, settings, &remembered.run_id)?;
    saga.end_attempts()?;
    let (remembered, steps) = kernel.read(|snapshot| {
        let remembered = unfinished(kernel, snapshot, remembered.id.as_str())?;
        let steps = steps::of_rollback(snapshot, &remembered.id)?;
        Ok((remembered, steps))
    })?;
    Ok((saga, remembered, steps))
}

/// Whether a living process is at work on a rollback that is not finished: then nobody else goes on with it.
pub fn is_at_work(kernel: &Kernel, remembered: &Remembered) -> bool {
    let store = kernel.store();
    !remembered.status.is_over() && OwnerLock::require_free(store, &remembered.run_id).is_err()
}

/// Closes the run and writes the journal, in one transaction, and returns what then is to be done.
///
/// A rollback never loses to an advance: what the run recorded while the tree was looked at is taken back too. Errors: `plan_changed`
/// if the caller insists on a plan, or if the run was rolled back meanwhile; `pivot` as before.
fn fence(saga: &Saga<'_>, id: &RollbackId, planned: Whole, request: &WholeRequest<'_>) -> Result<Whole> {
    let Whole { rollback: before, layers, mut parts, status, steps, .. } = planned;
    let (rollback, effects) = saga.write(|tx, now| {
        let again = super::apply::planned(saga.kernel, tx, &Request { expect_plan: None, ..request.base })?;
        let effects = match parts.effects {
            Some(_) => Some(plan_effects(tx, &again.plan, request.force.past_pivot)?),
            None => None,
        };
        let is_same = again.plan == before.plan && effects == parts.effects;
        if again.plan.cut.seq != before.plan.cut.seq || (request.base.expect_plan.is_some() && !is_same) {
            return Err(Diagnosis::new(Code::PlanChanged, "The run changed while its rollback was planned. Nothing was changed.")
                .hint("look at the new plan: --dry-run"));
        }
        let fresh = Parts { effects, ..Parts::default() };
        if let Some(refusal) = refusals(&fresh, request).into_iter().next() {
            return Err(refusal.error);
        }
        let plan = &again.plan;
        let begun = NewEvent {
            subject_id: Some(id.as_str()),
            from: Some(&plan.run.phase),
            to: Some(&plan.to_phase),
            reason: again.reason.as_deref(),
            payload: Some(json!({ "layers": layers.iter().map(|l| l.as_str()).collect::<Vec<_>>(), "cut_seq": plan.cut.seq })),
            ..NewEvent::of(&plan.run.id, plan.next_epoch(), EventType::RollbackBegun)
        };
        let seq = ic_events::append(tx, now, &begun)?;
        let plan_hash = hash(&again, (&layers, request.force), fresh.effects.as_ref(), &parts);
        let whole = Rollback { plan_hash, ..again.clone() };
        let mut remembered = plan.to_json();
        let strategy = parts.tree.as_ref().map(|tree| tree.strategy);
        let state = parts.data.as_ref().and(saga.settings.state.as_ref());
        let choices = Choices::new(request.force, request.keep_theirs, request.mine, strategy, state);
        remembered[choices::KEY] = json!(choices);
        table::insert(tx, now, &whole.row(id, seq, &layers, &remembered))?;
        steps::insert(tx, now, id, &kinds(&layers))?;
        match plan.cut.only {
            // The others go on where they are once it is done: their epoch is still theirs.
            Some(_) => run::close_for_rollback(tx, now, &plan.run.id)?,
            None => run::fence(tx, now, &plan.run.id)?,
        }
        lift::off(tx, now, &plan.reinstated)?;
        let marked = (id, again.reason.as_deref());
        cancel_by_phases(tx, now, &plan.cancelled_dispatches, marked)?;
        cancel_by_phases(tx, now, &plan.marked_dispatches, marked)?;
        Ok((whole, fresh.effects))
    })?;
    parts.effects = effects;
    Ok(Whole { rollback, layers, parts, status, steps, refusals: Vec::new() })
}

fn kinds(layers: &[Layer]) -> Vec<StepKind> {
    let mut kinds = Vec::new();
    if layers.contains(&Layer::Effects) {
        kinds.push(StepKind::Effects);
    }
    if has_tree(layers) {
        kinds.push(StepKind::Tree);
    }
    if layers.contains(&Layer::Data) {
        kinds.push(StepKind::Data);
    }
    kinds.push(StepKind::Settle);
    kinds
}
