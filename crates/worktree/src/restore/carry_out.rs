//! Carrying a plan out that is in the journal: git's refs, the files, the index, and a picture of what that left.

use std::collections::BTreeSet;
use std::thread;

use ic_base::{CheckpointId, RestoreId, Result};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::git;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{Checkpoint, Kind as CheckpointKind, Link};
use ic_checkpoint::restore::apply::{self, Outcome};
use ic_checkpoint::restore::journal;
use ic_checkpoint::restore::plan::Plan;
use ic_checkpoint::rootfs::RootDir;

use super::super::git::GitRestore;
use super::super::shot::{Purpose, Shot};
use super::super::workspace::Workspace;
use super::request::Watch;

/// What a restore did.
pub(super) struct Done {
    pub(super) steps: u64,
    pub(super) failed: Vec<(PathText, String)>,
    /// Attributes that did not come back.
    pub(super) not_kept: Vec<(PathText, String)>,
    pub(super) restored_id: CheckpointId,
    /// The tree and git as the restore left them.
    pub(super) left: Shot,
}

impl Workspace<'_> {
    /// Applies a plan that is in the journal, verifies the result, and records what it left. `touched`: only these paths
    /// were changed since the last capture, by the plan.
    pub(super) fn carry_out(
        &self,
        id: &RestoreId,
        target: &Checkpoint,
        plan: &Plan,
        git: Option<&GitRestore>,
        touched: Option<BTreeSet<Vec<u8>>>,
        watch: &Watch,
    ) -> Result<Done> {
        // On record before the first write: whoever comes after a death applies the same plan again.
        self.kernel.write_late_too(|tx, now| journal::begin(tx, now, id))?;
        let is_clean = git.is_some_and(|git| !git.target.dirty);
        let git = git.filter(|git| !git.plan.is_empty());
        let mut git_failed = None;
        if let Some(git) = git {
            let GitRestore { plan, target, current, .. } = git;
            let moved = git::apply_refs(&self.root, plan, target, current, id.as_str(), &self.objects);
            git_failed = moved.err();
        }
        let root = RootDir::open(&self.root)?;
        let mut outcome = apply::apply(&self.objects, &root, plan, id, &watch.apply);
        let link = Link {
            name: None,
            message: Some(format!("after the restore of {}", target.id.short())),
            ..target.link.clone()
        };
        let purpose = Purpose {
            parent: Some(target.id.clone()),
            touched: touched.filter(|_| git.is_none()),
            ..Purpose::new(CheckpointKind::Restored, link)
        };
        // What was restored is looked at while it goes to the disk.
        let shot = while_syncing(&root, || {
            if let Some(GitRestore { plan, target, current, .. }) = git
                && git_failed.is_none()
                && (plan.index || plan.head || !plan.refs.is_empty())
            {
                git_failed = git::apply_index(&self.root, target, current, &self.objects).err();
            }
            if is_clean {
                git::look_again(&self.root, &plan.steps.iter().map(|step| step.path.0.clone()).collect());
            }
            self.shoot_restored(plan, purpose)
        })?;
        if let Some(error) = git_failed {
            outcome.failed.push((PathText(b".git".to_vec()), error.message().to_owned()));
        }
        self.verify(plan, &shot, &mut outcome)?;
        Self::require_ties(plan, &shot, &mut outcome);
        let failed = outcome.failed.len();
        let restored_id = self.kernel.write_late_too(|tx, now| {
            let restored = shot.record(tx, now, None)?;
            let run_id = target.link.run_id.as_ref();
            journal::finish(tx, now, id, run_id, &target.id, &restored.id, failed)?;
            Ok(restored.id)
        })?;
        let Outcome { done: steps, failed, not_kept, .. } = outcome;
        Ok(Done { steps, failed, not_kept, restored_id, left: shot })
    }

    /// A picture of what a restore left. What a rule hides is part of it all the same: a redo goes back to it.
    fn shoot_restored(&self, plan: &Plan, purpose: Purpose) -> Result<Shot> {
        let shot = self.shoot(purpose.clone(), &Progress::default())?;
        let hidden = self.hidden(plan, &shot)?;
        if hidden.is_empty() {
            return Ok(shot);
        }
        self.shoot(Purpose { force: hidden, ..purpose }, &Progress::default())
    }
}

/// Does some work while all that was written to the tree goes to the disk, once for the whole tree: a sync for each file would make the disk
/// the limit of every restore. It is there when this returns.
fn while_syncing<T>(root: &RootDir, work: impl FnOnce() -> Result<T>) -> Result<T> {
    thread::scope(|scope| {
        let sync = thread::Builder::new().spawn_scoped(scope, || root.sync());
        let done = work();
        // Without a thread to spare, it is written now.
        sync.ok().and_then(|sync| sync.join().ok()).unwrap_or_else(|| root.sync())?;
        done
    })
}
