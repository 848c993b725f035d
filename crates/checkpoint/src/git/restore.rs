//! Restoring git's state: HEAD, branches, index, stash. The working tree is not touched.
//!
//! Refs first, in one transaction with their old values; the index after the files, because it knows their times. What is
//! moved or removed stays reachable below `refs/ic/rolled-back/<id>/`. Whatever can be refused is refused before the first
//! move. Planning anew and applying again, or applying the same again, completes what was interrupted.

mod change;
mod entries;
mod index;
mod locks;
mod move_refs;
mod outside_changes;
mod refuse;
mod stash;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};

use super::pack;
use super::program::Git;
use super::state::{BRANCHES, GitState, Stash, TAGS};
use crate::manifest::PathText;
use crate::objects::Objects;

use change::dirs;
pub use change::{GitRestorePlan, Moved};
pub use entries::revert_entries;
#[cfg(test)]
pub(super) use index::LOCK_MARK;
pub use index::{apply_index, clear_own_lock, look_again};
pub use locks::{LeftLock, StandingLock, left_locks, locks_of, remove_locks};
pub use outside_changes::{MovedByOthers, OutsideChanges, moved_by_others};
pub use refuse::{is_sparse, needs_purged};

/// Operations in progress that are notes in the git directory and nothing else, with these. The first one says that it is in progress, and
/// goes last.
const NOTES: [(&str, &[&str]); 3] = [
    ("merge", &["MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "MERGE_HEAD"]),
    ("cherry-pick", &["MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "CHERRY_PICK_HEAD"]),
    ("revert", &["MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "REVERT_HEAD"]),
];

/// What restoring `target` over `current` would do in the work tree whose top is `root`. `past`: locks that will be gone by then.
///
/// Errors: `git_in_progress`, `git_busy` (a lock of the index or of HEAD), `git_unsupported` (a branch that would move, or
/// that HEAD would go to, is in use in another work tree; a sparse checkout; skip-worktree flags, symbolic branches or
/// submodules that differ; content that was purged would come back), `git_failed` (objects are lost).
pub fn plan(
    root: &Path,
    target: &GitState,
    current: &GitState,
    objects: &Objects,
    past: &[PathBuf],
) -> Result<GitRestorePlan> {
    let dirs = dirs(root)?;
    let git = Git::new(root);
    let mut plan = moves(target, current);
    if plan.is_empty() && target.symbolic == current.symbolic {
        return Ok(plan);
    }
    // The walk over objects comes last: these refusals need none of it.
    refuse::operations(target, &plan, current, &dirs)?;
    refuse::locks(&dirs, &plan, past)?;
    refuse::symbolic_branches(target, current)?;
    if plan.index {
        refuse::special_entries(&git, (root, &dirs), target, current, objects)?;
    }
    if !plan.refs.is_empty() || plan.head {
        refuse::branches_elsewhere(&git, root, &dirs, &plan, target)?;
    }
    // Both need the target's objects, and finding out whether git has them all takes a walk: it is done once.
    plan.new_commits = pack::with_objects(&git, &dirs.common_dir, target, objects, |git| {
        refuse::purged(git, target, objects)?;
        new_commits(git, &plan, target, current)
    })?;
    Ok(plan)
}

/// The operation that is in progress and was not, if it is one of those that are no more than notes beside the index.
fn operation_that_ends(target: &GitState, current: &GitState) -> Option<String> {
    let is_plain = |operation: &&String| NOTES.iter().any(|(name, _)| name == operation);
    current.operation.as_ref().filter(|_| target.operation.is_none()).filter(is_plain).cloned()
}

/// Ends an operation as `git merge --quit` does, once HEAD and the index are restored: git's notes of it go.
pub fn end_operation(root: &Path, operation: &str) -> Result<()> {
    let dirs = dirs(root)?;
    let notes = NOTES.iter().filter(|(name, _)| *name == operation).flat_map(|(_, notes)| notes.iter());
    for note in notes {
        match std::fs::remove_file(dirs.git_dir.join(note)) {
            // Not every operation has all notes, and an interrupted restore may have removed some already.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).while_doing(|| format!("ending the {operation}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What differs between two states, of which nothing is asked of git: no commits are named.
pub fn moves(target: &GitState, current: &GitState) -> GitRestorePlan {
    let restored = |state: &GitState| {
        // HEAD may be on a ref outside of branches and tags; that one is restored too.
        let is_restored = |name: &[u8]| {
            let heads = [target, current].map(|state| state.head_ref.as_ref());
            name.starts_with(BRANCHES) || name.starts_with(TAGS) || heads.iter().flatten().any(|head| head.0 == name)
        };
        let refs = state.refs.iter().filter(|(name, _)| is_restored(&name.0));
        refs.map(|(name, oid)| (name.0.clone(), oid.clone())).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (restored(current), restored(target));
    let names: BTreeSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
    let refs: Vec<Moved> = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| Moved { name: name.clone(), from: old.get(name).cloned(), to: new.get(name).cloned() })
        .collect();
    // No ref says where a detached HEAD is.
    let is_elsewhere = target.head_name().is_none() && target.head != current.head;
    GitRestorePlan {
        refs,
        head: target.head_name() != current.head_name() || is_elsewhere,
        index: target.index != current.index,
        stash: target.stash != current.stash,
        ends: operation_that_ends(target, current),
        new_commits: Vec::new(),
    }
}

/// The full names of the branches that other work trees of the repository use.
pub fn branches_in_use_elsewhere(root: &Path) -> Result<BTreeSet<String>> {
    let taken = refuse::in_use_elsewhere(&Git::new(root), root, &dirs(root)?)?;
    Ok(taken.into_iter().map(|(branch, _)| String::from_utf8_lossy(&branch).into_owned()).collect())
}

/// The state to restore, in which branches that other work trees use do not move, and stash entries that were made on them stay. The
/// branch that HEAD goes to moves in any case. `is_way_back`: a restore is undone; the entries that it dropped all come back.
pub fn leaving_others(root: &Path, target: GitState, current: &GitState, is_way_back: bool) -> Result<GitState> {
    let head = target.head_name();
    let mut taken = refuse::in_use_elsewhere(&Git::new(root), root, &dirs(root)?)?;
    taken.retain(|(branch, _)| head.as_ref() != Some(branch));
    let is_taken = |name: &PathText| taken.iter().any(|(branch, _)| *branch == name.0);
    let mut refs: Vec<_> = target.refs.iter().filter(|(name, _)| !is_taken(name)).cloned().collect();
    refs.extend(current.refs.iter().filter(|(name, _)| is_taken(name)).cloned());
    refs.sort();
    let is_theirs =
        |entry: &&Stash| entry.branch().is_some_and(|branch| is_taken(&PathText([BRANCHES, branch].concat())));
    let (then, now) = (&target.stash, &current.stash);
    // The newest comes first, as git lists a stash: entries that others made since are newer than those of the checkpoint.
    let made = now.iter().filter(|entry| !then.contains(entry)).filter(is_theirs);
    let stays = then.iter().filter(|entry| is_way_back || now.contains(entry) || !is_theirs(entry));
    let stash = made.chain(stays).cloned().collect();
    Ok(GitState { stash, refs, ..target })
}

/// The state to restore, with the branches left that others made.
pub fn leaving_newer(target: GitState, current: &GitState, others: &[OutsideChanges]) -> GitState {
    let has = |state: &GitState, name: &PathText| state.refs.iter().any(|(known, _)| known == name);
    let is_made = |name: &PathText| others.iter().any(|by| !has(&by.before, name) && has(&by.after, name));
    let is_newer = |name: &PathText| name.0.starts_with(BRANCHES) && !has(&target, name) && is_made(name);
    let newer: Vec<_> = current.refs.iter().filter(|(name, _)| is_newer(name)).cloned().collect();
    let mut refs = [target.refs.clone(), newer].concat();
    refs.sort();
    GitState { refs, ..target }
}

/// The state to restore, with the tags that come back: those that were removed or moved since and not by others, as far as git has what
/// they name. Tags that were made since stay. `is_way_back`: a restore is undone, and what it did to tags as well.
pub fn with_tags(
    root: &Path,
    target: GitState,
    current: &GitState,
    others: &[OutsideChanges],
    is_way_back: bool,
) -> Result<GitState> {
    let at = |state: &GitState, name: &PathText| {
        state.refs.iter().find(|(known, _)| known == name).map(|(_, oid)| oid.clone())
    };
    let is_tag = |name: &PathText| name.0.starts_with(TAGS);
    let is_theirs = |name: &PathText| others.iter().any(|by| at(&by.before, name) != at(&by.after, name));
    let (there, mut refs): (Vec<_>, Vec<_>) = target.refs.iter().cloned().partition(|(name, _)| is_tag(name));
    let differ: Vec<_> = there.iter().filter(|(name, oid)| at(current, name).as_ref() != Some(oid)).collect();
    let asked: Vec<&str> = differ.iter().map(|(_, oid)| oid.as_str()).collect();
    // Packs hold what branches, HEAD and the stash reach. What a tag alone names comes back only if git still has it.
    let had: BTreeSet<&str> = pack::existing(&Git::new(root), &asked)?.into_iter().collect();
    for (name, now) in current.refs.iter().filter(|(name, _)| is_tag(name)) {
        let then = there.iter().find(|(known, _)| known == name).map(|(_, oid)| oid);
        match then {
            // The restore that is undone made this tag: one that it did not touch has its present value in `there`.
            None if is_way_back => {}
            Some(oid) if had.contains(oid.as_str()) && (is_way_back || !is_theirs(name)) => {
                refs.push((name.clone(), oid.clone()));
            }
            _ => refs.push((name.clone(), now.clone())),
        }
    }
    let is_gone = |name: &PathText| at(current, name).is_none();
    let back = differ
        .into_iter()
        .filter(|(name, oid)| is_gone(name) && had.contains(oid.as_str()) && (is_way_back || !is_theirs(name)));
    refs.extend(back.cloned());
    refs.sort();
    Ok(GitState { refs, ..target })
}

/// The tags of a state that another one does not have so, unless others changed them.
pub fn lost_tags(meant: &GitState, wanted: &GitState, others: &[OutsideChanges]) -> Vec<Vec<u8>> {
    let has = |state: &GitState, one: &(PathText, String)| state.refs.contains(one);
    let is_theirs = |one: &(PathText, String)| others.iter().any(|by| has(&by.before, one) && !has(&by.after, one));
    let tags = meant.refs.iter().filter(|(name, _)| name.0.starts_with(TAGS));
    tags.filter(|one| !has(wanted, one) && !is_theirs(one)).map(|(name, _)| name.0.clone()).collect()
}

/// The state to restore when a restore is undone that began at `target` and left `left`: what that restore did not move keeps its
/// current value.
pub fn leaving_unmoved(target: &GitState, current: &GitState, left: &GitState) -> GitState {
    let mut wanted = target.clone();
    wanted.refs = unmoved(&target.refs, &current.refs, &left.refs);
    wanted.symbolic = unmoved(&target.symbolic, &current.symbolic, &left.symbolic);
    let place = |state: &GitState| {
        let name = state.head_name();
        let detached = state.head.clone().filter(|_| name.is_none());
        (name, detached)
    };
    if place(target) == place(left) {
        wanted.branch.clone_from(&current.branch);
        wanted.head_ref.clone_from(&current.head_ref);
        // On a branch, HEAD is where that branch will be, which may be elsewhere than now.
        wanted.head = match current.head_name() {
            Some(name) => wanted.refs.iter().find(|(known, _)| known.0 == name).map(|(_, oid)| oid.clone()),
            None => current.head.clone(),
        };
    }
    if target.stash == left.stash {
        wanted.stash.clone_from(&current.stash);
    }
    if target.index == left.index {
        wanted.index = current.index;
        wanted.staged.clone_from(&current.staged);
    }
    wanted
}

/// Names as `current` has them where `target` and `left` have the same, else as `target` does.
fn unmoved<T: Clone + PartialEq>(
    target: &[(PathText, T)],
    current: &[(PathText, T)],
    left: &[(PathText, T)],
) -> Vec<(PathText, T)> {
    let at = |list: &[(PathText, T)], name: &PathText| {
        list.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let names: BTreeSet<&PathText> = [target, current, left].into_iter().flatten().map(|(name, _)| name).collect();
    let wanted = names.into_iter().filter_map(|name| {
        let before = at(target, name);
        let value = if before == at(left, name) { at(current, name) } else { before };
        Some((name.clone(), value?))
    });
    wanted.collect()
}

/// Those of `commits` that no branch, stash entry or HEAD of a state leads to, in their order. Of a tip that git has lost nothing is known.
pub fn not_in(root: &Path, commits: &[String], state: &GitState) -> Result<Vec<String>> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    let asked = commits.iter().map(|oid| format!("{oid}\n"));
    let lines: String = asked.chain(state.tips().map(|oid| format!("^{oid}\n"))).collect();
    let output = Git::new(root).run_with(&["rev-list", "--ignore-missing", "--stdin"], lines.as_bytes())?;
    let text = String::from_utf8_lossy(&output);
    let beyond: BTreeSet<&str> = text.lines().collect();
    Ok(commits.iter().filter(|oid| beyond.contains(oid.as_str())).cloned().collect())
}

/// Moves branches, HEAD and stash as planned; what goes is kept below `refs/ic/rolled-back/<id>/`.
///
/// Errors: `git_busy` if a ref, HEAD, the index or the stash is not any more where the plan found it, `git_failed` if
/// objects are lost: then nothing was moved. An error after the first move names in `done` what was.
pub fn apply_refs(
    root: &Path,
    plan: &GitRestorePlan,
    target: &GitState,
    current: &GitState,
    id: &str,
    objects: &Objects,
) -> Result<()> {
    //   checked, nothing moved ──▶ refs ──▶ HEAD ──▶ stash, entry by entry ──▶ (caller) files ──▶ index
    // Each part is looked for where it was and where it goes. So a call after a kill makes only what is left of each.
    let dirs = dirs(root)?;
    let git = Git::new(root);
    // Locks that the plan expected to be gone by now must be gone, and others may have come since.
    refuse::locks(&dirs, plan, &[])?;
    index::expect(&git, target, current, objects)?;
    let head = if plan.head { move_refs::pending_head(&git, target, current)? } else { None };
    let stash = if plan.stash { Some(stash::pending(&git, &target.stash, &current.stash)?) } else { None };
    // Neither needs the other.
    let (refs, is_whole) = std::thread::scope(|scope| {
        let is_whole = scope.spawn(|| pack::is_whole(&git, target));
        (move_refs::pending(&git, plan), is_whole.join())
    });
    let refs = refs?;
    let ended_early = |_| Diagnosis::new(Code::Internal, "A thread that asked git ended early.");
    if !is_whole.map_err(ended_early)?? {
        // Git puts no ref on an object that it lacks.
        pack::bring_back(&git, target, objects)?;
    }
    let below = format!("refs/ic/rolled-back/{id}/");
    let mut kept = move_refs::kept(plan, target, current, &below);
    if let Some(unlisted) = stash.as_ref().and_then(|stash| stash.unlisted.as_deref()) {
        kept.push((format!("{below}stash/unlisted").into_bytes(), unlisted));
    }
    // Until here every error leaves refs, HEAD and stash where they were.
    let mut done = Vec::new();
    let moved = (|| {
        // Branches go first: HEAD may go to one that comes back with them.
        move_refs::apply(&git, &refs, &kept, &mut done)?;
        if let Some(head) = head {
            head.apply(&git)?;
            done.push("HEAD");
        }
        // The stash comes last, because it cannot be moved at once: each entry is dropped or stored by a command of its own.
        stash.as_ref().map_or(Ok(()), |stash| stash.apply(&git))
    })();
    moved.map_err(|error: Diagnosis| if done.is_empty() { error } else { half_done(error, &done) })
}

fn half_done(error: Diagnosis, done: &[&str]) -> Diagnosis {
    error.hint("git's state is restored in part; repeat the restore to complete it").detail("done", done)
}

/// The commits that leave. A branch that moves back loses those that it will not have, even if another branch has them. A branch that is
/// removed, a tag or a detached HEAD loses those that no branch will have. `git` has the objects of the target: without a commit that git has lost, those before
/// it would seem to be new.
fn new_commits(git: &Git<'_>, plan: &GitRestorePlan, target: &GitState, current: &GitState) -> Result<Vec<String>> {
    let detached = current.head.as_deref().filter(|_| plan.head && current.head_name().is_none());
    let (back, gone): (Vec<&Moved>, Vec<&Moved>) =
        plan.refs.iter().partition(|moved| moved.to.is_some() && !moved.name.starts_with(TAGS));
    let back = back.into_iter().filter_map(|moved| moved.from.as_deref().zip(moved.to.as_deref()));
    let mut asked: Vec<String> = back.map(|(from, to)| format!("{from}\n^{to}\n")).collect();
    let gone: Vec<&str> = gone.iter().filter_map(|moved| moved.from.as_deref()).chain(detached).collect();
    if !gone.is_empty() {
        let stays: BTreeSet<&str> = target.tips().collect();
        let gone = gone.iter().map(|oid| format!("{oid}\n"));
        asked.push(gone.chain(stays.iter().map(|oid| format!("^{oid}\n"))).collect());
    }
    let listed = |order: &[&str], lines: &str| -> Result<Vec<String>> {
        let words = [&["rev-list", "--ignore-missing"], order, &["--stdin"]].concat();
        let output = git.run_with(&words, lines.as_bytes())?;
        Ok(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
    };
    let lists = asked.iter().map(|lines| listed(&[], lines)).collect::<Result<Vec<_>>>()?;
    let mut full = lists.into_iter().filter(|list| !list.is_empty());
    let first = full.next().unwrap_or_default();
    let rest: Vec<String> = full.flatten().collect();
    // One list is in the order of git; several have to be merged into one.
    if rest.is_empty() {
        return Ok(first);
    }
    let all: BTreeSet<String> = first.into_iter().chain(rest).collect();
    listed(&["--no-walk=sorted"], &all.into_iter().map(|oid| format!("{oid}\n")).collect::<String>())
}
