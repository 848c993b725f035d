//! What of a piece of work is on the stash, or on a branch that is not checked out: an undo of it leaves that, and names it.

use std::path::Path;

use ic_base::Result;
use ic_checkpoint::diff::DiffState;
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::{Own, has_change};
use ic_ledger::path_from_bytes;
use ic_worktree::Workspace;

use super::commits::has_git;

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
    let first = looks.iter().find(|look| has_git(look)).map(|first| workspace.git_at(first));
    let Some(first) = first.transpose()?.flatten() else { return Ok(()) };
    let is_new = |commit: &&String| !first.stash.iter().any(|entry| entry.commit == **commit);
    for entry in git::stash_ids(root)?.iter().filter(is_new) {
        let short = entry.get(..12).unwrap_or(entry);
        let why = format!("it is on the stash: pop it, and undo then; or look at it: git stash show -p {short}");
        // The third parent of an entry has the files that git did not track.
        let untracked = format!("{entry}^3");
        leave_committed(workspace, changes, &[entry, &untracked], &git::stashed_paths(root, entry), &why);
    }
    for (branch, tip) in branches_since(root, &first)? {
        let why = format!("it is on the branch {branch}: check that out, and undo it there");
        let paths: Vec<Vec<u8>> = changes.known().into_iter().collect();
        leave_committed(workspace, changes, &[&tip], &paths, &why);
    }
    Ok(())
}

/// The branches that were made or moved since git was so, and their tips: those that are checked out nowhere, and have commits that HEAD has
/// not.
pub(crate) fn branches_since(root: &Path, then: &GitState) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, tip) in git::ref_ids(root)? {
        let Some(branch) = name.strip_prefix("refs/heads/").map(str::to_owned) else { continue };
        let one = (PathText(name.into_bytes()), tip);
        // They are in the order of their names.
        found.extend(then.refs.binary_search(&one).is_err().then_some((branch, one.1)));
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

/// Leaves those of these paths at which the tree has not what the work changed, and the first of these commits that has the path has it.
fn leave_committed(workspace: &Workspace<'_>, changes: &mut Own, commits: &[&String], paths: &[Vec<u8>], why: &str) {
    let (root, known) = (&workspace.root, changes.known());
    let paths: Vec<&Vec<u8>> = paths.iter().filter(|path| known.contains(*path)).collect();
    let asked = paths.iter().flat_map(|path| commits.iter().map(|commit| ((*commit).clone(), (*path).clone())));
    let found = git::contents(root, &asked.collect::<Vec<_>>());
    // Of a link no text is known, and a file that no checkpoint holds is not there.
    let text = |state: &Option<DiffState>| match state {
        Some(DiffState::File { hash, .. }) => workspace.objects.read(hash).ok(),
        _ => None,
    };
    for (path, found) in paths.into_iter().zip(found.chunks(commits.len())) {
        let pairs = changes.pairs(path);
        let [before, after] =
            [pairs.first().map(|pair| &pair.0), pairs.last().map(|pair| &pair.1)].map(|one| one.and_then(text));
        let has = |found: Option<&[u8]>| has_change(found, (before.as_deref(), after.as_deref()));
        let here = std::fs::read(root.join(path_from_bytes(path))).ok();
        if !has(here.as_deref()) && has(found.iter().flatten().next().map(Vec::as_slice)) {
            changes.leave_part(path.clone(), why);
        }
    }
}

fn stash_of(workspace: &Workspace<'_>, look: &CheckpointRecord) -> Result<Vec<String>> {
    let git = workspace.git_at(look)?;
    Ok(git.into_iter().flat_map(|git| git.stash).map(|entry| entry.commit).collect())
}
