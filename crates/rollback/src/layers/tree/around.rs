//! The tree around the undoing of effects, whose programs may change any of it: what they did is taken back with the tree.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Result};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::lock::Mode;
use ic_checkpoint::record::{Kind, Link};
use ic_checkpoint::restore::journal::Restore;
use ic_journal::kept::goes_of;
use ic_journal::steps::{self, Happening, Step, StepKind};
use ic_journal::table::RollbackRecord;
use ic_kernel::Kernel;
use ic_saga::Action;
use ic_worktree::shot::Purpose;
use ic_worktree::{TreeChanges, Workspace, changes_between};
use serde_json::{Value, json};

use crate::compensation::{Saga, UndoPlan};
use crate::layers::layer::has_tree;

/// Captures the tree before effects are undone, whose scripts may change any of it, and records that with the step; returns what is known
/// of the tree around them. Nothing is captured where no effect is left, or the rollback means nothing of the tree.
pub(crate) fn keep_before_effects(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    step: &Step,
    plan: &UndoPlan,
) -> Result<Value> {
    // Others may work on beside the undo of one dispatch: what differs then around its effects need not be theirs.
    if plan.undo().next().is_none() || !has_tree(&remembered.layers) || remembered.only().is_some() {
        return Ok(step.detail.clone());
    }
    let keep = |id: &str| {
        let mut goes = goes_of(step);
        goes.push((id.to_owned(), None));
        goes
    };
    keep_tree(saga, remembered, step, ("before", files_of_effects(plan)), keep)
}

/// Captures the tree after effects were undone, if it was captured before; returns what is known of it.
pub(crate) fn keep_after_effects(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    step: &Step,
    plan: &UndoPlan,
    known: Value,
) -> Result<Value> {
    let step = Step { detail: known, ..step.clone() };
    if !goes_of(&step).last().is_some_and(|(_, after)| after.is_none()) {
        return Ok(step.detail);
    }
    let keep = |id: &str| {
        let mut goes = goes_of(&step);
        if let Some((_, after)) = goes.last_mut() {
            *after = Some(id.to_owned());
        }
        goes
    };
    keep_tree(saga, remembered, &step, ("after", files_of_effects(plan)), keep)
}

/// The checkpoints of the tree around each go at the effects of a rollback, as [`goes_of`].
pub(crate) fn done_by_effects(
    kernel: &Kernel,
    remembered: &RollbackRecord,
) -> Result<Vec<(CheckpointId, Option<CheckpointId>)>> {
    let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    let goes = all.iter().find(|step| step.kind == StepKind::Effects).map(goes_of).unwrap_or_default();
    let id = CheckpointId::from_ledger;
    Ok(goes.into_iter().map(|(before, after)| (id(before), after.map(id))).collect())
}

/// The files that undoing puts back by itself: they are captured whatever the rules hide.
fn files_of_effects(plan: &UndoPlan) -> BTreeSet<Vec<u8>> {
    let files = plan.undo().filter_map(|compensation| match &compensation.action {
        Action::RestoreFiles { files } => Some(files),
        _ => None,
    });
    files.flatten().map(|file| file.path.0.clone()).collect()
}

fn keep_tree(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    step: &Step,
    (when, force): (&str, BTreeSet<Vec<u8>>),
    keep: impl Fn(&str) -> Vec<(String, Option<String>)>,
) -> Result<Value> {
    let workspace = Workspace::of_run(saga.kernel, &saga.run()?, saga.settings)?;
    // Captures may run side by side; a restore, which would show a tree half restored, may not.
    let _held = workspace.lock(Mode::Shared)?;
    let link = Link {
        run_id: Some(remembered.run_id.clone()),
        message: Some(format!("{when} the effects of rollback {} are undone", remembered.id.short())),
        ..Link::default()
    };
    let purpose = Purpose { force, ..Purpose::new(Kind::Safety, link) };
    let shot = workspace.shoot(purpose, &Progress::default())?;
    let goes = keep(shot.id().as_str());
    let (first, last) =
        (goes.first().map(|(before, _)| before), goes.last().and_then(|(_, after)| after.as_ref()));
    let known = json!({ "before": first, "after": last, "goes": goes });
    saga.write(|tx, now| {
        shot.record(tx, now, Some(remembered.epoch))?;
        steps::set(tx, now, &remembered.id, step.ord, Happening::Learns, Some(&known))
    })?;
    Ok(known)
}

/// What each go at the effects of a rollback changed in the tree, oldest first. `restores`: those of the rollback, oldest first.
pub(super) fn changed_by_effects(
    workspace: &Workspace<'_>,
    remembered: &RollbackRecord,
    restores: &[Restore],
) -> Result<Vec<TreeChanges>> {
    let goes = done_by_effects(workspace.kernel, remembered)?;
    let mut changes = Vec::new();
    for (at, (before, after)) in goes.iter().enumerate() {
        // Where the process died, all until the next look at the tree counts as the effects' work.
        let next = goes.get(at + 1).map(|(next, _)| next);
        let after = after.as_ref().or(next).or_else(|| restores.first().map(|restore| &restore.safety_id));
        changes.extend(changes_between(workspace, before, after)?);
    }
    Ok(changes)
}
