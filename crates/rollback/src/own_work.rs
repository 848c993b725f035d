//! What one dispatch did to the tree: what differs between the looks at the tree from its start to its end, as far as nobody else was at work
//! between two of them.

use ic_base::{Code, Diagnosis, DispatchId, Result, Seq};
use ic_checkpoint::diff;
use ic_checkpoint::git::{self, Commit};
use ic_checkpoint::manifest::Manifest;
use ic_checkpoint::record::{self, Checkpoint, Kind};
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::{Dispatch, code, dispatch};
use ic_phase::run;
use ic_store::Snapshot;

use ic_worktree::{Workspace, root_of};

/// The tree before a dispatch, and what the dispatch did to it.
pub(super) struct OwnWork {
    /// The checkpoint that was taken as it began.
    pub(super) before: Checkpoint,
    /// What it changed.
    pub(super) changes: Own,
    /// The commits that were made meanwhile, newest first.
    pub(super) commits: Vec<OwnCommit>,
}

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

/// What a dispatch that has ended did to the tree of its run. Errors: `no_checkpoint` if the tree was not captured as it began, or as it
/// ended, or is not kept any more.
pub(super) fn of_dispatch(workspace: &Workspace<'_>, id: &DispatchId) -> Result<OwnWork> {
    let (dispatch, captures, others, recorded) = workspace.kernel.read(|snapshot| {
        let dispatch = dispatch::resolve(snapshot, id.as_str())?;
        let run = run::get(snapshot, &dispatch.run_id)?;
        let place = ic_point::place_of(snapshot, &run, &dispatch)?;
        let before = ic_point::checkpoint_at(snapshot, &run, place.seq)?;
        let before = kept(before, &dispatch, "as it began")?;
        let after = kept(at_end(snapshot, &dispatch)?, &dispatch, "as it ended")?;
        let captures = record::of_root_between(snapshot, &workspace.root, before.seq, after.seq)?;
        let mut others = dispatch::at_work_between(snapshot, before.seq, after.seq, before.created_at)?;
        others.retain(|other| other.id != dispatch.id);
        let mut here = Vec::new();
        for other in others {
            if root_of(&run::get(snapshot, &other.run_id)?.project_dir) == workspace.root {
                here.push(other);
            }
        }
        let recorded = code::commits_of(snapshot, &dispatch.id)?;
        let recorded: Vec<String> = recorded.into_iter().rev().map(|commit| commit.sha).collect();
        Ok((dispatch, captures, here, recorded))
    })?;
    let mut changes = Own::default();
    for pair in captures.windows(2) {
        // What a restore changed is nobody's work: it is undone as a restore.
        if pair[1].kind == Kind::Restored {
            continue;
        }
        let beside = named(&others, (&pair[0], &pair[1]));
        diff::diff(&workspace.objects, Some(&pair[0].tree), Some(&pair[1].tree), &mut |difference| {
            match &beside {
                None => changes.add(difference),
                Some(beside) if difference.change().is_some() => changes.add_shared(difference.path, beside),
                Some(_) => {}
            }
            Ok(())
        })?;
    }
    let commits = commits_of(workspace, &captures, &recorded, !others.is_empty())?;
    let before = captures.into_iter().next().ok_or_else(|| missing(&dispatch, "as it began"))?;
    Ok(OwnWork { before, changes, commits })
}

/// The commits that were recorded for a dispatch, and those made from its first look at the tree to its last.
fn commits_of(
    workspace: &Workspace<'_>,
    captures: &[Checkpoint],
    recorded: &[String],
    is_shared: bool,
) -> Result<Vec<OwnCommit>> {
    const MOST: usize = 200;
    let head = |checkpoint: Option<&Checkpoint>| -> Result<Option<String>> {
        let Some(checkpoint) = checkpoint else { return Ok(None) };
        Ok(Manifest::read(&workspace.objects, &checkpoint.manifest)?.git.and_then(|git| git.head))
    };
    let ends = head(captures.first())?.zip(head(captures.last())?);
    let mut shas =
        ends.map(|(from, to)| git::commits_between(&workspace.root, &from, &to, MOST)).unwrap_or_default();
    let is_own = |sha: &str| recorded.iter().any(|own| sha.starts_with(own.as_str()));
    let lost: Vec<String> = recorded
        .iter()
        .filter(|own| !shas.iter().any(|sha| sha.starts_with(own.as_str())))
        .cloned()
        .collect();
    shas.extend(lost);
    let found = git::commits(&workspace.root, &shas).into_iter();
    Ok(found.map(|commit| OwnCommit { is_shared: is_shared && !is_own(&commit.sha), commit }).collect())
}

/// Who was at work at any time between two looks at the tree; `None`: nobody.
fn named(others: &[Dispatch], (from, to): (&Checkpoint, &Checkpoint)) -> Option<String> {
    // The look with which one ended comes right before the event of its end.
    let has_ended = |other: &Dispatch, end: Seq| {
        end <= from.seq || (end == from.seq + 1 && from.link.dispatch_id.as_ref() == Some(&other.id))
    };
    let is_beside = |other: &&Dispatch| {
        other.place() < to.seq && !other.finished_seq.is_some_and(|end| has_ended(other, end))
    };
    let names: Vec<String> = others
        .iter()
        .filter(is_beside)
        .map(|other| match &other.work.name {
            Some(name) => format!("{} ({})", ic_base::title(name), other.id.short()),
            None => other.id.short().to_owned(),
        })
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The look at the tree with which a dispatch ended: the event right before the one that ended it.
fn at_end(snapshot: &Snapshot<'_>, dispatch: &Dispatch) -> Result<Option<Checkpoint>> {
    match dispatch.finished_seq {
        Some(end) => record::of_event(snapshot, end - 1),
        None => Ok(None),
    }
}

fn kept(found: Option<Checkpoint>, dispatch: &Dispatch, when: &str) -> Result<Checkpoint> {
    found.filter(|checkpoint| checkpoint.pruned_at.is_none()).ok_or_else(|| missing(dispatch, when))
}

fn missing(dispatch: &Dispatch, when: &str) -> Diagnosis {
    let id = dispatch.id.short();
    Diagnosis::new(
        Code::NoCheckpoint,
        format!("There is no checkpoint of the tree {when}, so the changes of the dispatch {id} cannot be told from others."),
    )
    .hint(format!("undo it with all that came after it: ic undo dispatch:{id} --dry-run; or its record and effects alone: ic undo --dispatch {id} --layer=workflow,effects --yes"))
    .detail("dispatch_id", dispatch.id.as_str())
}
