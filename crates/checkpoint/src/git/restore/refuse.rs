//! What a restore refuses before it moves anything.

use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::{GitDirs, is_linked_work_tree, path_from_bytes};

use super::super::index;
use super::super::program::Git;
use super::super::record::operation;
use super::super::state::GitState;
use super::super::{pack, purge};
use super::change::{GitRestorePlan, locked};
use super::locks::met_by;
use crate::objects::Objects;

fn unsupported(what: &str) -> Diagnosis {
    Diagnosis::new(Code::GitUnsupported, format!("Git's state cannot be restored: {what}."))
        .hint("restore the files alone: ic checkpoint restore ID --strategy files-only --yes")
}

pub(super) fn operations(target: &GitState, plan: &GitRestorePlan, current: &GitState, dirs: &GitDirs) -> Result<()> {
    let in_progress = |operation: &str, when: &str| {
        Diagnosis::new(Code::GitInProgress, format!("A {operation} {when} in progress."))
            .hint(format!(
                "{}restore the files alone: ic checkpoint restore ID --strategy files-only --yes{}",
                if when == "is" { way_out(operation) } else { String::new() },
                // Git's notes of it are in no checkpoint.
                if when == "is" { String::new() } else { format!(", and begin the {operation} again with git") }
            ))
            .detail("operation", operation)
    };
    // One of several commits has more than notes: only git can end it.
    let is_ended =
        |operation: &String| plan.ends.as_ref() == Some(operation) && !dirs.git_dir.join("sequencer").exists();
    // Looked for again: it may have begun since the state was recorded.
    let now = operation(&dirs.git_dir);
    if let Some(operation) = now.as_ref().or(current.operation.as_ref()).filter(|now| !is_ended(now)) {
        return Err(in_progress(operation, "is"));
    }
    if let Some(operation) = &target.operation {
        return Err(in_progress(operation, "was, when the checkpoint was taken,"));
    }
    Ok(())
}

/// How an operation that is in progress is ended.
fn way_out(operation: &str) -> String {
    let flag = if operation == "bisect" { "reset" } else { "--abort" };
    format!("finish it, or abort it (git {operation} {flag}), then call again; or ")
}

/// Errors: `git_busy` for a lock that this plan would meet and that is not one of `past`.
pub(super) fn locks(dirs: &GitDirs, plan: &GitRestorePlan, past: &[PathBuf]) -> Result<()> {
    let Some(lock) = met_by(plan, dirs).into_iter().find(|lock| !past.contains(lock)) else { return Ok(()) };
    let name = lock.strip_prefix(&dirs.git_dir).or_else(|_| lock.strip_prefix(&dirs.common_dir)).unwrap_or(&lock);
    let what = match name.to_str() {
        Some("index.lock") => "the index".to_owned(),
        Some("packed-refs.lock" | "packed-refs.new" | "reftable/tables.list.lock") => "its refs".to_owned(),
        _ => name.with_extension("").display().to_string(),
    };
    Err(locked(&what, &lock))
}

pub(super) fn symbolic_branches(target: &GitState, current: &GitState) -> Result<()> {
    let differs = target.symbolic.iter().find(|alias| !current.symbolic.contains(alias));
    let differs = differs.or_else(|| current.symbolic.iter().find(|alias| !target.symbolic.contains(alias)));
    match differs {
        Some((name, _)) => {
            let name = String::from_utf8_lossy(&name.0);
            Err(unsupported(&format!("{name} is a symbolic branch, and changed")))
        }
        None => Ok(()),
    }
}

/// Whether the checkout of the repository of this root is sparse, so that a restore of git's state is refused.
pub fn is_sparse(root: &Path) -> bool {
    ic_ledger::git_dirs(root).is_some_and(|dirs| has_sparse_checkout(&Git::new(root), &dirs))
}

fn has_sparse_checkout(git: &Git<'_>, dirs: &GitDirs) -> bool {
    // The file is looked for first: most repositories have none, and git need not be started for them. The setting ends with 1 where
    // it is not set.
    dirs.git_dir.join("info/sparse-checkout").exists()
        && git.run(&["config", "--type=bool", "core.sparseCheckout"]).is_ok_and(|sparse| sparse.starts_with(b"true"))
}

/// Entries that are more than a file: of submodules, and those that a sparse checkout leaves out.
pub(super) fn special_entries(
    git: &Git<'_>,
    (root, dirs): (&Path, &GitDirs),
    target: &GitState,
    current: &GitState,
    objects: &Objects,
) -> Result<()> {
    let head = target.head.as_deref();
    let (target, current) = (index::read(objects, target.index)?, index::read(objects, current.index)?);
    let skipped = |text: &[u8]| -> Vec<Vec<u8>> {
        let lines = index::lines_with(text, |entry| matches!(entry.first(), Some(b'S' | b's')));
        lines.map(|line| line.path.to_vec()).collect()
    };
    // Without a sparse checkout the flag leaves out no file: it is restored with the entry.
    if has_sparse_checkout(git, dirs) {
        let is_same = skipped(&current) == skipped(&target);
        let changed = "the files that the checkout leaves out (skip-worktree) changed";
        return Err(unsupported(if is_same { "the checkout is sparse" } else { changed }));
    }
    let submodules = |text: &[u8]| -> Vec<(Vec<u8>, String)> {
        let lines = index::lines_with(text, |entry| entry.get(2..).is_some_and(index::is_submodule));
        // `git add -A` takes another work tree for a submodule. It has nothing to be checked out here: its entry comes and goes alone.
        let lines = lines.filter(|line| !is_linked_work_tree(&root.join(path_from_bytes(line.path))));
        lines.map(|line| (line.path.to_vec(), line.meta.to_owned())).collect()
    };
    if submodules(&target) != submodules(&current) {
        let back = head.map(|head| {
            format!("; once the files are restored, this goes back to the commit: git reset --quiet {head}")
        });
        return Err(unsupported(&format!("a submodule changed{}", back.unwrap_or_default())));
    }
    Ok(())
}

/// Whether restoring a state would bring back content that was purged: it is refused then. Errors: `git_failed`.
pub fn needs_purged(root: &Path, target: &GitState, objects: &Objects) -> Result<bool> {
    let Some(dirs) = ic_ledger::git_dirs(root) else { return Ok(false) };
    let find = |git: &Git<'_>| Ok(purge::purged_in(git, target, objects)?.is_some());
    pack::with_objects(&Git::new(root), &dirs.common_dir, target, objects, find)
}

/// What was purged does not come back, though git itself may still have it. `git` has the objects of the target.
pub(super) fn purged(git: &Git<'_>, target: &GitState, objects: &Objects) -> Result<()> {
    let Some(oid) = purge::purged_in(git, target, objects)? else { return Ok(()) };
    Err(unsupported(
        "content was purged from the checkpoint, and a commit, stash entry or index of it has that content",
    )
    .detail("object", oid))
}

/// A branch that would move, or that HEAD would go to, and that another work tree of the repository has checked out or
/// is about to come back to.
pub(super) fn branches_elsewhere(
    git: &Git<'_>,
    root: &Path,
    dirs: &GitDirs,
    plan: &GitRestorePlan,
    target: &GitState,
) -> Result<()> {
    let head = target.head_name().filter(|_| plan.head);
    let is_touched =
        |branch: &[u8]| head.as_deref() == Some(branch) || plan.refs.iter().any(|moved| moved.name == branch);
    let taken = in_use_elsewhere(git, root, dirs)?;
    let Some((branch, place)) = taken.iter().find(|(branch, _)| is_touched(branch)) else { return Ok(()) };
    let branch = String::from_utf8_lossy(branch);
    Err(unsupported(&format!("{branch} is in use in {}", place.display())))
}

/// The branches that other work trees of the repository have checked out, or are in the midst of rebasing or bisecting; and where.
pub(super) fn in_use_elsewhere(git: &Git<'_>, root: &Path, dirs: &GitDirs) -> Result<Vec<(Vec<u8>, PathBuf)>> {
    let others = git_dirs_of_others(dirs);
    // Most repositories have one work tree, and git need not be started for them.
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut taken = Vec::new();
    // Not `-z`, which is of git 2.36: a path with a newline in it is taken for another tree's, which only refuses more.
    let listed = git.run(&["worktree", "list", "--porcelain"])?;
    // Git prints the real path of each work tree.
    let own = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let mut tree = PathBuf::new();
    for line in listed.split(|b| *b == b'\n') {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            tree = path_from_bytes(path);
        } else if let Some(branch) = line.strip_prefix(b"branch ")
            && tree != own
        {
            taken.push((branch.to_vec(), tree.clone()));
        }
    }
    for place in others {
        for file in ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"] {
            let Ok(text) = fs::read(place.join(file)) else { continue };
            let name = text.strip_suffix(b"\n").unwrap_or(&text);
            // BISECT_START has the short name of a branch, the others have the whole one.
            taken.push((name.to_vec(), place.clone()));
            taken.push(([b"refs/heads/", name].concat(), place.clone()));
        }
    }
    Ok(taken)
}

/// The git directories of the repository's other work trees.
fn git_dirs_of_others(dirs: &GitDirs) -> Vec<PathBuf> {
    let linked = fs::read_dir(dirs.common_dir.join("worktrees")).into_iter().flatten().flatten();
    let own = fs::canonicalize(&dirs.git_dir).unwrap_or_else(|_| dirs.git_dir.clone());
    linked
        .map(|entry| entry.path())
        // The git directory of the main work tree is the one that all share.
        .chain([dirs.common_dir.clone()])
        .filter(|place| fs::canonicalize(place).is_ok_and(|place| place != own))
        .collect()
}
