//! What of a piece of work is on the stash, or on a branch that is not checked out: an undo of it leaves that, and names it.

use std::path::Path;

use ic_base::Result;
use ic_checkpoint::diff::DiffState;
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::Own;
use ic_ledger::path_from_bytes;
use ic_worktree::Workspace;

use super::commits::{has_git, state_of};

/// Leaves changes that came off a stash which was there before the work: they are not the work's own, and exist nowhere else by now.
pub(super) fn leave_unstashed(workspace: &Workspace<'_>, changes: &mut Own, looks: &[CheckpointRecord]) -> Result<()> {
    let mut all = looks.iter().filter(|look| has_git(look));
    let (Some(first), Some(last)) = (all.next(), all.next_back()) else { return Ok(()) };
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

/// Leaves what was put onto the stash since the work began, or onto a branch that is not checked out, and the tree has no more: an undo
/// changes neither.
pub(super) fn leave_elsewhere(workspace: &Workspace<'_>, changes: &mut Own, looks: &[CheckpointRecord]) -> Result<()> {
    let root = &workspace.root;
    let first = looks.iter().find(|look| has_git(look)).map(|first| state_of(workspace, first));
    let Some(first) = first.transpose()?.flatten() else { return Ok(()) };
    let is_new = |commit: &&String| !first.stash.iter().any(|entry| entry.commit == **commit);
    for entry in git::stash_ids(root)?.iter().filter(is_new) {
        let short = entry.get(..12).unwrap_or(entry);
        let why = format!("it is on the stash: pop it, and undo then; or look at it: git stash show -p {short}");
        // The third parent of an entry has the files that git did not track.
        let untracked = format!("{entry}^3");
        leave_committed(root, changes, (&[entry, &untracked], &git::stashed_paths(root, entry)), &why);
    }
    for (branch, tip) in branches_since(root, &first)? {
        let why = format!("it is on the branch {branch}: check that out, and undo it there");
        let paths: Vec<Vec<u8>> = changes.known().into_iter().collect();
        leave_committed(root, changes, (&[&tip], &paths), &why);
    }
    Ok(())
}

/// The branches that were made or moved since git was so, and their tips: those that are checked out nowhere, and have commits that HEAD has
/// not.
pub(crate) fn branches_since(root: &Path, then: &GitState) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, tip) in git::ref_ids(root)? {
        let is_same = then.refs.iter().any(|(known, was)| known.0 == name.as_bytes() && *was == tip);
        found.extend(name.strip_prefix("refs/heads/").filter(|_| !is_same).map(|branch| (branch.to_owned(), tip)));
    }
    let here = git::branch(root);
    found.retain(|(branch, _)| here.as_deref() != Some(branch.as_bytes()));
    if !found.is_empty() {
        let in_use = git::branches_in_use_elsewhere(root)?;
        let tips: Vec<String> = found.iter().map(|(_, tip)| tip.clone()).collect();
        let more = git::not_reached(root, &tips, &git::head(root).into_iter().collect::<Vec<_>>());
        found.retain(|(branch, tip)| more.contains(tip) && !in_use.contains(&format!("refs/heads/{branch}")));
    }
    Ok(found)
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
