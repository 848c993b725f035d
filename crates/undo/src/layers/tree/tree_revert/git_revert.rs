//! Git in the redo of an exact undo of works whose files are merged, because others changed the tree since.

use ic_base::{CheckpointId, Code, Result};
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_worktree::{RestoreReport, RestoreRequest, Workspace};

use super::super::manual_restore::GIT;
use super::{Look, TreeBack, request};

/// The most commits that are named.
const MOST_COMMITS: usize = 10;

impl TreeBack<'_> {
    /// Adds the report of merged files, after moving git back where the undo moved it. Where others moved it since, it stays, and the
    /// report says so.
    pub(super) fn with_git(
        &self,
        mut files: RestoreReport,
        look: Look<'_>,
        reports: &mut Vec<RestoreReport>,
    ) -> Result<()> {
        // A restore of files alone moved nothing in git.
        for restore in self.restores.iter().rev().filter(|restore| restore.strategy == Strategy::Full) {
            match undo_git_restore(&self.workspace, restore, look) {
                Ok(git) if git.git.as_ref().is_some_and(|git| !git.plan.is_empty()) => reports.push(git),
                Ok(_) => {}
                Err(error) if error.code() == Code::ForeignCommits => {
                    restage(&self.workspace, restore, look)?;
                    if let Some(left) = left_commits(&self.workspace, restore)? {
                        files.differs.push((PathText(GIT.to_vec()), left));
                        files.lacks_any = true;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        // It is the last one, because it says what comes back.
        reports.push(files);
        Ok(())
    }
}

/// Undoes one restore, as far as it moved git.
fn undo_git_restore(
    workspace: &Workspace<'_>,
    restore: &RestoreRecord,
    Look { force, dry_run, watch, .. }: Look<'_>,
) -> Result<RestoreReport> {
    let request = RestoreRequest {
        dry_run,
        force,
        // No file is changed here: the caller has merged them.
        beside_others: true,
        compares_all: false,
        ..request(restore.safety_id.as_str(), Strategy::GitOnly)
    };
    ic_worktree::take_restore_back(workspace, restore, &[], &request, watch)
}

/// Stages again what a restore took off the index, except where something else was staged since.
fn restage(workspace: &Workspace<'_>, restore: &RestoreRecord, look: Look<'_>) -> Result<()> {
    let Some(left) = restore.restored_id.as_ref().filter(|_| !look.dry_run) else { return Ok(()) };
    let ends = state_of(workspace, &restore.safety_id)?.zip(state_of(workspace, left)?);
    let edits = ends.map(|(before, after)| git::unstaged_by(&workspace.objects, &before, &after)).transpose()?;
    match edits.filter(|edits| !edits.is_empty()) {
        Some(edits) => workspace.revert_entries(&edits, true),
        None => Ok(()),
    }
}

fn state_of(workspace: &Workspace<'_>, id: &CheckpointId) -> Result<Option<GitState>> {
    workspace.git_at(&workspace.kernel.read(|snapshot| record::get(snapshot, id))?)
}

/// The commits that a restore took off their branch, and that stay off it, in a sentence; `None`: it took none.
fn left_commits(workspace: &Workspace<'_>, restore: &RestoreRecord) -> Result<Option<String>> {
    let head = |id: &CheckpointId| state_of(workspace, id).map(|git| git.and_then(|git| git.head));
    let left = restore.restored_id.as_ref().map(head).transpose()?.flatten();
    let Some((from, to)) = left.zip(head(&restore.safety_id)?) else { return Ok(None) };
    let commits = git::commits_between(&workspace.root, &from, &to, MOST_COMMITS);
    let names: Vec<&str> = commits.iter().map(|sha| &sha[..sha.len().min(8)]).collect();
    Ok((!names.is_empty()).then(|| {
        format!(
            "others moved git since: these commits stay off the branch, and their files come back: {}",
            names.join(", ")
        )
    }))
}
