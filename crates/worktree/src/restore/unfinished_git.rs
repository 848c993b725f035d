//! Git's part of a restore that was interrupted: what is left to do, and the locks that its git left where that was killed, too.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::git::{self, GitState, LeftLock, StandingLock};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use serde_json::Value;

use super::super::capture::{GitPart, Purpose};
use super::super::git::GitRestore;
use super::super::workspace::Workspace;

/// Locks that stand in the way of a restore that was interrupted.
#[derive(Default)]
struct Locks {
    /// All that there are.
    all: Vec<PathBuf>,
    /// Those that no process holds, so that they can be removed.
    left: Vec<LeftLock>,
    /// The lock that must stay, because a git process may hold it.
    standing: Option<StandingLock>,
}

impl Workspace<'_> {
    /// What is left to do about git after an interruption: nothing, once it is where the restore was to take it; and
    /// nothing either if others have moved it since. Locks that its git left, and that no process holds, are removed.
    pub(super) fn settle_git(&self, restore: &RestoreRecord, target: &CheckpointRecord) -> Result<Option<GitRestore>> {
        if !restore.strategy.has_git() {
            return Ok(None);
        }
        // What git was before the restore decides both what is left to do and which locks may be its own.
        let before = self.git_before(restore)?;
        let locks = self.locks(restore, target, before.as_ref())?;
        git::remove_locks(&locks.left)?;
        // All locks count as gone for this look. Whether one that stays is in the way is decided by what is left to do.
        let left = self.left_of_git(target, before.as_ref(), &locks.all);
        let left = left.map_err(|error| of_unfinished(error, target))?;
        match &locks.standing {
            Some(lock) if left.as_ref().is_some_and(|left| !left.plan.is_empty()) => {
                Err(of_unfinished(lock.diagnosis(), target))
            }
            _ => Ok(left),
        }
    }

    /// Locks that are removed when the restore of this root that was interrupted is finished, for a dry run. Errors: those of
    /// [`Self::settle_git`].
    pub(super) fn locks_gone_by_then(&self) -> Result<Vec<PathBuf>> {
        let unfinished = self.kernel.read(|snapshot| journal::unfinished(snapshot, &self.root))?;
        let Some(restore) = unfinished.filter(|restore| restore.strategy.has_git()) else {
            return Ok(Vec::new());
        };
        let target = self.kernel.read(|snapshot| record::get(snapshot, &restore.target_id))?;
        let before = self.git_before(&restore)?;
        let locks = self.locks(&restore, &target, before.as_ref())?;
        if let Some(lock) = &locks.standing {
            let left = self.left_of_git(&target, before.as_ref(), &locks.all);
            let left = left.map_err(|error| of_unfinished(error, &target))?;
            if left.is_some_and(|left| !left.plan.is_empty()) {
                return Err(of_unfinished(lock.diagnosis(), &target));
            }
        }
        Ok(locks.left.iter().map(|lock| lock.path().to_owned()).collect())
    }

    /// What is left to do about git where nothing of it is done now, for a dry run. Errors: those of [`Self::settle_git`].
    pub(super) fn left_for_git(
        &self,
        restore: &RestoreRecord,
        target: &CheckpointRecord,
    ) -> Result<Option<GitRestore>> {
        if !restore.strategy.has_git() {
            return Ok(None);
        }
        let before = self.git_before(restore)?;
        let locks = self.locks(restore, target, before.as_ref())?;
        let left = self.left_of_git(target, before.as_ref(), &locks.all);
        left.map_err(|error| of_unfinished(error, target))
    }

    fn git_before(&self, restore: &RestoreRecord) -> Result<Option<GitState>> {
        let safety = self.kernel.read(|snapshot| record::get(snapshot, &restore.safety_id))?;
        self.git_at(&safety)
    }

    fn locks(&self, restore: &RestoreRecord, target: &CheckpointRecord, before: Option<&GitState>) -> Result<Locks> {
        let Some(before) = before else { return Ok(Locks::default()) };
        let wanted = self.wanted_git(target, before, None, &[])?;
        let plan = git::moves(&wanted.target, before);
        let all = git::locks_of(&self.root, restore.id.as_str(), Some(&plan));
        // A restore that was only prepared has started no git that takes locks: a lock there is another process's.
        let has_begun = restore.progress == journal::RestoreProgress::Applying;
        let begun = has_begun.then(|| (restore.created_at, self.kernel.context.now()));
        Ok(match git::left_locks(&self.root, &all, begun) {
            Ok(left) => Locks { all, left, standing: None },
            Err(standing) => Locks { all, left: Vec::new(), standing: Some(standing) },
        })
    }

    fn left_of_git(
        &self,
        target: &CheckpointRecord,
        before: Option<&GitState>,
        past: &[PathBuf],
    ) -> Result<Option<GitRestore>> {
        let look = Purpose::look(GitPart::Look, BTreeSet::new());
        let shot = self.shoot(look, &CaptureProgress::default())?;
        // Forced: whether others' commits may leave was decided when the restore was begun.
        let git = self.plan_git(target, &shot, true, (None, &[]), past)?;
        let known = |state: &GitState, name: &[u8]| {
            state.refs.iter().find(|(known, _)| known.0 == name).map(|(_, commit)| commit.clone())
        };
        // A ref in this plan is not where it is to go. If it is not where the restore found it either, others moved it.
        let was_moved =
            git.plan.refs.iter().any(|moved| before.is_none_or(|before| known(before, &moved.name) != moved.from));
        Ok(if was_moved { None } else { Some(git) })
    }
}

/// An error that refuses to let a restore be finished: to restore files alone is no way around it, since this has to be finished first.
fn of_unfinished(error: Diagnosis, target: &CheckpointRecord) -> Diagnosis {
    let lock = error.details().get("lock").and_then(Value::as_str).map(shell_word);
    let is_around = error.get_hint().is_none_or(|hint| hint.contains("--strategy files-only"));
    let hint = match (error.code(), lock) {
        (Code::GitBusy, Some(lock)) => {
            format!("try again; when no git runs here, remove the lock that one left: rm {lock}; then call again")
        }
        (Code::GitBusy, None) => "try again".to_owned(),
        (Code::GitInProgress, _) => "finish or abort it; then call again".to_owned(),
        _ => "fix that; then call again".to_owned(),
    };
    let error = if is_around { error.hint(hint) } else { error };
    error
        .but(&format!("an interrupted restore of checkpoint {} has to be finished first", target.id.short()))
        .detail("unfinished", target.id.as_str())
}
