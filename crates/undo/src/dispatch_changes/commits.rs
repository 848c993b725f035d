//! The commits that were made during one piece of work, and whose they are.

use std::collections::HashSet;

use ic_base::{Result, Timestamp};
use ic_checkpoint::diff::DiffState;
use ic_checkpoint::git::{self, GitCommit, GitState};
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::code;
use ic_ledger::Snapshot;
use ic_ledger::events::Hash;
use ic_worktree::Workspace;

/// A commit that was made during a dispatch, or recorded for it. The undo of one dispatch moves no branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommit {
    /// The commit, and where it is now.
    pub commit: GitCommit,
    /// It is checked out.
    pub is_tip: bool,
    /// What is checked out has it among its ancestors, or is it.
    pub is_reached: bool,
    /// Whether it may have more than the work: it is older, it has what others had changed, or others worked at the same time and it was not
    /// recorded for this dispatch alone.
    pub is_shared: bool,
}

ic_base::words! {
    /// Where a commit is that a run made.
    pub enum CommitState {
        /// It is the commit that is checked out.
        Tip = "tip",
        /// Other commits were made on top of it.
        Buried = "buried",
        /// A remote already has it.
        Pushed = "pushed",
        /// It joins several histories.
        Merge = "merge",
        /// It may have more than the work: others worked at the same time, it has what they had changed, or it is older than the work, which
        /// rebased or amended it.
        Shared = "shared",
        /// The present HEAD does not have it: it is on another branch, or was rewritten.
        Elsewhere = "elsewhere",
    }
}

impl OwnCommit {
    /// What a person must know before it is reverted: the first of these that applies.
    pub fn state(&self) -> CommitState {
        match &self.commit {
            _ if !self.is_reached => CommitState::Elsewhere,
            commit if commit.is_merge => CommitState::Merge,
            _ if self.is_shared => CommitState::Shared,
            commit if commit.is_pushed => CommitState::Pushed,
            _ if self.is_tip => CommitState::Tip,
            _ => CommitState::Buried,
        }
    }

    /// The command that makes a commit which undoes it; `None` where it is not reached from HEAD, or may be the work of others.
    pub fn revert(&self) -> Option<String> {
        let commit = &self.commit;
        let short = commit.sha.get(..12).unwrap_or(&commit.sha);
        let parent = if commit.is_merge { " -m 1" } else { "" };
        let is_its = self.is_reached && !self.is_shared;
        is_its.then(|| format!("git revert --no-edit{parent} {short}"))
    }
}

/// The commits that were made here between the first checkpoint and the last, newest first.
pub(super) fn made_between(workspace: &Workspace<'_>, captures: &[CheckpointRecord]) -> Result<Vec<String>> {
    /// No more commits of one piece of work are named.
    const MOST: usize = 200;
    let mut made = heads_between(workspace, captures, MOST)?;
    let brought = brought_of(workspace, captures, &made)?;
    made.retain(|sha| !brought.contains(sha));
    Ok(made)
}

/// The commits that are reached from HEAD at the last checkpoint and were not at the first, newest first.
pub(super) fn heads_between(
    workspace: &Workspace<'_>,
    captures: &[CheckpointRecord],
    at_most: usize,
) -> Result<Vec<String>> {
    let first = captures.iter().find(|look| has_git(look));
    let ends = head_of(workspace, first)?.zip(head_of(workspace, last_of(captures))?);
    let between = ends.map(|(from, to)| git::commits_between(&workspace.root, &from, &to, at_most));
    Ok(between.unwrap_or_default())
}

/// Checkpoints around a call do not record git's state.
pub(super) fn has_git(look: &CheckpointRecord) -> bool {
    !look.link.of_call
}

/// Git's state at the first of these checkpoints that has one, and at the last. `None`: there is none.
pub(super) fn git_ends(workspace: &Workspace<'_>, looks: &[CheckpointRecord]) -> Result<Option<[GitState; 2]>> {
    let Some((first, last)) = looks.iter().find(|look| has_git(look)).zip(last_of(looks)) else { return Ok(None) };
    Ok(workspace.git_at(first)?.zip(workspace.git_at(last)?).map(|(first, last)| [first, last]))
}

pub(super) fn last_of(captures: &[CheckpointRecord]) -> Option<&CheckpointRecord> {
    captures.iter().rfind(|look| has_git(look))
}

pub(super) fn head_of(workspace: &Workspace<'_>, look: Option<&CheckpointRecord>) -> Result<Option<String>> {
    Ok(look.map(|look| workspace.git_at(look)).transpose()?.flatten().and_then(|git| git.head))
}

/// Those of these commits that were not made during the work: a ref reached them before it, or a pull, a merge or a switch brought them.
pub(super) fn brought_of(
    workspace: &Workspace<'_>,
    captures: &[CheckpointRecord],
    shas: &[String],
) -> Result<Vec<String>> {
    let Some(first) = captures.iter().find(|look| has_git(look)).filter(|_| !shas.is_empty()) else {
        return Ok(Vec::new());
    };
    let git = workspace.git_at(first)?;
    let refs: Vec<String> = git.into_iter().flat_map(|git| git.refs).map(|(_, sha)| sha).collect();
    let mut fresh = git::not_reached(&workspace.root, shas, &refs);
    // Git is asked only if a pull, a merge, a switch or a reset led HEAD to one of them: nothing else brings commits.
    let moved = git::moved_to(&workspace.root);
    // A program that keeps no log of HEAD may have made all of them.
    if let Some(made) = git::committed_since(&workspace.root, 0).filter(|_| shas.iter().any(|sha| moved.contains(sha)))
    {
        fresh.retain(|sha| made.contains(sha));
    }
    Ok(shas.iter().filter(|sha| !fresh.contains(sha)).cloned().collect())
}

/// Leaves out the commits that other work recorded, and this one did not.
pub(super) fn leave_recorded(snapshot: &Snapshot<'_>, shas: &mut Vec<String>, recorded: &[String]) -> Result<()> {
    let mut own = Vec::new();
    for sha in shas.drain(..) {
        if is_recorded(recorded, &sha) || !code::is_recorded(snapshot, &sha)? {
            own.push(sha);
        }
    }
    *shas = own;
    Ok(())
}

pub(super) fn is_recorded(recorded: &[String], sha: &str) -> bool {
    recorded.iter().any(|own| sha.starts_with(own.as_str()))
}

/// The commits that were made during work, and those that were recorded for it. `began`: when the work began, and whether others worked at
/// the same time; `changes`: what it changed.
pub(super) fn commits_of(
    workspace: &Workspace<'_>,
    mut shas: Vec<String>,
    recorded: &[String],
    (began, is_shared): (Timestamp, bool),
    changes: &Own,
) -> Vec<OwnCommit> {
    // A rebase or an amend drops commits that were recorded; they are named too.
    let lost: Vec<String> =
        recorded.iter().filter(|own| !shas.iter().any(|sha| sha.starts_with(own.as_str()))).cloned().collect();
    shas.extend(lost);
    let mut commits = own(workspace, &shas, |commit| {
        // What the work rebased or amended, others wrote.
        let is_older = commit.written_at.is_some_and(|at| at < began.millis() / 1000);
        is_older || is_shared && !is_recorded(recorded, &commit.sha)
    });
    share_mixed(workspace, &mut commits, changes);
    commits
}

/// These commits, and where they are now.
pub(super) fn own(
    workspace: &Workspace<'_>,
    shas: &[String],
    is_shared: impl Fn(&GitCommit) -> bool,
) -> Vec<OwnCommit> {
    let commits = git::commits(&workspace.root, shas);
    let known: Vec<String> = commits.iter().filter(|one| one.written_at.is_some()).map(|one| one.sha.clone()).collect();
    if commits.is_empty() {
        return Vec::new();
    }
    let (tip, out) = (git::head(&workspace.root), git::not_reached(&workspace.root, &known, &["HEAD".to_owned()]));
    let own = |commit: GitCommit| OwnCommit {
        is_shared: is_shared(&commit),
        is_tip: tip.as_ref() == Some(&commit.sha),
        is_reached: known.contains(&commit.sha) && !out.contains(&commit.sha),
        commit,
    };
    commits.into_iter().map(own).collect()
}

/// Marks the commits that have more than what the work changed: a revert would take that out, too.
fn share_mixed(workspace: &Workspace<'_>, commits: &mut [OwnCommit], changes: &Own) {
    let known = changes.known();
    let hash = |state: &Option<DiffState>| match state {
        Some(DiffState::File { hash, .. }) => Some(*hash),
        _ => None,
    };
    let mut made = HashSet::new();
    for one in commits.iter_mut().rev().filter(|one| one.revert().is_some()) {
        let sha = &one.commit.sha;
        let entries = git::changed_entries(&workspace.root, std::slice::from_ref(sha)).into_iter();
        let asked: Vec<_> =
            entries.flat_map(|(path, _)| [(format!("{sha}^1"), path.clone()), (sha.clone(), path)]).collect();
        let contents: Vec<_> =
            git::contents(&workspace.root, &asked).iter().map(|text| text.as_deref().map(hash_of)).collect();
        let ends: Vec<_> = asked.chunks(2).map(|asked| &asked[0].1).zip(contents.chunks(2)).collect();
        let is_its = |(path, ends): &(&Vec<u8>, &[Option<Hash>])| {
            let [before, after] = [ends[0], ends[1]];
            let is_state = |text| changes.pairs(path).iter().any(|(from, to)| [from, to].map(hash).contains(&text));
            // Before it stood what the work found or had made there; anything else is a change of others that it took in. A file that it
            // removed has nothing of them.
            let is_met = after.is_none() || is_state(before) || made.contains(&((*path).clone(), before));
            // Where others changed the path too, they may have done so before this commit.
            known.contains(*path) && is_met && (!changes.is_of_several(path) || is_state(after))
        };
        one.is_shared = !ends.iter().all(is_its);
        if !one.is_shared {
            made.extend(ends.into_iter().map(|(path, ends)| (path.clone(), ends[1])));
        }
    }
}
