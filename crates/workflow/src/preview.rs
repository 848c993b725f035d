//! What taking a workflow back would do.

use ic_base::{Code, Diagnosis, Result, RunId};
use ic_checkpoint::restore::Strategy;
use ic_ops::Kernel;
use ic_ops::checkpoint::{self, Settings};
use ic_ops::compensation::Saga;
use ic_ops::rollback::Effects;
use ic_saga::Compensation;
use sha2::{Digest, Sha256};

use crate::flow::workspace_here;
use crate::may::{aimed, may_roll_back, strategy_for};
use crate::options::{Overrides, check_strategy, options};
use crate::table::{self, StepRow};
use crate::take_back::{is_being_taken_back, look_at_tree, point_of, refuse_to_overwrite, undo_plan};

/// What [`crate::rollback`] would do now.
#[derive(Debug)]
pub struct Preview {
    /// The run.
    pub run_id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What is restored.
    pub strategy: Strategy,
    /// The effects, in the order in which they are undone.
    pub effects: Effects,
    /// What the restore does to the tree as it is now, before the effects are undone; `None`: no checkpoint was taken before the steps.
    pub tree: Option<checkpoint::Report>,
    /// Where the run is then.
    pub to_phase: String,
    /// The steps before which it is then; none: before the first one, or where it is.
    pub before_steps: Vec<String>,
    /// Names all of this: the same for the same effects in the same states and the same changes of the tree.
    pub plan_hash: String,
}

/// Says what [`crate::rollback`] would do now. Nothing is locked or changed.
///
/// Errors: those of `rollback`.
pub fn preview(
    kernel: &Kernel,
    settings: &Settings,
    reference: &str,
    overrides: &Overrides,
) -> Result<Preview> {
    look(kernel, settings, (reference, false), overrides)
}

/// Errors: `plan_changed` if the caller expects another plan than what there is to do now.
pub(crate) fn require_expected(
    kernel: &Kernel,
    settings: &Settings,
    run: &RunId,
    overrides: &Overrides,
) -> Result<()> {
    let Some(expected) = &overrides.expect_plan else { return Ok(()) };
    let found = look(kernel, settings, (run.as_str(), true), overrides)?.plan_hash;
    if *expected == found {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::PlanChanged,
        "The plan is not the expected one: the run or the tree has changed since it was made.",
    )
    .hint("look at the new plan: add --dry-run and leave out --expect-plan")
    .detail("expected", expected.as_str())
    .detail("plan_hash", found))
}

/// The preview. `is_ours`: the caller has the run; else it must be free.
fn look(
    kernel: &Kernel,
    settings: &Settings,
    (reference, is_ours): (&str, bool),
    overrides: &Overrides,
) -> Result<Preview> {
    let force = overrides.force;
    let (run, workflow, rows, plan, definition, point) = kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        let workflow = table::get(snapshot, &run.id)?;
        let definition = workflow.parsed()?;
        check_strategy(&definition, &options(&definition, overrides, Some(&workflow.options)))?;
        may_roll_back(snapshot, &run, &workflow, overrides)?;
        let workflow = aimed(&run, &workflow, overrides);
        let point = point_of(snapshot, &run, &workflow)?;
        let rows = table::steps(snapshot, &run.id, run.epoch)?;
        let plan = undo_plan(snapshot, &run, &workflow, strategy_for(&workflow, overrides), force)?;
        Ok((run, workflow, rows, plan, definition, point))
    })?;
    workspace_here(kernel, settings, &run)?;
    let strategy = strategy_for(&workflow, overrides);
    let rows: Vec<&StepRow> = rows.iter().collect();
    let is_free = if is_ours { Ok(()) } else { Saga::require_takeable(kernel, &run.id) };
    if !force && !is_being_taken_back(&run, &workflow) {
        // The real call looks for what others changed, takes the run, and then asks for all else: both are refused for the same reason.
        refuse_to_overwrite(kernel, settings, &workflow, (&rows, is_free.is_ok()), strategy)?;
    }
    is_free?;
    let tree = look_at_tree(kernel, settings, &workflow, &rows, (strategy, force))?;
    let is_whole = strategy != Strategy::Partial || workflow.failed_step.is_none();
    let first = match &point {
        Some(point) => Some(point.phase.clone()),
        None => definition.steps.first().map(|step| step.phase.clone()).filter(|_| is_whole),
    };
    let mut preview = Preview {
        run_id: run.id,
        workflow: workflow.name,
        strategy,
        effects: Effects {
            compensations: plan.undo().cloned().collect(),
            left: plan.left().cloned().collect(),
            pivot: plan.pivot,
        },
        tree,
        to_phase: first.unwrap_or(run.phase),
        before_steps: point.map(|point| point.steps).unwrap_or_default(),
        plan_hash: String::new(),
    };
    preview.plan_hash = hash_of(&preview);
    Ok(preview)
}

fn hash_of(preview: &Preview) -> String {
    let mut digest = Sha256::new();
    let Effects { compensations, left, .. } = &preview.effects;
    let effects = [compensations, left].map(|all| {
        let one = |one: &Compensation| (one.id.to_string(), one.state.as_str());
        all.iter().map(one).collect::<Vec<_>>()
    });
    let tree = preview.tree.as_ref().map(|report| &report.plan_hash);
    let place =
        (preview.run_id.as_str(), preview.strategy.as_str(), &preview.to_phase, &preview.before_steps);
    // Plain words and lists: they are written alike by every build.
    digest.update(format!("{place:?} {effects:?} {tree:?}"));
    ic_events::hex(&digest.finalize().into())
}
