//! What of a piece of work is on the stash, or in a commit that is not checked out: an undo of it leaves that, and names it.

use std::collections::BTreeSet;
use std::path::Path;

use ic_base::Result;
use ic_checkpoint::diff::DiffState;
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::{Own, has_change};
use ic_ledger::path_from_bytes;
use ic_worktree::Workspace;

use super::commits::git_ends;
use super::parcels::Parcels;

/// Leaves what was put onto the stash since the work began, or onto a branch or commit that is not checked out, and the tree has no more: an
/// undo changes none of these.
///
/// `made`: what the work changed, before it was replayed with what others did.
pub(super) fn leave_elsewhere(
    workspace: &Workspace<'_>,
    (made, changes): (&Own, &mut Own),
    parcels: &Parcels,
    looks: &[CheckpointRecord],
) -> Result<()> {
    let known: BTreeSet<Vec<u8>> = made.known().into_iter().chain(parcels.paths().cloned()).collect();
    let root = &workspace.root;
    let Some([first, last]) = git_ends(workspace, looks)? else { return Ok(()) };
    let is_new = |commit: &&String| !first.stash.iter().any(|entry| entry.commit == **commit);
    for entry in git::stash_ids(root)?.iter().filter(is_new) {
        let why =
            format!("it is on the stash: pop it, and undo then; or look at it: git stash show -p {}", short(entry));
        // The third parent of an entry has the files that git did not track.
        let untracked = format!("{entry}^3");
        let paths = git::stashed_paths(root, entry).into_iter().filter(|path| known.contains(path));
        let paths = paths.collect();
        leave_committed(workspace, (made, changes), parcels, &[entry, &untracked], (&paths, &why));
    }
    let in_use = git::branches_in_use_elsewhere(root)?;
    let mut all = Vec::new();
    for (branch, tip) in branches_since(root, &first)? {
        let way = if is_in_use(&in_use, &branch) {
            "undo it in the work tree of that"
        } else {
            "check that out, and undo it there"
        };
        all.push((tip, format!("it is on the branch {branch}: {way}")));
    }
    // What was committed on no branch.
    let here: Vec<String> = git::head(root).into_iter().collect();
    let is_left = |head: &&String| !git::not_reached(root, std::slice::from_ref(*head), &here).is_empty();
    let own = last.head.as_ref().filter(|_| last.branch.is_none() && first.head != last.head);
    if let Some(head) = own.filter(is_left) {
        all.push((head.clone(), format!("it is in the commit {}: check that out, and undo it there", short(head))));
    }
    for (commit, why) in &all {
        leave_committed(workspace, (made, changes), parcels, &[commit], (&known, why));
    }
    Ok(())
}

/// Whether a branch is made or moved since git was so that has commits which HEAD has not, and is checked out nowhere.
pub(crate) fn is_branch_since(root: &Path, then: &GitState) -> Result<bool> {
    let found = branches_since(root, then)?;
    // What another work tree has is told there.
    let in_use = if found.is_empty() { BTreeSet::new() } else { git::branches_in_use_elsewhere(root)? };
    Ok(found.iter().any(|(branch, _)| !is_in_use(&in_use, branch)))
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Whether another work tree has a branch checked out.
fn is_in_use(in_use: &BTreeSet<String>, branch: &str) -> bool {
    in_use.contains(&format!("refs/heads/{branch}"))
}

/// The other branches that were made or moved since git was so and have commits that HEAD has not, and their tips.
fn branches_since(root: &Path, then: &GitState) -> Result<Vec<(String, String)>> {
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
        let tips: Vec<String> = found.iter().map(|(_, tip)| tip.clone()).collect();
        let more = git::not_reached(root, &tips, &git::head(root).into_iter().collect::<Vec<_>>());
        found.retain(|(_, tip)| more.contains(tip));
    }
    Ok(found)
}

/// Leaves those of these paths at which the tree has not what the work changed, and the first of these commits that has the path has it.
fn leave_committed(
    workspace: &Workspace<'_>,
    (made, changes): (&Own, &mut Own),
    parcels: &Parcels,
    commits: &[&String],
    (paths, why): (&BTreeSet<Vec<u8>>, &str),
) {
    let root = &workspace.root;
    let asked = paths.iter().flat_map(|path| commits.iter().map(|commit| ((*commit).clone(), (*path).clone())));
    let found = git::contents(root, &asked.collect::<Vec<_>>());
    // Of a link no text is known, and a file that no checkpoint holds is not there.
    let text = |state: &Option<DiffState>| match state {
        Some(DiffState::File { hash, .. }) => workspace.objects.read(hash).ok(),
        _ => None,
    };
    for (path, found) in paths.iter().zip(found.chunks(commits.len())) {
        let pairs = made.pairs(path);
        let [before, after] =
            [pairs.first().map(|pair| &pair.0), pairs.last().map(|pair| &pair.1)].map(|one| one.and_then(text));
        let [before, after] = parcels.ends(path).unwrap_or([before, after]);
        let has = |found: Option<&[u8]>| has_change(found, (before.as_deref(), after.as_deref())).unwrap_or(true);
        let here = std::fs::read(root.join(path_from_bytes(path))).ok();
        if !has(here.as_deref()) && has(found.iter().flatten().next().map(Vec::as_slice)) {
            changes.leave_part(path.clone(), why);
        }
    }
}
