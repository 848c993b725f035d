//! What is asked of a restore, and what became of it.

use super::super::git::{GitRestore, Stop};
use super::super::workspace::{Warning, Which};
use ic_base::{CheckpointId, Diagnosis};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::apply::ApplyProgress;
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_checkpoint::restore::plan::RestorePlan;
use ic_checkpoint::restore::reverse::LineDecision;
use ic_kernel::journal::{Force, PathDecisions};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

ic_base::words! {
    /// What became of a restore.
    pub enum RestoreStatus {
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

/// How far a restore is, to be read from another thread.
#[derive(Debug, Default)]
pub struct RestoreWatch {
    /// The capture before and after the restore.
    pub capture: CaptureProgress,
    /// The steps that change files.
    pub apply: ApplyProgress,
    /// Set from elsewhere. What is restored is restored wholly; a rollback over several layers begins no further step.
    pub interrupted: Arc<AtomicBool>,
}

/// What is to be restored, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreRequest<'a> {
    /// The checkpoint to restore; by default the newest that no restore made.
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
    /// What was decided about single paths in conflict, whatever is decided about the others.
    pub decisions: Option<&'a PathDecisions>,
    /// A checkpoint of another root is restored into this one.
    pub into: bool,
    /// The whole tree is compared with the checkpoint after the restore, and not only what it changed.
    pub compares_all: bool,
    /// Others may work in the tree during the restore: only paths of one piece of work change.
    pub beside_others: bool,
    /// The plan must be this one.
    pub expect_plan: Option<&'a str>,
}

impl RestoreRequest<'_> {
    /// What is decided about a path in conflict; `None`: nothing.
    pub fn decision(&self, path: &[u8]) -> Option<LineDecision> {
        let flags = (self.keep_theirs, self.force.files);
        self.decisions.unwrap_or(&PathDecisions::default()).about_or(path, flags)
    }

    /// The conflicts that nothing decides.
    pub(super) fn undecided<'c>(&self, conflicts: &'c [Conflict]) -> Vec<&'c Conflict> {
        conflicts.iter().filter(|one| self.decision(&one.path.0).is_none()).collect()
    }
}

/// A path that others changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path from the root of the working tree.
    pub path: PathText,
    /// For people: which run recorded the path, or when it was changed.
    pub reason: String,
}

impl RestoreReport {
    /// Whether something is not as it was, and cannot be restored: it is named.
    pub fn is_partial(&self) -> bool {
        self.leaves_any() || !self.plan.not_kept.is_empty()
    }

    /// Whether a path stays that is not as the checkpoint has it: `plan.skipped` or `repositories` names it.
    pub fn leaves_any(&self) -> bool {
        self.lacks_any || !self.plan.left_changed.is_empty()
    }

    /// Adds conflicts at paths that have none yet.
    pub fn add_conflicts(&mut self, more: Vec<Conflict>) {
        let known: BTreeSet<PathText> = self.conflicts.iter().map(|one| one.path.clone()).collect();
        self.conflicts.extend(more.into_iter().filter(|one| !known.contains(&one.path)));
        self.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Removes paths that another step restored from the list of what stays.
    pub fn forget_left(&mut self, is_restored: impl Fn(&PathText) -> bool) {
        self.parts_left.retain(|path| !is_restored(path));
        self.plan.left_changed.retain(|path| !is_restored(path));
        if self.status == RestoreStatus::Partial && self.failed.is_empty() && !self.leaves_any() {
            self.status = RestoreStatus::Restored;
        }
    }
}

/// What a restore did, or would do.
#[derive(Debug)]
pub struct RestoreReport {
    /// The checkpoint that was restored.
    pub target: CheckpointRecord,
    /// The restore that is undone, or made again, as the journal has it; `None` where neither is.
    pub of_restore: Option<RestoreRecord>,
    /// What was about to change; `None` where nothing was written.
    pub safety_id: Option<CheckpointId>,
    /// What the restore left.
    pub restored_id: Option<CheckpointId>,
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// Whether files, git's state or both were restored.
    pub strategy: Strategy,
    /// What became of it.
    pub status: RestoreStatus,
    /// Every change of files, and what was left alone.
    pub plan: RestorePlan,
    /// What is done about git; `None` if its state is not restored.
    pub git: Option<GitRestore>,
    /// Paths whose entries of the index go back though git's state is not restored: the undone work had staged them. Of a redo: that are
    /// staged again.
    pub index: Vec<PathText>,
    /// Names the plan: the same for the same changes.
    pub plan_hash: String,
    /// Paths that others changed since the target, as far as they are undecided.
    pub conflicts: Vec<Conflict>,
    /// What the real call would answer instead of restoring, with the same flags; only of a dry run.
    pub refusal: Option<Diagnosis>,
    /// Paths that could not be changed, and why.
    pub failed: Vec<(PathText, String)>,
    /// Paths that cannot be compared with the checkpoint, because it or the capture of the tree has no content of them; and why.
    pub not_compared: Vec<(PathText, String)>,
    /// What is not as the checkpoint has it, after the restore, though nothing above says so; and why. Git's state is named `.git`.
    pub differs: Vec<(PathText, String)>,
    /// Other work trees that were made or removed since, or that the checkpoint holds files of, and what is to be known of each: they are
    /// places of their own, and stay as they are. Those outside of the root have their whole paths.
    pub work_trees: Vec<(PathText, String)>,
    /// Repositories of which files go back and history stays, with the command that moves it: a call that leaves any ends with exit 4.
    pub repositories: Vec<(PathText, String)>,
    /// Whether a path that the checkpoint holds, or that changed since, was not restored: `plan.skipped` names it.
    pub lacks_any: bool,
    /// Nothing was left out by paths, by owner or by what an earlier restore changed.
    pub is_whole: bool,
    /// Paths that did not become as the checkpoint has them because others changed them: what the run did there is merged out.
    pub beside: BTreeSet<PathText>,
    /// Only what one piece of work did is undone, which began at the target; the tree need not become as the target has it.
    pub is_without: bool,
    /// Paths at which something of that work stays: `plan.skipped` says why.
    pub parts_left: Vec<PathText>,
    /// Merged texts that the plan writes and no checkpoint holds yet.
    pub texts: Vec<Vec<u8>>,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// What a deed did to the tree before a restore.
#[derive(Debug, Default)]
pub struct EarlierDeeds {
    /// The checkpoints from before and after each part of it, oldest first; without a second one it died in that part.
    pub spans: Vec<(CheckpointId, Option<CheckpointId>)>,
    /// The checkpoint with which an earlier attempt at this restore ended: whatever differs from it is of others.
    pub stopped_at: Option<CheckpointId>,
}

impl EarlierDeeds {
    /// The checkpoints around each time in which the deed was stopped; without a second one that lasted until now.
    pub(super) fn stops(&self) -> Vec<Stop<'_>> {
        //   before ── the deed ── after ── stopped ── before ── the deed ── after ── stopped ── now
        let begun = self.spans.iter().skip(1).map(|(before, _)| Some(before)).chain([None]);
        let all = self.spans.iter().zip(begun);
        let mut stops: Vec<_> = all.filter_map(|((_, after), until)| Some((after.as_ref()?, until))).collect();
        if let Some(stopped_at) = &self.stopped_at {
            stops.retain(|(_, until)| until.is_some());
            stops.push((stopped_at, None));
        }
        stops
    }
}
