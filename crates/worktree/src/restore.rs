//! Restoring a checkpoint, undoing that, and doing it again.

mod as_if;
mod back;
mod differs;
mod left;
mod limits;
mod look;
mod other;
mod planned;
mod refusal;
mod run;
mod safety;
mod ties;
mod without;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::lock::Mode;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{self, Checkpoint};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::apply::Progress as ApplyProgress;
use ic_checkpoint::restore::journal::{self, Kind, Restore};
use ic_checkpoint::restore::plan::{Limits, Plan};
use ic_checkpoint::restore::reverse::Own;
use ic_journal::Force;
use ic_journal::kept;
use ic_kernel::Kernel;

use super::git::GitRestore;
use super::{Settings, Warning, Which, Workspace, find, read, require_kept};
use limits::Whose;

pub use other::newest_other;
pub use refusal::refused;

pub use back::{
    NotYet, TreeChanges, changed_since, changes_between, merge_restores_back, path_option, restores_since,
    settle, take_changes_back, take_restore_back,
};

/// How far a restore is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Watch {
    /// Looking at the tree.
    pub capture: Progress,
    /// Changing it.
    pub apply: ApplyProgress,
    /// Set from elsewhere. What is restored is restored wholly; a rollback over several layers begins no further step.
    pub interrupted: Arc<AtomicBool>,
}

/// What is to be restored, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Which checkpoint.
    pub which: Which<'a>,
    /// Which parts; `None`: files and git where git was recorded, else files.
    pub strategy: Option<Strategy>,
    /// Only these paths, from the working directory; empty: everything.
    pub paths: &'a [PathBuf],
    /// Only what the checkpoint's run, or the calling dispatch, recorded.
    pub mine: bool,
    /// Say what would be done and change nothing.
    pub dry_run: bool,
    /// Conflicts get the checkpoint's state, commits of others leave, and living workers are no hindrance: as far as decided.
    pub force: Force,
    /// Conflicts stay as they are.
    pub keep_theirs: bool,
    /// A checkpoint of another root is restored into this one.
    pub into: bool,
    /// The whole tree is compared with the checkpoint after the restore, and not only what it changed.
    pub compares_all: bool,
    /// Others may work in the tree meanwhile: only paths of one piece of work change.
    pub beside_others: bool,
    /// The plan must be this one.
    pub expect_plan: Option<&'a str>,
}

ic_base::words! {
    /// What became of a restore.
    pub enum Status {
        /// The tree is as the checkpoint has it.
        Restored = "restored",
        /// Some paths could not be restored.
        Partial = "partial",
        /// It was a dry run.
        Planned = "planned",
        /// There was nothing to do.
        UpToDate = "up_to_date",
    }
}

/// A path that somebody else changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// From the root.
    pub path: PathText,
    /// Who, or when.
    pub reason: String,
}

/// What a restore did, or would do.
#[derive(Debug)]
pub struct Report {
    /// The checkpoint that was restored.
    pub target: Checkpoint,
    /// The restore that is undone, or made again, as the journal has it; `None` where neither is.
    pub of_restore: Option<Restore>,
    /// What was about to change; `None` where nothing was written.
    pub safety_id: Option<CheckpointId>,
    /// What the restore left.
    pub restored_id: Option<CheckpointId>,
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// Which parts.
    pub strategy: Strategy,
    /// What became of it.
    pub status: Status,
    /// Every change of files, and what was left alone.
    pub plan: Plan,
    /// What is done about git; `None` if its state is not restored.
    pub git: Option<GitRestore>,
    /// Names the plan: the same for the same changes.
    pub plan_hash: String,
    /// What somebody else changed.
    pub conflicts: Vec<Conflict>,
    /// What the real call would answer instead of restoring, with the same flags; only of a dry run.
    pub refusal: Option<Diagnosis>,
    /// Paths that could not be changed, and why.
    pub failed: Vec<(PathText, String)>,
    /// Paths that nobody can compare with the checkpoint, because it or the tree as it was looked at has no content of them; and why.
    pub not_compared: Vec<(PathText, String)>,
    /// What is not as the checkpoint has it, after the restore, though nothing above says so; and why. Git's state is named `.git`.
    pub differs: Vec<(PathText, String)>,
    /// The checkpoint holds a path that stays as it is: `plan.skipped` names it.
    pub lacks_any: bool,
    /// Nothing was left out by paths, by owner or by what an earlier restore changed.
    pub is_whole: bool,
    /// Only what one piece of work did is undone, which began at the target; the tree need not become as the target has it.
    pub is_without: bool,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

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
#[derive(Debug, Clone)]
pub struct Deed {
    /// These paths stay as they are.
    pub keep: BTreeSet<Vec<u8>>,
    /// Checkpoints since this event belong to the deed: what they hold is not what was there before it.
    pub until: Seq,
    /// The checkpoints from before and after what the deed did to the tree already, oldest first; without a second one it died in it.
    pub did: Vec<(CheckpointId, Option<CheckpointId>)>,
}

/// Restores a checkpoint of a workspace, which need not be the caller's. Errors: those of [`restore`].
pub fn restore_into(
    workspace: &Workspace<'_>,
    target: Checkpoint,
    Deed { keep, until, did }: Deed,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
    require_kept(&target)?;
    read::require_same_root(workspace, &target)?;
    let limits = Limits { keep, ..Limits::default() };
    let task = run::Task { until, did, ..run::Task::of(Kind::Restore, target, limits) };
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
    let settled = if request.dry_run {
        None
    } else {
        // What was interrupted is the last restore, once it is finished.
        let _held = workspace.lock(Mode::Exclusive)?;
        workspace.settle(watch)?
    };
    also_settled(settled, || step_settled(&workspace, kind, request, watch))
}

/// Does what follows after a restore that was `settled` first, and says so: a refusal that wrote nothing leaves another tree all the same.
fn also_settled(settled: Option<Warning>, then: impl FnOnce() -> Result<Report>) -> Result<Report> {
    let done = then();
    let Some(settled) = settled else { return done };
    match done {
        Ok(mut report) => {
            report.warnings.push(settled);
            Ok(report)
        }
        Err(error) => Err(error.but(&settled.message).detail("settled", settled.message)),
    }
}

/// As [`step`], where no restore is unfinished, but for a dry run.
fn step_settled(
    workspace: &Workspace<'_>,
    kind: Kind,
    request: &Request<'_>,
    watch: &Watch,
) -> Result<Report> {
    let kernel = workspace.kernel;
    let (target, last) = kernel.read(|snapshot| {
        let mut finished = journal::finished(snapshot, &workspace.root)?;
        if request.dry_run {
            // The real call finishes what was interrupted, and then finds it here.
            finished.extend(journal::unfinished(snapshot, &workspace.root)?);
        }
        let (undo, redo) = journal::stacks(&finished);
        let (last, target) = match kind {
            Kind::Redo => (redo.last(), redo.last().and_then(|r| r.restored_id.as_ref())),
            _ => (undo.last(), undo.last().map(|r| &r.safety_id)),
        };
        match (last, target) {
            (Some(last), Some(target)) => Ok((record::get(snapshot, target)?, (*last).clone())),
            _ => Err(nothing_to(kind)),
        }
    })?;
    require_kept(&target)?;
    let plan = planned::read_plan(workspace, &last)?;
    let own: BTreeSet<Vec<u8>> = plan.steps.into_iter().map(|step| step.path.0).collect();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let request = Request { strategy: Some(last.strategy), ..*request };
    let mut report = run::run(
        workspace,
        run::Task {
            whose: Whose::Caller,
            own,
            brought: last.restored_id.clone(),
            ..run::Task::of(kind, target, limits)
        },
        &request,
        watch,
    )?;
    report.warnings.extend(rest_of_rollback(kernel, &last, kind)?);
    // It need not be what the caller did last: newer work may have come since.
    report.of_restore = Some(last);
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

fn nothing_to(kind: Kind) -> Diagnosis {
    let what = kind.as_str();
    Diagnosis::new(Code::NothingToUndo, format!("There is no restore to {what} here."))
        .hint("see what there is: ic checkpoint tree")
}

/// A warning for reads, when a restore of this root was interrupted.
pub fn settle_note(workspace: &Workspace<'_>) -> Result<Option<Warning>> {
    let unfinished = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?;
    Ok(unfinished.map(|restore| Warning {
        code: "restore_interrupted",
        message: format!(
            "a restore of checkpoint {} was begun on {} and is not finished; the next restore, undo or redo finishes it",
            restore.target_id.short(),
            restore.created_at
        ),
    }))
}

impl Workspace<'_> {
    /// Finishes a restore that was interrupted, forward. The caller holds the root's lock alone.
    fn settle(&self, watch: &Watch) -> Result<Option<Warning>> {
        let Some(restore) = self.kernel.read(|s| journal::unfinished(s, &self.root))? else {
            return Ok(None);
        };
        let target = self.kernel.read(|s| record::get(s, &restore.target_id))?;
        let plan = planned::read_plan(self, &restore)?;
        let git = self.settle_git(&restore, &target)?;
        let outcome = self.carry_out(&restore.id, &target, &plan, git.as_ref(), None, watch)?;
        Ok(Some(Warning {
            code: "restore_settled",
            message: format!(
                "an interrupted restore of checkpoint {} was finished first ({} changes, {} not possible)",
                target.id.short(),
                outcome.steps,
                outcome.failed.len()
            ),
        }))
    }

    fn lock_for(&self, dry_run: bool) -> Result<super::shot::Held> {
        // A dry run writes nothing, so it may run beside captures and other dry runs.
        self.lock(if dry_run { Mode::Shared } else { Mode::Exclusive })
    }
}
