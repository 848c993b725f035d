//! The tree around the undo of effects, whose programs may change any of it: what they did is reverted with the tree.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Result, Seq};
use ic_checkpoint::diff::{self, DiffState};
use ic_checkpoint::record;
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use ic_checkpoint::restore::plan::RestoreStep as PlanStep;
use ic_checkpoint::restore::reverse::LineDecision;
use ic_kernel::Kernel;
use ic_kernel::journal::step_detail::{Go, StepDetail};
use ic_kernel::journal::steps::{self, RollbackStep, StepEvent};
use ic_kernel::journal::table::RollbackRecord;
use ic_kernel::journal::{Choices, Course};
use ic_worktree::capture::Shot;
use ic_worktree::{RestoreReport, TreeChanges, Warning, Workspace, changes_between, steps_of};

use crate::compensation::{Saga, UndoPlan};
use crate::dispatch_changes::{self, Met};
use crate::layers::layer::{LayerWork, has_tree};
use crate::undo_preconditions::undone_effects;

/// A warning that says where the content is that the undo of an effect replaced.
const RESTORED_BY_EFFECTS: &str = "restored_by_effects";

/// Captures the tree before effects are undone, whose scripts may change any of it, and records that with the step. Returns what is known
/// of the tree around them. Nothing is captured where no effect is left, or the rollback does not cover the tree.
pub(crate) fn keep_before_effects(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    step: &RollbackStep,
    plan: &UndoPlan,
) -> Result<StepDetail> {
    if plan.undo().next().is_none() || !has_tree(&remembered.layers) {
        return Ok(step.detail.clone());
    }
    // This is a new go, without an end. If the process dies now, the next look at the tree ends it.
    let keep = |id: &CheckpointId| {
        let mut goes = step.detail.goes.clone();
        goes.push((id.clone(), None));
        goes
    };
    keep_tree(saga, remembered, step, ("before", dispatch_changes::files_of(plan.undo())), keep).map(|(known, _)| known)
}

/// Captures the tree after effects were undone, if it was captured before. Returns what is known of it, and the capture where it has no
/// file that ignore rules hide.
pub(crate) fn keep_after_effects(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    step: &RollbackStep,
    plan: &UndoPlan,
    known: StepDetail,
) -> Result<(StepDetail, Option<Shot>)> {
    let step = RollbackStep { detail: known, ..step.clone() };
    // An earlier attempt may have left a go open: it ends here, even if no effect is left.
    if !step.detail.goes.last().is_some_and(|(_, after)| after.is_none()) {
        return Ok((step.detail, None));
    }
    let keep = |id: &CheckpointId| {
        let mut goes = step.detail.goes.clone();
        if let Some((_, after)) = goes.last_mut() {
            *after = Some(id.clone());
        }
        goes
    };
    let force = dispatch_changes::files_of(plan.undo());
    let is_usual = force.is_empty();
    let (known, shot) = keep_tree(saga, remembered, &step, ("after", force), keep)?;
    // Where effects restore files by themselves, the restore takes a safety checkpoint of its own.
    Ok((known, Some(shot).filter(|_| is_usual)))
}

/// Each go at the effects of a rollback, oldest first.
pub(crate) fn done_by_effects(kernel: &Kernel, remembered: &RollbackRecord) -> Result<Vec<Go>> {
    let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    Ok(all.into_iter().flat_map(|step| step.detail.goes).collect())
}

/// What the undo of one dispatch has done to the tree before it reaches its files; nothing where it has not begun.
pub(super) fn met(workspace: &Workspace<'_>, undo: Option<&RollbackRecord>) -> Result<Met> {
    let Some(undo) = undo else { return Ok(Met::default()) };
    let put_back = put_back(workspace, undo)?;
    let goes = done_by_effects(workspace.kernel, undo)?;
    let Some((before, _)) = goes.first() else { return Ok(Met { put_back, ..Met::default() }) };
    // The looks up to this one show what others did; after it the effects changed the tree.
    let since = workspace.kernel.read(|snapshot| record::get(snapshot, before))?.seq;
    let effects = changed_by_effects(workspace, undo, &[])?;
    Ok(Met { since: Some(since), effects, put_back, ..Met::default() })
}

/// The paths that the undo of a rollback had restored when it was aborted; `None`: it was not.
fn put_back(workspace: &Workspace<'_>, undo: &RollbackRecord) -> Result<Option<BTreeSet<Vec<u8>>>> {
    let restores = workspace.kernel.read(|snapshot| {
        if steps::course(&steps::of_rollback(snapshot, &undo.id)?) != Course::Reapply {
            return Ok(None);
        }
        let begun = dispatch_changes::undo_begun(snapshot, undo)?;
        let mut restores = journal::finished(snapshot, &workspace.root)?;
        restores.extend(journal::unfinished(snapshot, &workspace.root)?);
        restores.retain(|restore| restore.seq > begun);
        Ok(Some(restores))
    })?;
    let Some(restores) = restores else { return Ok(None) };
    let mut paths = BTreeSet::new();
    for restore in &restores {
        paths.extend(steps_of(workspace, restore)?.into_iter().map(|step| step.path.0));
    }
    Ok(Some(paths))
}

/// Adds to paths that are left that the undo of an effect, which comes before, restores them anyway.
pub(super) fn foretell_restored(report: &mut RestoreReport, work: &LayerWork) {
    let restored = dispatch_changes::files_of(work.effects.iter().flat_map(|effects| &effects.compensations));
    for (path, why) in &mut report.plan.skipped {
        if restored.contains(&path.0) {
            *why += "; but the undo of an effect restores it: what is there is saved in a checkpoint first";
        }
    }
    report.forget_left(|path| restored.contains(&path.0));
}

/// A warning for each file that an effect's undo restored, with the checkpoint that has its former content. Returns the changes at those
/// that the preview names among its own, because the restore found them done. Files that ignore rules hide are not among them, nor what
/// stays by one of the `choices`.
pub(super) fn tell_of_restored(
    workspace: &Workspace<'_>,
    remembered: &RollbackRecord,
    report: &mut RestoreReport,
    choices: &Choices,
) -> Result<Vec<PlanStep>> {
    let undone = workspace.kernel.read(|snapshot| undone_effects(snapshot, remembered, Seq::MAX))?;
    let files = dispatch_changes::files_of(undone.iter());
    let mut steps = Vec::new();
    if files.is_empty() {
        return Ok(steps);
    }
    // What rules hid when the rollback began has no content in this checkpoint, and was in no plan.
    let newest =
        workspace.kernel.read(|snapshot| record::newest_of_root_until(snapshot, &workspace.root, remembered.seq))?;
    let is_usual = |path: &[u8]| -> Result<bool> {
        let Some(newest) = &newest else { return Ok(false) };
        let found = diff::find(&workspace.objects, &newest.tree, path)?;
        Ok(found.as_ref().is_some_and(DiffState::is_content))
    };
    for changes in changed_by_effects(workspace, remembered, &[])? {
        let Some(changes) = changes.only(|path, _| files.contains(path)) else { continue };
        let (before, restored) = (changes.before().short(), changes.steps());
        let Some(first) = restored.first() else { continue };
        let first = String::from_utf8_lossy(&first.path.0);
        let more = if restored.len() > 1 { format!(" and {} more", restored.len() - 1) } else { String::new() };
        report.warnings.push(Warning {
            code: RESTORED_BY_EFFECTS,
            message: format!("undoing effects restored {first}{more}: what was there before is in checkpoint {before}"),
        });
        for step in restored {
            report.forget_left(|path| *path == step.path);
            let is_usual = is_usual(&step.path.0)?;
            match report.plan.skipped.iter().position(|(path, _)| *path == step.path) {
                Some(at) if choices.about(&step.path.0) == Some(LineDecision::Leave) || !is_usual => {
                    report.plan.skipped[at].1 += "; but the undo of an effect restored it";
                }
                // The preview listed it among what the rollback undoes, and an effect has undone it.
                Some(at) => {
                    report.plan.skipped.remove(at);
                    steps.push(step);
                }
                None if is_usual => steps.push(step),
                None => {}
            }
        }
    }
    Ok(steps)
}

/// Captures the tree, with files of `force` that ignore rules hide, and records that with the step. Returns what is known of it, and the
/// capture.
fn keep_tree(
    saga: &Saga<'_>,
    remembered: &RollbackRecord,
    step: &RollbackStep,
    (when, force): (&str, BTreeSet<Vec<u8>>),
    keep: impl Fn(&CheckpointId) -> Vec<Go>,
) -> Result<(StepDetail, Shot)> {
    let message = format!("{when} the effects of rollback {} are undone", remembered.id.short());
    let known = |id: &CheckpointId| StepDetail { goes: keep(id), ..StepDetail::default() };
    let shot = saga.keep_tree((message, remembered.epoch), force, |tx, now, id| {
        steps::set(tx, now, &remembered.id, step.ord, StepEvent::Learns, Some(&known(id)))
    })?;
    Ok((known(shot.id()), shot))
}

/// What each attempt at the effects of a rollback changed in the tree, oldest first. `restores`: those of the rollback, oldest first.
/// Others may work during the undo of one dispatch, so of the changes around its effects only the paths of that work count, and files that
/// the effects restore by themselves. Where the process died, only those of them count that are restored.
pub(super) fn changed_by_effects(
    workspace: &Workspace<'_>,
    remembered: &RollbackRecord,
    restores: &[RestoreRecord],
) -> Result<Vec<TreeChanges>> {
    let goes = done_by_effects(workspace.kernel, remembered)?;
    if goes.is_empty() {
        return Ok(Vec::new());
    }
    let reach = dispatch_changes::WorkReach::of(workspace, remembered)?;
    let is_of_works = remembered.is_of_works();
    let mut changes = Vec::new();
    for (at, (before, after)) in goes.iter().enumerate() {
        // Where the process died, every change until the next checkpoint counts as the effects' work.
        let next = goes.get(at + 1).map(|(next, _)| next);
        let then = after.as_ref().or(next).or_else(|| restores.first().map(|restore| &restore.safety_id));
        let all = changes_between(workspace, before, then, reach.files())?;
        changes.extend(all.and_then(|all| match after {
            _ if !is_of_works => Some(all),
            Some(_) => all.only(|path, _| reach.has(path)),
            // Its process died, so others may have written since: only restored content is surely of the effects.
            None => all.only(|path, left| reach.is_restored(path, left)),
        }));
    }
    Ok(changes)
}

/// A warning about an operation of git's that a restore ends, such as a merge: no checkpoint has its notes, so no redo restores it.
pub(super) fn ended(report: &RestoreReport) -> Option<Warning> {
    let operation = report.git.as_ref()?.plan.ends.as_ref()?;
    let files = report.safety_id.as_ref().map_or_else(
        || "the checkpoint that is taken first has its files".to_owned(),
        |safety| format!("its files: ic checkpoint restore {} --strategy files-only --yes", safety.short()),
    );
    let message = format!(
        "a {operation} that is in progress ends with this, and no redo brings it back; {files}, and begin it again with git"
    );
    Some(Warning { code: "operation_ends", message })
}
