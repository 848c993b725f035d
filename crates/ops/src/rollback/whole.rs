//! One rollback over several layers: planned without a lock, fenced in one transaction, carried out step by step with a journal,
//! settled in one transaction.
//!
//! Locking: the run's owner lock and token ([`Saga`]) from the fence to the end; every write of the journal checks the token. A
//! step that was begun and not finished is begun again: effects that are undone are not open any more, a restore
//! settles the one before it and then finds nothing to do.

use ic_base::{Code, CompensationId, Diagnosis, Result, RollbackId};
use ic_dispatch::cancel_by_phases;
use ic_events::{EventType, NewEvent};
use ic_phase::run;
use ic_saga::Compensation;
use ic_store::Snapshot;
use serde_json::json;

use super::apply::{Request, Rollback};
use super::carry::{carry_on, event};
use super::data::Data;
use super::layer::{self, Layer};
use super::preflight::{has_tree, hash, plan, plan_effects, refuse_conflicts};
use super::steps::{self, Step, StepKind, StepState};
use super::table::{self, Remembered, RollbackStatus};
use crate::Kernel;
use crate::checkpoint::{Report, Settings, Watch};
use crate::compensation::{Saga, Sink};

/// What is to be taken back, and how.
#[derive(Debug, Clone)]
pub struct WholeRequest<'a> {
    /// The run, the phase, and what the caller expects.
    pub base: Request<'a>,
    /// Which layers.
    pub layers: &'a [Layer],
    /// Conflicts get the checkpoint's state, and pivots hold nothing.
    pub force: bool,
    /// Conflicts stay as they are.
    pub keep_theirs: bool,
    /// Only files that this run recorded.
    pub mine: bool,
}

/// The effects that are undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// In the order of undoing.
    pub compensations: Vec<Compensation>,
    /// Those that are not undone.
    pub left: Vec<CompensationId>,
}

/// What the layers outside of the ledger do, or did.
#[derive(Debug, Default)]
pub struct Parts {
    /// Outside effects.
    pub effects: Option<Effects>,
    /// Files and git's state.
    pub tree: Option<Report>,
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
}

/// How far a rollback that was begun came.
#[derive(Debug)]
pub struct Outcome {
    /// The rollback.
    pub remembered: Remembered,
    /// Its steps.
    pub steps: Vec<Step>,
    /// What was done in this call.
    pub parts: Parts,
}

/// Takes a run back over several layers, or says what that would do.
///
/// A refusal comes before anything is changed: `conflict`, `no_checkpoint`, `work_running`, `git_in_progress`, ..., and
/// those of [`super::rollback`]. What fails later is in the steps: the run stays closed, and [`resume`] goes on.
pub fn roll_back(
    kernel: &Kernel,
    settings: &Settings,
    request: &WholeRequest<'_>,
    sink: &mut dyn Sink,
    watch: &Watch,
) -> Result<Whole> {
    let layers = layer::checked(request.layers)?;
    let planned = plan(kernel, settings, request, &layers, watch)?;
    if request.base.dry_run {
        return Ok(planned);
    }
    refuse_conflicts(&planned.parts, request)?;
    let saga = Saga::take_for_rollback(kernel, settings, &planned.rollback.plan.run.id)?;
    let id: RollbackId = kernel.context.new_id();
    let begun = fence(&saga, &id, planned, request)?;
    kernel.accepts_late.set(true);
    let outcome = carry_on(&saga, &id, request.force, sink, watch).map_err(|error| {
        error.hint(format!("the run stays closed; go on: ic rollback resume {} --yes", id.short()))
    })?;
    let is_done = outcome.remembered.status == RollbackStatus::Done;
    Ok(Whole {
        rollback: Rollback { done: Some((id, outcome.remembered.seq)), ..begun.rollback },
        layers: begun.layers,
        parts: outcome.parts,
        status: if is_done { WholeStatus::RolledBack } else { WholeStatus::RollingBack },
        steps: outcome.steps,
    })
}

/// Goes on with a rollback that stopped, or whose process died. `skip_step`: what failed is passed over.
///
/// Errors: `work_running` while another process works on it, `conflict` when there is nothing to resume.
pub fn resume(
    kernel: &Kernel,
    settings: &Settings,
    reference: &str,
    (skip_step, force): (bool, bool),
    sink: &mut dyn Sink,
    watch: &Watch,
) -> Result<Outcome> {
    let (saga, remembered) = take_unfinished(kernel, settings, reference)?;
    if skip_step {
        saga.write(|tx, now| {
            let open = steps::of_rollback(tx, &remembered.id)?.into_iter().find(|step| !step.state.is_over());
            // What was not tried yet is not passed over, and neither is the end.
            let was_tried = |step: &Step| matches!(step.state, StepState::Failed | StepState::Running);
            let Some(step) = open.filter(|step| step.kind != StepKind::Settle && was_tried(step)) else {
                return Err(Diagnosis::new(
                    Code::Conflict,
                    "No step of it has failed, so none can be passed over.",
                )
                .hint(format!("see: ic rollback show {}", remembered.id.short())));
            };
            let event = event(&remembered, EventType::RollbackStepSkipped, step.kind);
            ic_events::append(tx, now, &event)?;
            steps::set(tx, now, &remembered.id, step.ord, StepState::Skipped, (None, step.error.as_deref()))
        })?;
    }
    carry_on(&saga, &remembered.id, force, sink, watch)
}

/// Takes over the run of an unfinished rollback. What the reference names is looked up again once the run is ours: whoever had
/// it before may have finished the rollback.
pub(super) fn take_unfinished<'k>(
    kernel: &'k Kernel,
    settings: &'k Settings,
    reference: &str,
) -> Result<(Saga<'k>, Remembered)> {
    let remembered = kernel.read(|snapshot| unfinished(kernel, snapshot, reference))?;
    let saga = Saga::take_for_rollback(kernel, settings, &remembered.run_id)?;
    let remembered = kernel.read(|snapshot| unfinished(kernel, snapshot, remembered.id.as_str()))?;
    Ok((saga, remembered))
}

/// The rollback that is named, by its own id or by its run's. Errors: `conflict` if nothing of it is left to do.
fn unfinished(kernel: &Kernel, snapshot: &Snapshot<'_>, reference: &str) -> Result<Remembered> {
    let is_open = |r: &Remembered| matches!(r.status, RollbackStatus::InProgress | RollbackStatus::Stopped);
    let named = match table::resolve(snapshot, reference) {
        Ok(remembered) => Some(remembered),
        Err(error) if error.code() == Code::AmbiguousId => return Err(error),
        Err(error) => {
            let Ok(run) = kernel.run(snapshot, reference) else { return Err(error) };
            table::of_run(snapshot, &run.id)?.into_iter().rev().find(is_open)
        }
    };
    named.filter(is_open).ok_or_else(|| {
        Diagnosis::new(Code::Conflict, "No rollback of it is unfinished.").hint(
            "see: ic rollback list; what a workflow began, it finishes: ic workflow resume RUN; compensations: ic compensation run RUN",
        )
    })
}

/// Closes the run and writes the journal, in one transaction, and returns what then is to be done.
///
/// A rollback never loses to an advance: what the run recorded while the tree was looked at is taken back too. Errors: `plan_changed`
/// if the caller insists on a plan, or if the run was rolled back meanwhile; `conflict` as before.
fn fence(saga: &Saga<'_>, id: &RollbackId, planned: Whole, request: &WholeRequest<'_>) -> Result<Whole> {
    let Whole { rollback: before, layers, mut parts, status, steps } = planned;
    let (rollback, effects) = saga.write(|tx, now| {
        let again = super::apply::planned(saga.kernel, tx, &Request { expect_plan: None, ..request.base })?;
        let effects = match parts.effects {
            Some(_) => Some(plan_effects(tx, &again.plan, request.force)?),
            None => None,
        };
        let is_same = again.plan == before.plan && effects == parts.effects;
        if again.plan.cut.seq != before.plan.cut.seq || (request.base.expect_plan.is_some() && !is_same) {
            return Err(Diagnosis::new(Code::PlanChanged, "The run changed while its rollback was planned. Nothing was changed.")
                .hint("look at the new plan: --dry-run"));
        }
        let fresh = Parts { effects, ..Parts::default() };
        refuse_conflicts(&fresh, request)?;
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
        let plan_hash = hash(&again, &layers, fresh.effects.as_ref(), &parts);
        let whole = Rollback { plan_hash, ..again.clone() };
        let mut remembered = plan.to_json();
        remembered["choices"] = json!({
            "force": request.force,
            "keep_theirs": request.keep_theirs,
            "mine": request.mine,
            "strategy": parts.tree.as_ref().map(|tree| tree.strategy.as_str()),
        });
        table::insert(tx, now, &whole, (id, seq), (RollbackStatus::InProgress, &layers), &remembered)?;
        steps::insert(tx, now, id, &kinds(&layers))?;
        run::fence(tx, now, &plan.run.id)?;
        cancel_by_phases(tx, now, &plan.cancelled_dispatches, id)?;
        cancel_by_phases(tx, now, &plan.marked_dispatches, id)?;
        Ok((whole, fresh.effects))
    })?;
    parts.effects = effects;
    Ok(Whole { rollback, layers, parts, status, steps })
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
