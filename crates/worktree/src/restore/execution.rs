//! Carrying a plan out that is in the journal: git's refs, the files, the index, and a picture of what that left.

use std::collections::BTreeSet;
use std::thread;

use ic_base::{CheckpointId, Diagnosis, RestoreId, Result};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::git::{self, Clean};
use ic_checkpoint::manifest::{CheckpointManifest, PathText};
use ic_checkpoint::record::{CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_checkpoint::restore::apply::{self, ApplyOutcome};
use ic_checkpoint::restore::journal;
use ic_checkpoint::restore::plan::RestorePlan;
use ic_checkpoint::rootfs::RootDir;

use super::super::capture::{Purpose, Shot};
use super::super::git::GitRestore;
use super::super::workspace::Workspace;
use super::request::RestoreWatch;

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
    /// Applies the plan of a restore that is begun in the journal, verifies the result, and records what it left. `touched`: only these
    /// paths were changed since the last capture, by the plan.
    pub(super) fn carry_out(
        &self,
        id: &RestoreId,
        target: &CheckpointRecord,
        plan: &RestorePlan,
        git: Option<&GitRestore>,
        touched: Option<BTreeSet<Vec<u8>>>,
        watch: &RestoreWatch,
    ) -> Result<Done> {
        //   refs ─▶ files ─▶ index ─▶ end of a merge ─▶ flush, with the capture beside ─▶ journal
        //
        // Refs move first, each from its old value. The index comes after the files, because it has
        // their times. The journal says that it is done only once all is on the disk.
        let is_clean = git.is_some_and(|git| !git.target.dirty);
        let git = git.filter(|git| !git.plan.is_empty());
        let mut git_failed = None;
        // An error of git's does not stop the files: it ends as a failed path, `.git`, beside what was restored.
        if let Some(git) = git {
            let GitRestore { plan, target, current, .. } = git;
            let moved = git::apply_refs(&self.root, plan, target, current, id.as_str(), &self.objects);
            git_failed = moved.err();
        }
        let root = RootDir::open(&self.root)?;
        let mut outcome = apply::apply(&self.objects, &root, plan, id, &watch.apply);
        let link = CheckpointLink {
            name: None,
            message: Some(format!("after the restore of {}", target.id.short())),
            ..target.link.clone()
        };
        let purpose = Purpose {
            parent: Some(target.id.clone()),
            touched: touched.filter(|_| git.is_none()),
            ..Purpose::new(CheckpointKind::Restored, link)
        };
        let moved = git.filter(|_| git_failed.is_none());
        let (is_clean, failed) = self.restore_index(plan, moved, is_clean);
        git_failed = git_failed.or(failed);
        // Ended last: while git still shows the operation, a killed restore is recognised as half done.
        let ended = moved.filter(|_| git_failed.is_none()).and_then(|git| git.plan.ends.as_deref());
        git_failed = git_failed.or(ended.and_then(|operation| git::end_operation(&self.root, operation).err()));
        let clean = is_clean.map(|since| self.clean_as(target, since)).transpose()?.flatten();
        // The tree is captured while it is synced to the disk. Git's part is not done at that time: its own syncs would wait for this one.
        let shot = while_syncing(&root, || self.shoot_restored(plan, Purpose { clean, ..purpose }))?;
        if let Some(error) = git_failed {
            // The hint says that a part of git's state has moved, and what to do.
            let why = error.get_hint().map_or_else(String::new, |hint| format!("; {hint}"));
            outcome
                .failed
                .push((PathText(b".git".to_vec()), format!("{}{why}", error.message().trim_end_matches('.'))));
        }
        self.verify(plan, &shot, &mut outcome)?;
        Self::require_ties(plan, &shot, &mut outcome);
        let failed = outcome.failed.len();
        // Also for a caller whose work was rolled back by now: the tree has changed, and the record has to say so.
        let restored_id = self.kernel.write_late_too(|tx, now| {
            let restored = shot.record(tx, now, None)?;
            let run_id = target.link.run_id.as_ref();
            journal::finish(tx, now, id, run_id, &target.id, &restored.id, failed)?;
            Ok(restored.id)
        })?;
        let ApplyOutcome { done: steps, failed, not_kept, .. } = outcome;
        Ok(Done { steps, failed, not_kept, restored_id, left: shot })
    }

    /// Makes the index what it is to be, once refs and files are. `is_meant_clean`: no file is to differ from it. Returns a moment before
    /// git looked at every file, if it did and none differs; and what failed.
    fn restore_index(
        &self,
        plan: &RestorePlan,
        git: Option<&GitRestore>,
        is_meant_clean: bool,
    ) -> (Option<i64>, Option<Diagnosis>) {
        let since = git::moment_of(&self.objects, &self.root, self.options().flush);
        let (mut is_clean, mut failed) = (false, None);
        if let Some(GitRestore { plan, target, current, .. }) = git
            && (plan.index || plan.head || !plan.refs.is_empty())
        {
            match git::apply_index(&self.root, target, current, &self.objects) {
                Ok(found) => is_clean = found,
                Err(error) => failed = Some(error),
            }
        }
        if is_meant_clean {
            let written = plan.steps.iter().map(|step| step.path.0.clone()).collect();
            is_clean = git::look_again(&self.root, &written).unwrap_or(is_clean);
        }
        (since.filter(|_| is_clean), failed)
    }

    /// What git would say of a tree that is as a checkpoint has it, where that is the last word; `since`: a moment before it looked at
    /// every file, and none differed from its index.
    fn clean_as(&self, target: &CheckpointRecord, since: i64) -> Result<Option<Clean>> {
        let recorded = CheckpointManifest::read(&self.objects, &target.manifest)?.git;
        let recorded = recorded.filter(|state| !state.dirty);
        Ok(recorded.map(|state| Clean { state, tree: target.tree, since }))
    }

    /// Captures what a restore left, with the paths that it wrote and a rule hides: a redo goes back to this checkpoint.
    fn shoot_restored(&self, plan: &RestorePlan, purpose: Purpose) -> Result<Shot> {
        let shot = self.shoot(purpose.clone(), &CaptureProgress::default())?;
        let hidden = self.hidden(plan, &shot)?;
        if hidden.is_empty() {
            return Ok(shot);
        }
        self.shoot(Purpose { force: hidden, ..purpose }, &CaptureProgress::default())
    }
}

/// Does some work while all that was written to the tree goes to the disk, once for the whole tree: a sync for each file would make the
/// disk the limit of every restore. It is there when this returns.
fn while_syncing<T>(root: &RootDir, work: impl FnOnce() -> Result<T>) -> Result<T> {
    thread::scope(|scope| {
        let sync = thread::Builder::new().spawn_scoped(scope, || root.sync());
        let done = work();
        // If no thread could be made, the sync happens here.
        sync.ok().and_then(|sync| sync.join().ok()).unwrap_or_else(|| root.sync())?;
        done
    })
}
