//! The directories of a git work tree, read from its files: no process is started.

use std::fs;
use std::path::{Path, PathBuf};

use crate::regular::read_line;
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
        let line = read_line(&dot_git).ok()?;
        level.join(path_from_bytes(trim(line.strip_prefix(b"gitdir: ")?)))
    };
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
