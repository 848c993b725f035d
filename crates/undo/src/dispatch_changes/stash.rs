//! What of a piece of work is on the stash, or on a branch that is not checked out: an undo of it leaves that, and names it.

use std::path::Path;

use ic_base::Result;
use ic_checkpoint::diff::DiffState;
use ic_checkpoint::git;
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::Own;
use ic_ledger::path_from_bytes;
use ic_worktree::Workspace;

use super::commits::{has_git, last_of, state_of};

/// Leaves changes that came off a stash which was there before the work: they are not the work's own, and exist nowhere else by now.
pub(super) fn leave_unstashed(
    workspace: &Workspace<'_>,
    changes: &mut Own,
    captures: &[CheckpointRecord],
) -> Result<()> {
    let mut looks = captures.iter().filter(|look| has_git(look));
    let (Some(first), Some(last)) = (looks.next(), looks.next_back()) else { return Ok(()) };
    let (had, has) = (stash_of(workspace, first)?, stash_of(workspace, last)?);
    let known = changes.paths();
    for entry in had.iter().filter(|entry| !has.contains(entry)) {
        let paths = git::stashed_paths(&workspace.root, entry);
        for path in paths.into_iter().filter(|path| known.contains(path)) {
            changes.leave(path, "it came off the stash, where others had put it");
        }
    }
    Ok(())
}

/// Leaves what others put onto the stash since the work began, or committed on the branch of the work before they checked out another,
/// and the tree has no more: an undo changes no entry of the stash, and no branch that is not checked out.
pub(super) fn leave_elsewhere(workspace: &Workspace<'_>, changes: &mut Own, looks: &[CheckpointRecord]) -> Result<()> {
    let root = &workspace.root;
    let Some(first) = looks.iter().find(|look| has_git(look)) else { return Ok(()) };
    let had = stash_of(workspace, first)?;
    for entry in git::stash_ids(root)?.iter().filter(|entry| !had.contains(entry)) {
        let short = entry.get(..12).unwrap_or(entry);
        let why = format!("it is on the stash: pop it, and undo then; or look at it: git stash show -p {short}");
        // The third parent of an entry has the files that git did not track.
        let untracked = format!("{entry}^3");
        leave_committed(root, changes, (&[entry, &untracked], &git::stashed_paths(root, entry)), &why);
    }
    let last = last_of(looks).map(|last| state_of(workspace, last)).transpose()?.flatten();
    let left = last.and_then(|last| Some((last.branch?, last.head)));
    if let Some((branch, head)) = left.filter(|(branch, _)| git::branch(root).as_ref() != Some(&branch.0)) {
        let name = String::from_utf8_lossy(&branch.0);
        let tip = git::ref_ids(root)?.remove(&format!("refs/heads/{name}"));
        if let Some(tip) = tip.filter(|tip| head.as_ref() != Some(tip)) {
            let why = format!("it is on the branch {name}: check that out, and undo it there");
            let paths: Vec<Vec<u8>> = changes.known().into_iter().collect();
            leave_committed(root, changes, (&[&tip], &paths), &why);
        }
    }
    Ok(())
}

/// Leaves those of these paths that are here as before the work, and otherwise in the first of these commits that has them.
fn leave_committed(root: &Path, changes: &mut Own, (commits, paths): (&[&String], &[Vec<u8>]), why: &str) {
    let known = changes.known();
    let paths: Vec<&Vec<u8>> = paths.iter().filter(|path| known.contains(*path)).collect();
    let asked = |commit: &&String| paths.iter().map(|path| ((*commit).clone(), (*path).clone())).collect::<Vec<_>>();
    let mut there = vec![None; paths.len()];
    for commit in commits {
        let found = git::contents(root, &asked(commit));
        there = there.into_iter().zip(found).map(|(one, other)| one.or(other)).collect();
    }
    for (path, there) in paths.into_iter().zip(there) {
        let before = match changes.pairs(path).first() {
            Some((Some(DiffState::File { hash, .. }), _)) => Some(*hash),
            _ => None,
        };
        let is_before = |text: Option<Vec<u8>>| text.as_deref().map(hash_of) == before;
        if is_before(std::fs::read(root.join(path_from_bytes(path))).ok()) && !is_before(there) {
            changes.leave_part(path.clone(), why);
        }
    }
}

fn stash_of(workspace: &Workspace<'_>, look: &CheckpointRecord) -> Result<Vec<String>> {
    let git = state_of(workspace, look)?;
    Ok(git.into_iter().flat_map(|git| git.stash).map(|entry| entry.commit).collect())
}
