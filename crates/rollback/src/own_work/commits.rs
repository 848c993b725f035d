//! The commits that were made while one piece of work was done: whose they are, and what of the files they brought.

use std::collections::HashMap;

use ic_base::{DispatchId, Result, Timestamp};
use ic_checkpoint::diff;
use ic_checkpoint::git::{self, Commit};
use ic_checkpoint::manifest::Manifest;
use ic_checkpoint::record::Checkpoint;
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::report;
use ic_session::attribution::Attribution;
use ic_store::path_bytes;
use ic_worktree::Workspace;

/// A commit that was made while a dispatch was at work, or recorded for it. The undo of one dispatch moves no branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommit {
    /// The commit, and where it is now.
    pub commit: Commit,
    /// Others worked meanwhile, and it was not recorded for this dispatch alone: nobody knows whose it is.
    pub is_shared: bool,
}

ic_base::words! {
    /// Where a commit is that a run made.
    pub enum CommitState {
        /// It is checked out.
        Tip = "tip",
        /// Others are above it.
        Buried = "buried",
        /// A remote has it.
        Pushed = "pushed",
        /// It joins several histories.
        Merge = "merge",
        /// Others worked meanwhile: it may be theirs.
        Shared = "shared",
        /// What is checked out does not have it.
        Rewritten = "rewritten",
    }
}

impl OwnCommit {
    /// What a person must know before it is reverted: the first of these that is so.
    pub fn state(&self) -> CommitState {
        match &self.commit {
            commit if !commit.is_reached => CommitState::Rewritten,
            commit if commit.is_merge => CommitState::Merge,
            _ if self.is_shared => CommitState::Shared,
            commit if commit.is_pushed => CommitState::Pushed,
            commit if commit.is_tip => CommitState::Tip,
            _ => CommitState::Buried,
        }
    }

    /// The command that makes a commit which undoes it; `None` where nothing of it is checked out.
    pub fn revert(&self) -> Option<String> {
        let commit = &self.commit;
        let short = commit.sha.get(..12).unwrap_or(&commit.sha);
        let parent = if commit.is_merge { " -m 1" } else { "" };
        commit.is_reached.then(|| format!("git revert --no-edit{parent} {short}"))
    }
}

/// What commits that it did not make brought is no work of its own, though the files came while it worked. What it had made before such a
/// commit took it from the tree is.
pub(super) fn leave_brought(
    workspace: &Workspace<'_>,
    changes: &mut Own,
    (attribution, ids): (&Attribution, &[DispatchId]),
    recorded: &[String],
) -> Result<()> {
    // What is fetched at once seldom is more.
    let mut brought = heads_between(workspace, &attribution.looks, 10_000)?;
    brought.retain(|sha| !is_recorded(recorded, sha));
    if brought.is_empty() {
        return Ok(());
    }
    let log = git::log_of(&workspace.root, &brought)?;
    let (known, made) = (changes.paths(), last_made(workspace, attribution, ids)?);
    let taken = git::took_from_tree(&workspace.root);
    for commit in report::parse(&log)?.commits {
        // Of its time the seconds are known: what was made in the same one may have come with it.
        let since = taken.get(&commit.sha).map_or(0, |seconds| seconds.saturating_mul(1000));
        let paths = commit.files.iter().map(|path| path_bytes(path).to_vec());
        for path in paths.filter(|path| known.contains(path)) {
            if made.get(&path).is_none_or(|made| made.millis() >= since) {
                changes.leave(path, "a commit that this work did not make has it");
            }
        }
    }
    Ok(())
}

/// By when each path was as the work made it last.
fn last_made(
    workspace: &Workspace<'_>,
    attribution: &Attribution,
    ids: &[DispatchId],
) -> Result<HashMap<Vec<u8>, Timestamp>> {
    let mut last = HashMap::new();
    for window in attribution.windows() {
        diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
            if window.owners(&difference.path).iter().any(|owner| ids.contains(&owner.id)) {
                last.insert(difference.path, window.to.created_at);
            }
            Ok(())
        })?;
    }
    Ok(last)
}

/// What the work took off a stash that was there before is no work of its own, and is nowhere else by now.
pub(super) fn leave_unstashed(
    workspace: &Workspace<'_>,
    changes: &mut Own,
    captures: &[Checkpoint],
) -> Result<()> {
    let mut looks = captures.iter().filter(|look| !look.link.of_call);
    let (Some(first), Some(last)) = (looks.next(), looks.next_back()) else { return Ok(()) };
    let stash = |look: &Checkpoint| -> Result<Vec<String>> {
        let git = Manifest::read(&workspace.objects, &look.manifest)?.git;
        Ok(git.map(|git| git.stash.into_iter().map(|entry| entry.commit).collect()).unwrap_or_default())
    };
    let (had, has) = (stash(first)?, stash(last)?);
    let known = changes.paths();
    for entry in had.iter().filter(|entry| !has.contains(entry)) {
        let paths = git::stashed_paths(&workspace.root, entry);
        for path in paths.into_iter().filter(|path| known.contains(path)) {
            changes.leave(path, "it came off the stash, where others had put it");
        }
    }
    Ok(())
}

/// The commits that are checked out at the last look and were not at the first, newest first.
pub(super) fn heads_between(
    workspace: &Workspace<'_>,
    captures: &[Checkpoint],
    at_most: usize,
) -> Result<Vec<String>> {
    // The looks around a call say nothing of git.
    let mut looks = captures.iter().filter(|look| !look.link.of_call);
    let (first, last) = (looks.next(), looks.next_back());
    let head = |look: Option<&Checkpoint>| -> Result<Option<String>> {
        let Some(look) = look else { return Ok(None) };
        Ok(Manifest::read(&workspace.objects, &look.manifest)?.git.and_then(|git| git.head))
    };
    let ends = head(first)?.zip(head(last)?);
    let between = ends.map(|(from, to)| git::commits_between(&workspace.root, &from, &to, at_most));
    Ok(between.unwrap_or_default())
}

fn is_recorded(recorded: &[String], sha: &str) -> bool {
    recorded.iter().any(|own| sha.starts_with(own.as_str()))
}

/// The commits that were made while a dispatch was at work, and those that were recorded for it.
pub(super) fn commits_of(
    workspace: &Workspace<'_>,
    mut shas: Vec<String>,
    recorded: &[String],
    is_shared: bool,
) -> Vec<OwnCommit> {
    let lost: Vec<String> = recorded
        .iter()
        .filter(|own| !shas.iter().any(|sha| sha.starts_with(own.as_str())))
        .cloned()
        .collect();
    shas.extend(lost);
    let found = git::commits(&workspace.root, &shas).into_iter();
    let own =
        |commit: Commit| OwnCommit { is_shared: is_shared && !is_recorded(recorded, &commit.sha), commit };
    found.map(own).collect()
}
