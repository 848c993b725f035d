//! Linked work trees of a repository: made, and removed.

use std::ffi::OsStr;
use std::path::Path;

use ic_base::Result;

use super::program::Git;

/// Makes a work tree in a directory that does not exist, at a commit and on no branch. It has no files yet: its index is that of the commit.
/// Errors: `git_failed`.
pub fn add_work_tree(root: &Path, directory: &Path, commit: &str) -> Result<()> {
    let words = ["worktree", "add", "--detach", "--no-checkout"].map(OsStr::new);
    let arguments = [&words[..], &[directory.as_os_str(), OsStr::new(commit)]].concat();
    Git::new(root).run(&arguments)?;
    // Only names: what git may not fetch, as in a partial clone, is not needed for them.
    Git::new(directory).run(&["read-tree", commit])?;
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
    let reached =
        git.run(&["for-each-ref", "--count=1", "--contains", commit, "refs/heads", "refs/tags", "refs/remotes"])?;
    if !reached.trim_ascii().is_empty() {
        return Ok(false);
    }
    git.run(&["update-ref", &format!("refs/ic/{name}"), commit])?;
    Ok(true)
}
