//! Restoring a checkpoint, undoing that, and doing it again.

mod as_if;
mod back;
mod carry_out;
mod client_settings;
mod differs;
mod left;
mod limits;
mod look;
mod other;
mod planned;
mod refusal;
mod request;
mod run;
mod safety;
mod settled;
mod since;
mod ties;
mod unfinished;
mod without;

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::git;
use ic_checkpoint::lock::Mode;
use ic_checkpoint::record::{self, Checkpoint};
use ic_checkpoint::restore::apply;
use ic_checkpoint::restore::journal::{self, Kind, Restore};
use ic_checkpoint::restore::plan::Limits;
use ic_checkpoint::restore::reverse::Own;
use ic_checkpoint::rootfs::RootDir;
use ic_journal::kept;
use ic_kernel::Kernel;

use super::git::Brought;
use super::read;
use super::shot::Shot;
use super::workspace::{Settings, Warning, Workspace, find, require_kept};
use limits::Whose;
use settled::{Settled, also_settled};

pub use other::newest_other;
pub use refusal::refused;
pub use settled::{settle_note, way_back};

pub use back::{
    NotYet, TreeChanges, changed_by, changes_between, left_of_interrupted, merge_back, path_option,
    restores_since, settle, steps_of, take_changes_back, take_restore_back,
};
pub use request::{Conflict, Report, Request, Status, Watch};
pub use since::changed_since;

/// Restores a checkpoint into its root.
///
/// What is about to change is durable in a safety checkpoint before the first write. Errors: `checkpoint_not_found`,
/// `foreign_root`, `file_conflict` (details.conflicts), `work_running`, `plan_changed`, `busy`, `disk_full`: nothing was written.
pub fn restore(kernel: &Kernel, settings: &Settings, request: &Request<'_>, watch: &Watch) -> Result<Report> {
    let workspace = Workspace::here(kernel, settings)?;
    let target = kernel.read(|snapshot| find(snapshot, &workspace.root, request.which))?;
    require_kept(&target)?;
    if !request.into {
        read::require_same_root(&workspace, &target)?;
    }
    let mut limits = Limits::default();
    for path in request.paths {
        limits.paths.push(read::path_in_root(&workspace, path)?);
    }
    let task = run::Task { whose: Whose::Caller, ..run::Task::of(Kind::Restore, target, limits) };
    run::run(&workspace, task, request, watch)
}

/// The deed that a restore is a part of.
pub struct Deed {
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
    target: Checkpoint,
    Deed { keep, until, did, taken }: Deed,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
    require_kept(&target)?;
    read::require_same_root(workspace, &target)?;
    let limits = Limits { keep, ..Limits::default() };
    let task = run::Task { until, did, taken, ..run::Task::of(Kind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

/// Undoes in a workspace what one piece of work did, which began at the checkpoint `target`; whatever others did since stays. Errors: those
/// of [`restore`].
pub fn restore_without(
    workspace: &Workspace<'_>,
    target: Checkpoint,
    work: Own,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
    require_kept(&target)?;
    read::require_same_root(workspace, &target)?;
    let own = work.paths();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let task = run::Task { own, work: Some(work), ..run::Task::of(Kind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

/// Takes the last restore of this root back: the tree is as it was before, where that restore changed it.
///
/// Errors: `nothing_to_undo`, and those of [`restore`].
pub fn undo(kernel: &Kernel, settings: &Settings, request: &Request<'_>, watch: &Watch) -> Result<Report> {
    step(kernel, settings, Kind::Undo, request, watch)
}

/// Makes the restore again that was undone last. Errors: `nothing_to_undo`, and those of [`restore`].
pub fn redo(kernel: &Kernel, settings: &Settings, request: &Request<'_>, watch: &Watch) -> Result<Report> {
    step(kernel, settings, Kind::Redo, request, watch)
}

fn step(
    kernel: &Kernel,
    settings: &Settings,
    kind: Kind,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
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
fn finishing(workspace: &Workspace<'_>, kind: Kind, report: Report, request: &Request<'_>) -> Result<Report> {
    if request.expect_plan.is_some_and(|expected| expected != report.plan_hash) {
        return Err(refusal::plan_changed(&report));
    }
    let safety = report.safety_id.as_ref();
    let of = workspace.before(kind, safety)?;
    let mut report = Report { dry_run: request.dry_run, ..report };
    if let Some(of) = of {
        about(workspace.kernel, of, kind, &mut report)?;
    }
    Ok(report)
}

/// Says which restore was undone, or made again: it need not be what the caller did last, newer work may have come since.
fn about(kernel: &Kernel, of: Restore, kind: Kind, report: &mut Report) -> Result<()> {
    report.warnings.extend(rest_of_rollback(kernel, &of, kind)?);
    report.of_restore = Some(of);
    Ok(())
}

/// As [`step`], where the root is held, and no restore is unfinished, but for a dry run.
fn step_held(workspace: &Workspace<'_>, kind: Kind, request: &Request<'_>, watch: &Watch) -> Result<Report> {
    let kernel = workspace.kernel;
    // The real call finishes what was interrupted, and then finds it among the others.
    let last = workspace.next(kind, request.dry_run)?.ok_or_else(|| nothing_to(kind))?;
    let target = match kind {
        Kind::Redo => last.restored_id.as_ref().ok_or_else(|| nothing_to(kind))?,
        _ => &last.safety_id,
    };
    let target = kernel.read(|snapshot| record::get(snapshot, target))?;
    require_kept(&target)?;
    let plan = planned::read_plan(workspace, &last)?;
    let own: BTreeSet<Vec<u8>> = plan.steps.into_iter().map(|step| step.path.0).collect();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let request = Request { strategy: Some(last.strategy), ..*request };
    // What is made again had been undone: that left what there was before it.
    let left = if kind == Kind::Redo { Some(last.safety_id.clone()) } else { last.restored_id.clone() };
    let task = run::Task {
        whose: Whose::Caller,
        own,
        brought: left.map(|left| Brought { left, is_compared: false }),
        ..run::Task::of(kind, target, limits)
    };
    run::require_nobody_works(workspace, &task, &request)?;
    let mut report = run::run_held(workspace, task, &request, watch)?;
    about(kernel, last, kind, &mut report)?;
    Ok(report)
}

/// A warning where the restore that is undone, or made again, is one layer of a rollback: the others stay as they are.
fn rest_of_rollback(kernel: &Kernel, restore: &Restore, kind: Kind) -> Result<Option<Warning>> {
    let is_undo = kind == Kind::Undo;
    let made_by = kernel.read(|snapshot| kept::that_restored(snapshot, &restore.safety_id, is_undo))?;
    Ok(made_by.map(|rollback| {
        let layers = rollback.layers.iter().map(|layer| layer.as_str());
        let others: Vec<&str> = layers.filter(|layer| !matches!(*layer, "files" | "git")).collect();
        let (id, others) = (rollback.id.short(), others.join(", "));
        if is_undo {
            let message = format!(
                "that restore was made by the rollback {id}, which is in force: {others} stay as it left them; to undo all of it instead: ic rollback undo {id} --yes"
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
fn last_of(kind: Kind, restores: &[Restore]) -> Option<Restore> {
    let (undo, redo) = journal::stacks(restores);
    if kind == Kind::Redo { redo.last() } else { undo.last() }.map(|last| (*last).clone())
}

fn nothing_to(kind: Kind) -> Diagnosis {
    let what = kind.as_str();
    Diagnosis::new(Code::NothingToUndo, format!("There is no restore to {what} here."))
        .hint("see what there is: ic checkpoint tree")
}

impl Workspace<'_> {
    /// The restore that `undo` would undo next, or `redo` make again. The caller holds the root.
    fn next(&self, kind: Kind, and_interrupted: bool) -> Result<Option<Restore>> {
        self.kernel.read(|snapshot| {
            let mut all = journal::finished(snapshot, &self.root)?;
            if and_interrupted {
                all.extend(journal::unfinished(snapshot, &self.root)?);
            }
            Ok(last_of(kind, &all))
        })
    }

    /// As [`Workspace::next`], at the moment when the restore of this safety checkpoint began; now, if that one is unfinished.
    fn before(&self, kind: Kind, safety: Option<&CheckpointId>) -> Result<Option<Restore>> {
        let all = self.kernel.read(|snapshot| journal::finished(snapshot, &self.root))?;
        let until = all.iter().position(|one| Some(&one.safety_id) == safety).unwrap_or(all.len());
        Ok(last_of(kind, &all[..until]))
    }

    /// What there is to say of an interrupted restore of this kind, which a call of the same kind finishes.
    fn interrupted(&self, kind: Kind) -> Result<Option<Report>> {
        let unfinished = self.kernel.read(|s| journal::unfinished(s, &self.root))?;
        let Some(restore) = unfinished.filter(|restore| restore.kind == kind) else { return Ok(None) };
        let target = self.kernel.read(|s| record::get(s, &restore.target_id))?;
        let plan = planned::read_plan(self, &restore)?;
        let git = self.left_for_git(&restore, &target)?;
        let mut report = settled::resumed(&restore, target, plan, git)?;
        report.warnings.extend(settle_note(self)?);
        Ok(Some(report))
    }

    /// Finishes a restore that was interrupted, forward. The caller holds the root's lock alone.
    fn settle(&self, watch: &Watch) -> Result<Option<Settled>> {
        git::clear_own_lock(&self.root)?;
        let Some(restore) = self.kernel.read(|s| journal::unfinished(s, &self.root))? else {
            return Ok(None);
        };
        let target = self.kernel.read(|s| record::get(s, &restore.target_id))?;
        let plan = planned::read_plan(self, &restore)?;
        let git = self.settle_git(&restore, &target)?;
        apply::sweep(&RootDir::open(&self.root)?, &plan, &restore.id);
        // Recorded before the first write, as at the first attempt.
        self.kernel.write_late_too(|tx, now| journal::begin(tx, now, &restore.id))?;
        let done = self.carry_out(&restore.id, &target, &plan, git.as_ref(), None, watch)?;
        Ok(Some(Settled { restore, target, plan, git, done }))
    }

    fn lock_for(&self, dry_run: bool) -> Result<super::held::Held> {
        // A dry run writes nothing, so it may run beside captures and other dry runs.
        self.lock(if dry_run { Mode::Shared } else { Mode::Exclusive })
    }
}
