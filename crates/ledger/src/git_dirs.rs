//! The directories of a git work tree, read from its files: no process is started.

use std::fs;
use std::path::{Path, PathBuf};

use crate::regular_file::read_line;
use crate::values::path_from_bytes;

/// The directories of a git work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitDirs {
    /// This work tree's own: HEAD and index.
    pub git_dir: PathBuf,
    /// What all work trees of the repository share: refs, objects, info.
    pub common_dir: PathBuf,
}

/// The git directories of the work tree whose top is `level`; `None` if it is not one. No process is started.
pub fn git_dirs(level: &Path) -> Option<GitDirs> {
    dirs_of(level).filter(|dirs| dirs.git_dir.join("HEAD").exists())
}

/// Where the git directories of a work tree would be, whatever is left in them.
pub(crate) fn dirs_of(level: &Path) -> Option<GitDirs> {
    let dot_git = level.join(".git");
    let meta = fs::metadata(&dot_git).ok()?;
    let git_dir = if meta.is_dir() {
        dot_git
    } else {
        // A linked work tree or a submodule has a file there, with a line such as `gitdir: ../.git/worktrees/fix`.
        let line = read_line(&dot_git).ok()?;
        level.join(path_from_bytes(trim(line.strip_prefix(b"gitdir: ")?)))
    };
    // Only the directory of a linked work tree has this file. In every other case, both directories are one.
    let common = match read_line(&git_dir.join("commondir")) {
        Ok(line) => git_dir.join(path_from_bytes(trim(&line))),
        Err(_) => git_dir.clone(),
    };
    let common_dir = fs::canonicalize(&common).unwrap_or(common);
    Some(GitDirs { git_dir, common_dir })
}

/// A line of a file without its end.
pub(crate) fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Whether a directory is the top of a linked work tree of any repository: its `.git` leads to a directory of `worktrees`. The `.git` of a
/// submodule leads elsewhere. A repository on a disk that is absent, or one that was moved, is told by the path alone.
pub fn is_linked_work_tree(level: &Path) -> bool {
    let dot_git = level.join(".git");
    let Ok(meta) = fs::metadata(&dot_git) else {
        // `.git` may be a link that leads nowhere: then the path that it names is all there is to tell by.
        return fs::read_link(&dot_git).is_ok_and(|target| is_among_work_trees(&target));
    };
    if meta.is_dir() {
        return dot_git.join("commondir").exists();
    }
    let line = if meta.is_file() { read_line(&dot_git).ok() } else { None };
    let Some(target) = line.as_deref().and_then(|line| line.strip_prefix(b"gitdir: ")) else { return false };
    let git_dir = level.join(path_from_bytes(target.trim_ascii_end()));
    if git_dir.join("commondir").exists() {
        return true;
    }
    // A submodule may be called `worktrees/NAME`. Its directory is a whole repository, with objects; that of a work tree has none.
    !git_dir.join("objects").exists() && is_among_work_trees(&git_dir)
}

fn is_among_work_trees(git_dir: &Path) -> bool {
    git_dir.parent().and_then(Path::file_name).is_some_and(|name| name == "worktrees")
}

/// Another work tree of a repository, as the repository has it on record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherWorkTree {
    /// Its top, without links on the way; there may be nothing.
    pub top: PathBuf,
    /// Git was told to keep it, though its directory may be on a disk that is absent.
    pub is_locked: bool,
}

/// The other work trees of the repository that holds a directory: linked ones, locked and
/// prunable ones too, and the main one where the directory lies in a linked one.
pub fn other_work_trees(directory: &Path) -> Vec<OtherWorkTree> {
    let Some((top, dirs)) = directory.ancestors().find_map(|top| git_dirs(top).map(|dirs| (top, dirs))) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(dirs.common_dir.join("worktrees")).into_iter().flatten().flatten() {
        // `worktrees/NAME/gitdir` holds the path of the `.git` file at the top of that work tree.
        let Ok(line) = read_line(&entry.path().join("gitdir")) else { continue };
        // Git writes a path from this directory where `worktree.useRelativePaths` is set.
        let dot_git = entry.path().join(path_from_bytes(line.trim_ascii_end()));
        let is_locked = entry.path().join("locked").exists();
        found.extend(dot_git.parent().map(|top| OtherWorkTree { top: real(top), is_locked }));
    }
    // A bare repository has no main work tree.
    if dirs.git_dir != dirs.common_dir && dirs.common_dir.file_name().is_some_and(|name| name == ".git") {
        let main = dirs.common_dir.parent();
        found.extend(main.map(|top| OtherWorkTree { top: real(top), is_locked: false }));
    }
    // The repository has the work tree of the directory itself on record, too.
    let own = real(top);
    found.retain(|one| one.top != own);
    found.sort_unstable();
    found.dedup();
    found
}

/// A path without links and `..`, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    match known {
        Some((above, known)) => {
            let rest = path.strip_prefix(above).ok().filter(|rest| !rest.as_os_str().is_empty());
            rest.map_or(known.clone(), |rest| known.join(rest))
        }
        None => path.to_owned(),
    }
}
