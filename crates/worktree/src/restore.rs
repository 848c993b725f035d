//! Restoring a checkpoint, undoing that, and doing it again.

mod assumed_tree;
mod client_settings;
mod concurrent_changes;
mod execution;
mod interrupted_changes;
mod interruption;
mod kept_plan;
mod last_difference;
mod later_changes;
mod leftovers;
mod limits;
mod moved_files;
mod refusal;
mod request;
mod restore_revert;
mod run;
mod safety;
mod selective_undo;
mod ties;
mod tree_survey;
mod unfinished_git;

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::git;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::apply;
use ic_checkpoint::restore::journal::{self, RestoreKind, RestoreRecord};
use ic_checkpoint::restore::plan::Limits;
use ic_checkpoint::restore::reverse::Own;
use ic_checkpoint::rootfs::RootDir;
use ic_kernel::Kernel;
use ic_kernel::journal::kept_checkpoints;

use super::capture::Shot;
use super::git::Brought;
use super::queries;
use super::workspace::{CaptureSettings, Warning, Workspace, find, require_kept};
use interruption::{Settled, also_settled};
use limits::LimitOwner;

pub use interruption::{settle_note, way_back};
pub use last_difference::newest_other;
pub use refusal::refused;

pub use later_changes::changed_since;
pub use request::{Conflict, RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch};
pub use restore_revert::{
    NotYet, TreeChanges, changed_by, changes_between, left_of_interrupted, merge_back, path_option, restores_since,
    settle, steps_of, take_changes_back, take_restore_back,
};

/// Restores a checkpoint into its root.
///
/// What is about to change is durable in a safety checkpoint before the first write. Errors: `checkpoint_not_found`,
/// `foreign_root`, `file_conflict` (details.conflicts), `work_running`, `plan_changed`, `busy`, `disk_full`: nothing was written.
pub fn restore(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let workspace = Workspace::here(kernel, settings)?;
    let target = kernel.read(|snapshot| find(snapshot, &workspace.root, request.which))?;
    require_kept(&target)?;
    if !request.into {
        queries::require_same_root(&workspace, &target)?;
    }
    let mut limits = Limits::default();
    for path in request.paths {
        limits.paths.push(queries::path_in_root(&workspace, path)?);
    }
    let task =
        run::RestoreTask { whose: LimitOwner::Caller, ..run::RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(&workspace, task, request, watch)
}

/// The deed that a restore is a part of.
pub struct RestoreDeed {
    /// These paths stay as they are.
    pub keep: BTreeSet<Vec<u8>>,
    /// Checkpoints since this event belong to the deed: what they hold is not what was there before it.
    pub until: Seq,
    /// The checkpoints from before and after what the deed did to the tree already, oldest first; without a second one it died in it.
    pub did: Vec<(CheckpointId, Option<CheckpointId>)>,
    /// The tree as the deed has just left it, recorded, with nothing of what rules hide: no other picture is taken of it.
    pub taken: Option<Shot>,
}

/// Restores a checkpoint of a workspace, which need not be the caller's. Errors: those of [`restore`].
pub fn restore_into(
    workspace: &Workspace<'_>,
    target: CheckpointRecord,
    RestoreDeed { keep, until, did, taken }: RestoreDeed,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    require_kept(&target)?;
    queries::require_same_root(workspace, &target)?;
    let limits = Limits { keep, ..Limits::default() };
    let task = run::RestoreTask { until, did, taken, ..run::RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

/// Undoes in a workspace what one piece of work did, which began at the checkpoint `target`; whatever others did since stays. Errors: those
/// of [`restore`].
pub fn restore_without(
    workspace: &Workspace<'_>,
    target: CheckpointRecord,
    work: Own,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    require_kept(&target)?;
    queries::require_same_root(workspace, &target)?;
    let own = work.paths();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let task = run::RestoreTask { own, work: Some(work), ..run::RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

/// Takes the last restore of this root back: the tree is as it was before, where that restore changed it.
///
/// Errors: `nothing_to_undo`, and those of [`restore`].
pub fn undo(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    step(kernel, settings, RestoreKind::Undo, request, watch)
}

/// Makes the restore again that was undone last. Errors: `nothing_to_undo`, and those of [`restore`].
pub fn redo(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    step(kernel, settings, RestoreKind::Redo, request, watch)
}

fn step(
    kernel: &Kernel,
    settings: &CaptureSettings,
    kind: RestoreKind,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let workspace = Workspace::here(kernel, settings)?;
    // Locked before the restore to undo is chosen: no other restore can come in between.
    let _held = workspace.lock_for(request.dry_run)?;
    if request.dry_run {
        return match workspace.interrupted(kind)? {
            Some(report) => finishing(&workspace, kind, report, request),
            None => step_held(&workspace, kind, request, watch),
        };
    }
    let settled = workspace.settle(watch)?;
    let warning = settled.as_ref().map(Settled::warning);
    match settled {
        // The same call was interrupted before: finishing it is what was asked for, and another step would go too far.
        Some(settled) if settled.restore.kind == kind => {
            let done = settled.into_report().and_then(|report| finishing(&workspace, kind, report, request));
            done.or_else(|error| also_settled(warning, || Err(error)))
        }
        _ => also_settled(warning, || step_held(&workspace, kind, request, watch)),
    }
}

/// As [`step`], where to finish an interrupted one is all that is asked for, and `report` says what that does or did. Errors:
/// `plan_changed`.
fn finishing(
    workspace: &Workspace<'_>,
    kind: RestoreKind,
    report: RestoreReport,
    request: &RestoreRequest<'_>,
) -> Result<RestoreReport> {
    if request.expect_plan.is_some_and(|expected| expected != report.plan_hash) {
        return Err(refusal::plan_changed(&report));
    }
    let safety = report.safety_id.as_ref();
    let of = workspace.before(kind, safety)?;
    let mut report = RestoreReport { dry_run: request.dry_run, ..report };
    if let Some(of) = of {
        about(workspace.kernel, of, kind, &mut report)?;
    }
    Ok(report)
}

/// Says which restore was undone, or made again: it need not be what the caller did last, newer work may have come since.
fn about(kernel: &Kernel, of: RestoreRecord, kind: RestoreKind, report: &mut RestoreReport) -> Result<()> {
    report.warnings.extend(rest_of_rollback(kernel, &of, kind)?);
    report.of_restore = Some(of);
    Ok(())
}

/// As [`step`], where the root is held, and no restore is unfinished, but for a dry run.
fn step_held(
    workspace: &Workspace<'_>,
    kind: RestoreKind,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let kernel = workspace.kernel;
    // The real call finishes what was interrupted, and then finds it among the others.
    let last = workspace.next(kind, request.dry_run)?.ok_or_else(|| nothing_to(kind))?;
    let target = match kind {
        RestoreKind::Redo => last.restored_id.as_ref().ok_or_else(|| nothing_to(kind))?,
        _ => &last.safety_id,
    };
    let target = kernel.read(|snapshot| record::get(snapshot, target))?;
    require_kept(&target)?;
    let plan = kept_plan::read_plan(workspace, &last)?;
    let own: BTreeSet<Vec<u8>> = plan.steps.into_iter().map(|step| step.path.0).collect();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let request = RestoreRequest { strategy: Some(last.strategy), ..*request };
    // What is made again had been undone: that left what there was before it.
    let left = if kind == RestoreKind::Redo { Some(last.safety_id.clone()) } else { last.restored_id.clone() };
    let task = run::RestoreTask {
        whose: LimitOwner::Caller,
        own,
        brought: left.map(|left| Brought { left, is_compared: false }),
        ..run::RestoreTask::of(kind, target, limits)
    };
    run::require_nobody_works(workspace, &task, &request)?;
    let mut report = run::run_held(workspace, task, &request, watch)?;
    about(kernel, last, kind, &mut report)?;
    Ok(report)
}

/// A warning where the restore that is undone, or made again, is one layer of a rollback: the others stay as they are.
fn rest_of_rollback(kernel: &Kernel, restore: &RestoreRecord, kind: RestoreKind) -> Result<Option<Warning>> {
    let is_undo = kind == RestoreKind::Undo;
    let made_by = kernel.read(|snapshot| kept_checkpoints::that_restored(snapshot, &restore.safety_id, is_undo))?;
    Ok(made_by.map(|rollback| {
        let layers = rollback.layers.iter().map(|layer| layer.as_str());
        let others: Vec<&str> = layers.filter(|layer| !matches!(*layer, "files" | "git")).collect();
        let (id, others) = (rollback.id.short(), others.join(", "));
        if is_undo {
            let message = format!(
                "that restore was made by the rollback {id}, which is in force: {others} stay as it left them; to undo all of it instead: ic redo {id} --yes"
            );
            return Warning { code: "rollback_stands", message };
        }
        let message = format!(
            "that restore was made by the rollback {id}, which was undone: {others} stay as they are; to roll back all of it: ic run rollback {} --to-phase PHASE --yes",
            rollback.run_id.short()
        );
        Warning { code: "rollback_undone", message }
    }))
}

/// Of these restores, oldest first, the one that `undo` would undo next, or `redo` make again.
fn last_of(kind: RestoreKind, restores: &[RestoreRecord]) -> Option<RestoreRecord> {
    let (undo, redo) = journal::stacks(restores);
    if kind == RestoreKind::Redo { redo.last() } else { undo.last() }.map(|last| (*last).clone())
}

fn nothing_to(kind: RestoreKind) -> Diagnosis {
    let what = kind.as_str();
    Diagnosis::new(Code::NothingToUndo, format!("There is no restore to {what} here."))
        .hint("see what there is: ic checkpoint tree")
}

impl Workspace<'_> {
    /// The restore that `undo` would undo next, or `redo` make again. The caller holds the root.
    fn next(&self, kind: RestoreKind, and_interrupted: bool) -> Result<Option<RestoreRecord>> {
        self.kernel.read(|snapshot| {
            let mut all = journal::finished(snapshot, &self.root)?;
            if and_interrupted {
                all.extend(journal::unfinished(snapshot, &self.root)?);
            }
            Ok(last_of(kind, &all))
        })
    }

    /// As [`Workspace::next`], at the moment when the restore of this safety checkpoint began; now, if that one is unfinished.
    fn before(&self, kind: RestoreKind, safety: Option<&CheckpointId>) -> Result<Option<RestoreRecord>> {
        let all = self.kernel.read(|snapshot| journal::finished(snapshot, &self.root))?;
        let until = all.iter().position(|one| Some(&one.safety_id) == safety).unwrap_or(all.len());
        Ok(last_of(kind, &all[..until]))
    }

    /// What there is to say of an interrupted restore of this kind, which a call of the same kind finishes.
    fn interrupted(&self, kind: RestoreKind) -> Result<Option<RestoreReport>> {
        let unfinished = self.kernel.read(|s| journal::unfinished(s, &self.root))?;
        let Some(restore) = unfinished.filter(|restore| restore.kind == kind) else { return Ok(None) };
        let target = self.kernel.read(|s| record::get(s, &restore.target_id))?;
        let plan = kept_plan::read_plan(self, &restore)?;
        let git = self.left_for_git(&restore, &target)?;
        let mut report = interruption::resumed(&restore, target, plan, git)?;
        report.warnings.extend(settle_note(self)?);
        Ok(Some(report))
    }

    /// Finishes a restore that was interrupted, forward. The caller holds the root's lock alone.
    fn settle(&self, watch: &RestoreWatch) -> Result<Option<Settled>> {
        git::clear_own_lock(&self.root)?;
        let Some(restore) = self.kernel.read(|s| journal::unfinished(s, &self.root))? else {
            return Ok(None);
        };
        let target = self.kernel.read(|s| record::get(s, &restore.target_id))?;
        let plan = kept_plan::read_plan(self, &restore)?;
        let git = self.settle_git(&restore, &target)?;
        let theirs = self.shoot_theirs(&restore, &plan)?;
        // The first attempt may have left files under these temporary names, and a name that is taken makes a write
        // fail.
        apply::sweep(&RootDir::open(&self.root)?, &plan, &restore.id);
        // Recorded before the first write, as at the first attempt.
        self.kernel.write_late_too(|tx, now| {
            if let Some(theirs) = &theirs {
                theirs.record(tx, now, None)?;
            }
            journal::begin(tx, now, &restore.id)
        })?;
        let done = self.carry_out(&restore.id, &target, &plan, git.as_ref(), None, watch)?;
        Ok(Some(Settled { restore, target, plan, git, done }))
    }

    fn lock_for(&self, dry_run: bool) -> Result<super::locked_root::LockedRoot> {
        // A dry run writes nothing, so it may run beside captures and other dry runs.
        self.lock(if dry_run { LockMode::Shared } else { LockMode::Exclusive })
    }
}
