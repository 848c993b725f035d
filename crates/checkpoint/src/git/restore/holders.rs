//! Which processes of this machine may hold a lock of git, where `/proc` is there to ask.
//!
//! Processes that cannot be read are skipped: they belong to another user, whose locks are never removed here anyway.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The processes, by id, each with its place in `/proc`.
fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.path()))
    })
}

/// A process that has this file open. `place`: its device and its inode.
pub(super) fn has_open(path: &Path, place: (u64, u64)) -> Option<u32> {
    // The name is compared first: a stat of any other open file may wait for a slow or remote disk.
    let is_it = |fd: &Path| {
        fs::read_link(fd).is_ok_and(|at| at.file_name() == path.file_name())
            && fs::metadata(fd).is_ok_and(|meta| (meta.dev(), meta.ino()) == place)
    };
    let has_it = |process: &Path| {
        let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        open.map(|entry| entry.path()).any(|fd| is_it(&fd))
    };
    processes().find(|(_, process)| has_it(process)).map(|(pid, _)| pid)
}

/// The git processes that work in a repository: one that waits for a hook holds locks that it does not have open.
pub(super) fn gits_in(common_dir: &Path) -> BTreeSet<u32> {
    let is_git = |process: &Path| fs::read(process.join("comm")).is_ok_and(|name| name.starts_with(b"git"));
    // That of one that ended and was not waited for cannot be read.
    let stands_in_it =
        |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|directory| is_in(&directory, common_dir));
    processes().filter(|(_, process)| is_git(process) && stands_in_it(process)).map(|(pid, _)| pid).collect()
}

/// Whether a directory is in a work tree of this repository, or in its git directory.
fn is_in(directory: &Path, common_dir: &Path) -> bool {
    if directory.starts_with(common_dir) {
        return true;
    }
    // A directory within a work tree may be a repository of its own.
    let found = directory.ancestors().find_map(ic_ledger::git_dirs);
    found.is_some_and(|dirs| dirs.common_dir == common_dir)
}
