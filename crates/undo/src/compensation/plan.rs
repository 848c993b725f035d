//! Which effects are undone, and in which order.

use ic_base::{Code, Diagnosis, Result, RunId};
use ic_effects::Compensation;
use ic_effects::compensation;
use ic_effects::order::{self, StartedStep};
use ic_ledger::Snapshot;
use ic_ledger::events::Cut;
use ic_phase::Run;

use crate::cut;

/// The part of a run's effects that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectScope {
    /// Every effect of the run that is not undone yet.
    All,
    /// Those of a step and of every step that depends on it.
    Dependents(String),
    /// Those that were begun after the run last left this phase.
    ToPhase(String),
    /// Those that a rollback with this cut covers.
    After(Cut),
}

/// What is undone, first undone first, and what stays.
#[derive(Debug, Clone)]
pub struct UndoPlan {
    /// All that may have a part in it, undone or not, in the order of beginning.
    pub(super) compensations: Vec<Compensation>,
    pub(super) started: Vec<StartedStep>,
    pub(super) order: Vec<usize>,
    held: Vec<usize>,
    /// The step beyond which nothing is undone.
    pub pivot: Option<String>,
}

impl UndoPlan {
    /// What is undone, first undone first.
    pub fn undo(&self) -> impl Iterator<Item = &Compensation> {
        self.order.iter().map(|at| &self.compensations[*at])
    }

    /// What stays because a step that cannot be undone came after it.
    pub fn left(&self) -> impl Iterator<Item = &Compensation> {
        self.held.iter().map(|at| &self.compensations[*at])
    }
}

/// Plans the undo of a run's effects. Errors: `unknown_phase`, `phase_ahead`, `compensation_not_found` for a step that has
/// none.
pub fn plan(snapshot: &Snapshot<'_>, run: &Run, scope: &EffectScope, force: bool) -> Result<UndoPlan> {
    plan_of(compensation::list(snapshot, &run.id)?, snapshot, run, scope, force)
}

/// As [`plan`], with the states of compensations that the caller supplies.
pub(super) fn plan_of(
    mut compensations: Vec<Compensation>,
    snapshot: &Snapshot<'_>,
    run: &Run,
    scope: &EffectScope,
    force: bool,
) -> Result<UndoPlan> {
    if let EffectScope::Dependents(step) = scope
        && !compensations.iter().any(|compensation| compensation.step == *step)
    {
        return Err(no_such_step(&run.id, step));
    }
    // A compensation that ended in an attempt that was rolled back blocks nothing in the next one, though its steps have the same names.
    compensations.retain(|compensation| compensation.state.is_open() || compensation.epoch == run.epoch);
    let started: Vec<StartedStep> = compensations.iter().map(Compensation::started).collect();
    let reach = match scope {
        EffectScope::Dependents(step) => order::OrderScope::Dependents(step.clone()),
        EffectScope::All | EffectScope::ToPhase(_) | EffectScope::After(_) => order::OrderScope::All,
    };
    let cut = match scope {
        EffectScope::ToPhase(phase) => Some(cut_of(snapshot, run, phase)?),
        EffectScope::After(cut) => Some(cut.clone()),
        EffectScope::All | EffectScope::Dependents(_) => None,
    };
    let is_meant = |at: &usize| {
        let compensation = &compensations[*at];
        compensation.state.is_open()
            && cut
                .as_ref()
                .is_none_or(|cut| cut.covers(compensation.seq, &compensation.phase, compensation.dispatch_id.as_ref()))
    };
    // Ordered before it is filtered: an effect that is undone already may connect two that are not.
    let order: Vec<usize> = order::undo_order(&started, &reach).into_iter().filter(is_meant).collect();
    let parted = order::cut_at_pivot(&started, &order, force);
    // A pivot that leaves no effect in place is not reported.
    let pivot = parted.pivot.filter(|_| !parted.left.is_empty()).map(|at| compensations[at].step.clone());
    Ok(UndoPlan { compensations, started, order: parted.undo, held: parted.left, pivot })
}

fn cut_of(snapshot: &Snapshot<'_>, run: &Run, phase: &str) -> Result<Cut> {
    let to = run.chain.require(phase)?;
    if to > run.chain.require(&run.phase)? {
        return Err(Diagnosis::new(Code::PhaseAhead, format!("{phase} lies ahead: the run is at {}.", run.phase)));
    }
    // A run that never left the phase did nothing after it.
    let seq = cut::find(snapshot, run, phase, false)?.unwrap_or(i64::MAX);
    Ok(Cut { run_id: run.id.clone(), seq, phases: run.chain.phases_after(phase, &run.phase), works: Vec::new() })
}

pub(super) fn no_such_step(run: &RunId, step: &str) -> Diagnosis {
    Diagnosis::new(Code::CompensationNotFound, format!("No step {step} of the run {} has a compensation.", run.short()))
        .hint(format!("see what there is: ic compensation list {}", run.short()))
        .detail("step", step)
}

pub(super) fn nothing_left_of(run: &RunId, step: &str) -> Diagnosis {
    Diagnosis::new(
        Code::CompensationNotFound,
        format!("The step {step} has no effect to undo here: it is undone or skipped already, or not part of this."),
    )
    .hint(format!("see how far each is: ic compensation list {}", run.short()))
    .detail("step", step)
}
