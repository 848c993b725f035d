//! Which refs and stash entries there are now.

use std::collections::BTreeMap;
use std::path::Path;

use ic_base::Result;

use super::program::Git;

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
