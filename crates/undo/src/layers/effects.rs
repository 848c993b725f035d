//! Effects outside of the project: undone in reverse on the way forward. An undo or abort cannot make them again.

use ic_base::{Code, Diagnosis, Result, Seq};
use ic_effects::compensation as effects;
use ic_effects::order::FailurePolicy;
use ic_effects::{Compensation, CompensationState};
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::{RollbackRecord, RollbackStep, steps};
use ic_ledger::Snapshot;

use super::layer::{LayerDriver, LayerWork, Site};
use super::tree::effects_bracket;
use crate::compensation::{self, EffectScope, Saga, UndoPlan};
use crate::coverage::Covered;
use crate::outcome::Effects;
use crate::undo_preconditions::undone_effects;

/// The layer of effects, undone by their compensations. It only goes forward.
pub(super) struct EffectsLayer;

impl LayerDriver for EffectsLayer {
    fn go(&self, site: &mut Site<'_, '_>, step: &RollbackStep, work: &mut LayerWork) -> Result<StepDetail> {
        if site.course.is_back() {
            return Ok(StepDetail::default());
        }
        let force = site.covered.force(site.force)?.past_pivot;
        let plan = site.kernel.read(|snapshot| undo_plan(snapshot, site.covered, force))?;
        if let (Some(saga), Some(remembered)) = (site.saga, site.covered.remembered()) {
            return undo(site, saga, &Doing { remembered, step, plan: &plan }, work);
        }
        work.effects = Some(planned(&plan));
        Ok(StepDetail::default())
    }
}

/// What undoing the effects would do now. `force`: pivots are passed.
pub(crate) fn plan(snapshot: &Snapshot<'_>, covered: &Covered, force: bool) -> Result<Effects> {
    undo_plan(snapshot, covered, force).map(|plan| planned(&plan))
}

fn undo_plan(snapshot: &Snapshot<'_>, covered: &Covered, force: bool) -> Result<UndoPlan> {
    compensation::plan(snapshot, &covered.run, &EffectScope::After(covered.cut.clone()), force)
}

fn planned(plan: &UndoPlan) -> Effects {
    Effects {
        compensations: plan.undo().cloned().collect(),
        left: plan.left().cloned().collect(),
        pivot: plan.pivot.clone(),
    }
}

struct Doing<'d> {
    remembered: &'d RollbackRecord,
    step: &'d RollbackStep,
    plan: &'d UndoPlan,
}

fn undo(site: &mut Site<'_, '_>, saga: &Saga<'_>, doing: &Doing<'_>, work: &mut LayerWork) -> Result<StepDetail> {
    let Doing { remembered, step, plan } = *doing;
    let sink = site
        .sink
        .as_deref_mut()
        .ok_or_else(|| Diagnosis::new(Code::Internal, "Effects are to be undone, and no caller is told of them."))?;
    // The tree is captured around the undo, because its programs may change any file of the project.
    let around = effects_bracket::keep_before_effects(saga, remembered, step, plan)?;
    let undoing = saga.undo(plan, FailurePolicy::Stop, Some(&remembered.id), sink)?;
    let (around, seen) = effects_bracket::keep_after_effects(saga, remembered, step, plan, around)?;
    // The restore that follows takes this capture as its safety checkpoint, so the tree is not read a second time.
    work.seen = seen;
    let failed = undoing.results.iter().find(|result| result.state == CompensationState::Failed).cloned();
    // This includes what earlier attempts did: the detail replaces that of the row, and must name all effects.
    let over = effects_over(saga, remembered, &undoing.results)?;
    let is_skipped = |one: &&Compensation| one.state == CompensationState::Skipped;
    let detail = StepDetail {
        // They are repeated, because the detail of a step that succeeds replaces the one that the captures recorded.
        goes: around.goes,
        compensations: over.iter().map(|c| (c.id.clone(), c.state.as_str().to_owned())).collect(),
        skipped: over.iter().filter(is_skipped).map(|c| c.step.clone()).collect(),
        ..StepDetail::default()
    };
    let left = saga
        .kernel
        .read(|snapshot| undoing.left.iter().map(|id| effects::get(snapshot, id)).collect::<Result<Vec<_>>>())?;
    work.effects = Some(Effects { compensations: undoing.results, left, pivot: plan.pivot.clone() });
    // After a failure the row keeps the detail of the captures, so the next attempt adds its own to these.
    match failed {
        Some(compensation) => Err(Diagnosis::new(
            Code::EffectFailed,
            steps::not_undone(&compensation.step, compensation.last_error.as_deref().unwrap_or("it failed")),
        )),
        None if !undoing.left.is_empty() => {
            Err(Diagnosis::new(Code::EffectFailed, format!("{} effects are not undone", undoing.left.len())))
        }
        None => Ok(detail),
    }
}

/// What became of the effects of a rollback: what this call tried, what earlier calls had undone, and what was left by decision.
fn effects_over(saga: &Saga<'_>, remembered: &RollbackRecord, results: &[Compensation]) -> Result<Vec<Compensation>> {
    saga.kernel.read(|snapshot| {
        let mut over = results.to_vec();
        let undone = undone_effects(snapshot, remembered, Seq::MAX)?;
        let left = effects::list(snapshot, &remembered.run_id)?.into_iter().filter(|one| {
            one.state == CompensationState::Skipped && one.rolled_back_by.as_ref() == Some(&remembered.id)
        });
        for one in undone.into_iter().filter(|one| one.state == CompensationState::Done).chain(left) {
            if over.iter().all(|known| known.id != one.id) {
                over.push(one);
            }
        }
        Ok(over)
    })
}
