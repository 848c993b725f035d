//! Whether what stands in a directory may be believed. A ledger holds commands that a rollback runs, so the one that is found by
//! looking upwards must be the user's own: not planted by another user, and not part of a repository that was cloned.
//! What the user names by `--db` or `IC_DB` is believed.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ic_base::{Code, Diagnosis, Result};

use crate::git_dirs::{GitDirs, git_dirs};
use crate::git_index;
use crate::values::path_bytes;

/// Whether a file may be believed that was found in `directory`: one that only its owner and people whom they chose may write
/// in, or the file is the user's own.
pub fn is_believable(file: &Path, directory: &Path) -> bool {
    const BY_EVERYBODY: u32 = 0o002;
    let is_open = fs::metadata(directory).is_ok_and(|meta| meta.mode() & BY_EVERYBODY != 0);
    !is_open || fs::symlink_metadata(file).is_ok_and(|meta| is_own(&meta))
}

/// Refuses a ledger that was found by looking upwards and is not the user's own.
///
/// `usual` is where it was looked for, `level` the directory around that. Errors: `permission_denied` if it belongs to another
/// user, `no_ledger` if git tracks it: then it came with the repository.
pub(crate) fn require_own_ledger(db: &Path, store: &Path, usual: &Path, level: &Path) -> Result<()> {
    for path in [usual, store, db] {
        // A link in the usual place counts by its own owner, who chose where it leads.
        let meta = if path == usual { fs::symlink_metadata(path) } else { fs::metadata(path) };
        if meta.as_ref().is_ok_and(|meta| !is_own(meta)) {
            let owner = meta.map_or(0, |meta| meta.uid());
            return Err(Diagnosis::new(
                Code::PermissionDenied,
                format!("{} belongs to another user (uid {owner}).", path.display()),
            )
            .hint(format!("if you trust its commands: --db {}", db.display()))
            .detail("owner", owner));
        }
    }
    // Outside of a repository, no clone can have brought it.
    let Some((top, dirs)) = level.ancestors().find_map(|top| Some((top, git_dirs(top)?))) else {
        return Ok(());
    };
    // Git tracks nothing in its own directory.
    if usual.starts_with(&dirs.common_dir) || !came_with(top, &dirs, usual) {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::NoLedger,
        format!("{} is tracked by git: it came with the repository, and is not a ledger of yours.", usual.display()),
    )
    .hint("create one of your own: ic init; if you know this one: --db, or git rm -r --cached it")
    .detail("db", db.to_string_lossy().into_owned()))
}

/// Whether git tracks what stands at `path` in the work tree with this top. What cannot be read is taken for tracked.
fn came_with(top: &Path, dirs: &GitDirs, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(top) else { return false };
    git_index::tracks(dirs, path_bytes(below)).unwrap_or(true)
}

/// Whether it belongs to the user or to root, who could replace any file anyway.
fn is_own(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() || meta.uid() == 0
}

/// Refuses to begin a ledger in a directory that everybody may write in: others could put their own files in the place of what
/// it will hold. Errors: `permission_denied`.
pub(crate) fn require_closed(store: &Path) -> Result<()> {
    const BY_EVERYBODY: u32 = 0o002;
    match fs::metadata(store) {
        Ok(meta) if meta.mode() & BY_EVERYBODY != 0 => Err(Diagnosis::new(
            Code::PermissionDenied,
            format!("Everybody may write in {}, so no ledger can be kept there.", store.display()),
        )
        .hint("name a directory that does not exist yet; it is made for you alone")),
        _ => Ok(()),
    }
}
