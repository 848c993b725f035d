//! Which refs and stash entries there are now, and what is staged no longer.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use ic_base::Result;

use super::index;
use super::program::Git;
use super::state::GitState;
use crate::objects::Objects;

/// Every branch, tag and ref of notes with the object that it names; none without git or outside of a repository.
///
/// Errors: `git_failed`.
pub fn ref_ids(root: &Path) -> Result<BTreeMap<String, String>> {
    if ic_ledger::git_dirs(root).is_none() {
        return Ok(BTreeMap::new());
    }
    let format = "--format=%(objectname) %(refname)";
    let said = Git::new(root).ask(&["for-each-ref", format, "refs/heads", "refs/tags", "refs/notes"])?;
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    let pairs = said.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect())
}

/// The commits of the stash, newest first; none without git or outside of a repository.
///
/// Errors: `git_failed`.
pub fn stash_ids(root: &Path) -> Result<Vec<String>> {
    if ic_ledger::git_dirs(root).is_none() {
        return Ok(Vec::new());
    }
    let said = Git::new(root).ask(&["stash", "list", "--format=%H"])?;
    Ok(String::from_utf8_lossy(&said.unwrap_or_default()).lines().map(str::to_owned).collect())
}

/// An entry of the index whose content no commit has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedPath {
    /// The path from the root of the work tree.
    pub path: Vec<u8>,
    /// The mode, as git writes it: `100644`.
    pub mode: String,
    /// The id of its content.
    pub oid: String,
}

/// What work did to the index, and is so now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// What was staged before the work, was not after it, and is not now.
    pub unstaged: Vec<StagedPath>,
    /// What was staged after the work, was not before it, and still is.
    pub staged: Vec<StagedPath>,
}

/// The entries that were staged or unstaged between two states, and stayed so until now.
///
/// Errors: `corrupt` if a kept index cannot be read; `git_failed`.
pub fn index_changes(root: &Path, objects: &Objects, before: &GitState, after: &GitState) -> Result<IndexChanges> {
    let is_any = !before.staged.is_empty() || !after.staged.is_empty();
    if !is_any || before.index == after.index || ic_ledger::git_dirs(root).is_none() {
        return Ok(IndexChanges::default());
    }
    let (was, is) = (index::read(objects, before.index)?, index::read(objects, after.index)?);
    let (was, is, now) = (entries(&was), entries(&is), entries(&index::listing(&Git::new(root))?));
    let staged_in = |all: &[StagedPath], state: &GitState| -> Vec<StagedPath> {
        let staged: HashSet<&String> = state.staged.iter().collect();
        all.iter().filter(|entry| staged.contains(&entry.oid)).cloned().collect()
    };
    let names = |all: &[StagedPath]| -> HashSet<(Vec<u8>, String)> {
        all.iter().map(|entry| (entry.path.clone(), entry.oid.clone())).collect()
    };
    let [had, has, has_now] = [&was, &is, &now].map(|all| names(all));
    let is_in =
        |names: &HashSet<(Vec<u8>, String)>, one: &StagedPath| names.contains(&(one.path.clone(), one.oid.clone()));
    let (mut unstaged, mut staged) = (staged_in(&was, before), staged_in(&is, after));
    unstaged.retain(|one| !is_in(&has, one) && !is_in(&has_now, one));
    staged.retain(|one| !is_in(&had, one) && is_in(&has_now, one));
    Ok(IndexChanges { unstaged, staged })
}

/// The entries of an index, without those of a conflict.
fn entries(text: &[u8]) -> Vec<StagedPath> {
    let entry = |line: index::IndexLine<'_>| {
        let mut meta = line.meta.split(' ');
        let (mode, oid, stage) = (meta.next()?, meta.next()?, meta.next()?);
        (stage == "0").then(|| StagedPath { path: line.path.to_vec(), mode: mode.to_owned(), oid: oid.to_owned() })
    };
    index::parse(text).0.into_iter().filter_map(entry).collect()
}
