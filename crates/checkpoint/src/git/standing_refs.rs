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

/// What was staged in the first state, is not in the index of the second one, and is not in the present index either.
///
/// Errors: `corrupt` if a kept index cannot be read; `git_failed`.
pub fn unstaged_between(
    root: &Path,
    objects: &Objects,
    before: &GitState,
    after: &GitState,
) -> Result<Vec<StagedPath>> {
    if before.staged.is_empty() || before.index == after.index || ic_ledger::git_dirs(root).is_none() {
        return Ok(Vec::new());
    }
    let staged: HashSet<&String> = before.staged.iter().collect();
    let (was, is) = (index::read(objects, before.index)?, index::read(objects, after.index)?);
    let mut gone: Vec<StagedPath> = entries(&was).into_iter().filter(|entry| staged.contains(&entry.oid)).collect();
    let now = index::listing(&Git::new(root))?;
    for text in [&*is, &now] {
        let there: HashSet<(Vec<u8>, String)> =
            entries(text).into_iter().map(|entry| (entry.path, entry.oid)).collect();
        gone.retain(|entry| !there.contains(&(entry.path.clone(), entry.oid.clone())));
    }
    Ok(gone)
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
