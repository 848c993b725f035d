//! Restoring a checkpoint, and undoing that.

mod assumed_tree;
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
mod planned_restore;
mod refusal;
mod request;
mod restore_revert;
mod run;
mod safety;
mod selective_undo;
mod ties;
mod tree_survey;
mod undo;
mod unfinished_git;

use std::collections::BTreeSet;

use ic_base::{Result, Seq};
use ic_checkpoint::git;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::apply;
use ic_checkpoint::restore::journal::{self, RestoreKind};
use ic_checkpoint::restore::plan::Limits;
use ic_checkpoint::restore::reverse::Own;
use ic_checkpoint::rootfs::RootDir;
use ic_kernel::Kernel;

use super::capture::Shot;
use super::queries;
use super::workspace::{CaptureSettings, Workspace, find, require_kept};
pub(crate) use assumed_tree::differences;
use interruption::Settled;
use limits::LimitOwner;
use planned_restore::RestoreTask;

pub use interruption::{settle_note, way_back};
pub use last_difference::newest_other;
pub use refusal::refused;
pub use undo::{undo, undo_named};

pub use later_changes::{changed_since, was_changed_since};
pub use request::{Conflict, EarlierDeeds, RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch};
pub use restore_revert::{
    NotYet, TreeChanges, changed_by, changes_between, left_of_interrupted, merge_back, path_option, restores_since,
    settle, steps_of, take_changes_back, take_restore_back,
};
pub use selective_undo::OthersPaths;

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
    let task = RestoreTask { whose: LimitOwner::Caller, ..RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(&workspace, task, request, watch)
}

/// The deed that a restore is a part of.
#[derive(Default)]
pub struct RestoreDeed {
    /// These paths stay as they are.
    pub keep: BTreeSet<Vec<u8>>,
    /// What others did that stays.
    pub others: OthersPaths,
    /// Checkpoints since this event belong to the deed: what they hold is not what was there before it. `None`: there are none.
    pub until: Option<Seq>,
    /// What the deed did to the tree already.
    pub did: EarlierDeeds,
    /// The tree as the deed has just left it, recorded, with nothing of what rules hide: no other picture is taken of it.
    pub taken: Option<Shot>,
}

/// Restores a checkpoint of a workspace, which need not be the caller's. Errors: those of [`restore`].
pub fn restore_into(
    workspace: &Workspace<'_>,
    target: CheckpointRecord,
    RestoreDeed { keep, others, until, did, taken }: RestoreDeed,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    require_kept(&target)?;
    queries::require_same_root(workspace, &target)?;
    let limits = Limits { keep, ..Limits::default() };
    let until = until.unwrap_or(Seq::MAX);
    let task = RestoreTask { until, did, taken, others, ..RestoreTask::of(RestoreKind::Restore, target, limits) };
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
    let task = RestoreTask { own, work: Some(work), ..RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

impl Workspace<'_> {
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
        // Also for a caller whose work was rolled back: what was begun has to be finished.
        self.kernel.write_late_too(|tx, now| {
            if let Some(theirs) = &theirs {
                theirs.record(tx, now, None)?;
            }
            journal::begin(tx, now, &restore.id)
        })?;
        // Without paths: since the interruption anything may have changed, so the result is captured as a whole.
        let done = self.carry_out(&restore.id, &target, &plan, git.as_ref(), None, watch)?;
        Ok(Some(Settled { restore, target, plan, git, done }))
    }

    fn lock_for(&self, dry_run: bool) -> Result<super::locked_root::LockedRoot> {
        // A dry run writes nothing, so it may run beside captures and other dry runs.
        self.lock(if dry_run { LockMode::Shared } else { LockMode::Exclusive })
    }
}
