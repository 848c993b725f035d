//! The checkpoint to which the tree is restored, and what refuses it.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use ic_kernel::Kernel;
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::table::RollbackRecord;
use ic_kernel::journal::{Course, RollbackStep, steps};
use ic_phase::{Run, point};
use ic_worktree::{CaptureSettings, Workspace, restores_since, root_of, steps_of};

use crate::coverage::{Covered, PlannedCoverage};

/// The checkpoint of the place at which the cut is. Errors: `no_checkpoint`; another one is never taken instead.
pub(super) fn target(kernel: &Kernel, covered: &Covered) -> Result<CheckpointRecord> {
    let seq = covered.cut.seq;
    let is_prompt = || {
        let newest = kernel.read(|snapshot| point::newest_of_run(snapshot, &covered.run.id, seq + 1, 1));
        // Only the words of a refusal depend on it.
        newest.is_ok_and(|found| found.iter().any(|one| one.seq == seq && one.kind == point::PointKind::Prompt))
    };
    kernel.read(|snapshot| crate::points::checkpoint_at(snapshot, &covered.run, seq))?.ok_or_else(|| {
        if is_prompt() {
            return Diagnosis::new(
                Code::NoCheckpoint,
                "The tree was not captured before this prompt, so it is unsure what the prompt changed. Nothing was changed.",
            )
            .hint("why: ic hooks doctor; go back to a prompt before it: ic log; or to a checkpoint of your choice: ic checkpoint list; the record alone: --layer=workflow")
            .detail("cut_seq", seq);
        }
        Diagnosis::new(
            Code::NoCheckpoint,
            format!("The run took no checkpoint there (event {seq})."),
        )
        .hint("roll the record back alone: --layer=workflow; or restore a checkpoint of your choice: ic checkpoint list")
        .detail("cut_seq", seq)
    })
}

/// The checkpoint with which the attempt before this one ended, if the rollback only went forward since: an undo restored the tree anew.
pub(super) fn stopped_at(
    workspace: &Workspace<'_>,
    covered: &Covered,
    target: &CheckpointId,
) -> Result<Option<CheckpointId>> {
    let Some(remembered) = covered.remembered() else { return Ok(None) };
    let all = workspace.kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    if steps::course(&all) != Course::Forward {
        return Ok(None);
    }
    let attempts = restores_since(workspace, target, remembered.seq, false)?;
    Ok(attempts.into_iter().next_back().and_then(|attempt| attempt.restored_id))
}

/// What the journal keeps of a tree step that is skipped: the checkpoints of what its restores replaced, also of one that was interrupted.
/// Without them no redo would find that the rollback made those restores. `None`: it made none.
pub(crate) fn detail_of_skipped(
    kernel: &Kernel,
    settings: &CaptureSettings,
    remembered: &RollbackRecord,
    step: &RollbackStep,
) -> Result<Option<StepDetail>> {
    let (run, target) = kernel.read(|snapshot| {
        let run = ic_phase::run::get(snapshot, &remembered.run_id)?;
        let target = crate::points::checkpoint_at(snapshot, &run, remembered.cut_seq)?;
        Ok((run, target))
    })?;
    let Some(target) = target.filter(|_| root_of(&run.project_dir).is_dir()) else { return Ok(None) };
    let workspace = Workspace::of_run(kernel, &run, settings)?;
    let restores = restores_since(&workspace, &target.id, remembered.seq, true)?;
    if restores.is_empty() {
        return Ok(None);
    }
    let mut paths = BTreeSet::new();
    for restore in &restores {
        paths.extend(steps_of(&workspace, restore)?.into_iter().map(|step| step.path));
    }
    let safety = restores.into_iter().map(|restore| restore.safety_id).collect();
    // This is added to what the row has: entries of the index and files that were forced are in it, and an undo needs
    // them, too.
    Ok(Some(StepDetail { safety, changes: paths.len(), ..step.detail.clone() }))
}

/// Errors: `no_checkpoint` if the content of a point's checkpoint was pruned.
pub(super) fn require_content(target: &CheckpointRecord, planned: &PlannedCoverage) -> Result<()> {
    let (Some(point), Some(at)) = (&planned.point, target.pruned_at) else { return Ok(()) };
    Err(Diagnosis::new(
        Code::NoCheckpoint,
        format!("The checkpoint of {point} was pruned on {at}: its files are gone."),
    )
    .hint("choose another point, or roll the run back alone: --layer=workflow")
    .detail("checkpoint_id", target.id.as_str()))
}

/// Errors: `foreign_root` for a plan whose project is not where it was. A rollback that was begun has no other choice.
pub(super) fn require_whole_project(covered: &Covered, target: &CheckpointRecord, way: &str) -> Result<()> {
    match covered.as_planned() {
        Some(_) => require_project(&covered.run, &target.id, way),
        None => Ok(()),
    }
}

/// Errors: `foreign_root` if the project of a run is not where it was; `way`: what can be done about it.
pub(super) fn require_project(run: &Run, kept: &CheckpointId, way: &str) -> Result<()> {
    // A directory within a work tree is restored with it, so only the root must exist.
    if root_of(&run.project_dir).is_dir() {
        return Ok(());
    }
    let project = run.project_dir.display();
    Err(Diagnosis::new(
        Code::ForeignRoot,
        format!("The project of the run, {project}, is gone or has moved. Nothing was changed."),
    )
    .hint(format!(
        "{way}; its files into another directory, from there: ic checkpoint restore {} --into --dry-run",
        kept.short()
    ))
    .detail("project", project.to_string()))
}

/// Errors: `checkpoint_not_found` where the content that a restore of the rollback replaced is lost: its files cannot be restored.
pub(super) fn require_not_lost(
    workspace: &Workspace<'_>,
    (target, since): (&CheckpointId, Seq),
    until: Seq,
) -> Result<()> {
    workspace.kernel.read(|snapshot| {
        let lost = journal::lost(snapshot, &workspace.root)?;
        // The journal of restores names no rollback: its restores have its target, and lie between its beginning and
        // its end.
        let is_its = |one: &&RestoreRecord| one.target_id == *target && one.seq > since && one.seq < until;
        match lost.iter().find(is_its) {
            Some(one) => ic_worktree::require_kept(&record::get(snapshot, &one.safety_id)?),
            None => Ok(()),
        }
    })
}
