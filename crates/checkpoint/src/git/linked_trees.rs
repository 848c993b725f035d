//! Linked work trees of a repository: made, and removed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use ic_base::Result;

use super::index;
use super::program::Git;
use super::restore::is_sparse;

/// Makes a work tree in a directory that does not exist, at a commit and on no branch. It has no files yet: its index is that of the commit,
/// and what a sparse checkout leaves out in `root` is left out there, too. Errors: `git_failed`.
pub fn add_work_tree(root: &Path, directory: &Path, commit: &str) -> Result<()> {
    // Twice: what a killed call has registered under this path, and locked, may be replaced. The directory does not exist.
    let words = ["worktree", "add", "--force", "--force", "--detach", "--no-checkout"].map(OsStr::new);
    let arguments = [&words[..], &[directory.as_os_str(), OsStr::new(commit)]].concat();
    Git::new(root).run(&arguments)?;
    let git = Git::new(directory);
    // Only names: what git may not fetch, as in a partial clone, is not needed for them.
    git.run(&["read-tree", commit])?;
    if is_sparse(root) {
        let listed = Git::new(root).run(&["ls-files", "-t", "-z"])?;
        let left_out = listed.split(|byte| *byte == 0).filter_map(|line| line.strip_prefix(b"S "));
        mark(&git, left_out, &["update-index", "-z", "--skip-worktree", "--stdin"])?;
    }
    Ok(())
}

/// Writes tracked files that are missing, as the index has them. Paths that are not tracked are left out. Errors: `git_failed`.
pub fn write_tracked<'p>(directory: &Path, paths: impl Iterator<Item = &'p [u8]>) -> Result<()> {
    mark(&Git::new(directory), paths, &["checkout-index", "-z", "--stdin"])
}

/// Gives those of the paths that are tracked to a command of git.
fn mark<'p>(git: &Git<'_>, paths: impl Iterator<Item = &'p [u8]>, command: &[&str]) -> Result<()> {
    // Both commands fail where one of the paths is not tracked.
    let tracked: HashSet<Vec<u8>> = index::tracked(git).unwrap_or_default().into_iter().collect();
    let input: Vec<u8> = paths.filter(|path| tracked.contains(*path)).flat_map(|path| [path, b"\0"].concat()).collect();
    if !input.is_empty() {
        git.run_with(command, &input)?;
    }
    Ok(())
}

/// Removes a work tree with all that is in it. Errors: `git_failed`.
pub fn remove_work_tree(root: &Path, directory: &Path) -> Result<()> {
    let words = ["worktree", "remove", "--force"].map(OsStr::new);
    let arguments = [&words[..], &[directory.as_os_str()]].concat();
    Git::new(root).run(&arguments)?;
    Ok(())
}

/// Keeps a commit by a ref below `refs/ic/`, unless a branch or a tag reaches it. Returns whether it was needed. Errors: `git_failed`.
pub fn keep_commit(root: &Path, name: &str, commit: &str) -> Result<bool> {
    let git = Git::new(root);
    let holders = ["refs/heads", "refs/tags", "refs/remotes"];
    let reached = git.run(&[&["for-each-ref", "--count=1", "--contains", commit][..], &holders[..]].concat())?;
    if !reached.trim_ascii().is_empty() {
        return Ok(false);
    }
    git.run(&["update-ref", &format!("refs/ic/{name}"), commit])?;
    Ok(true)
}
