//! What a restore of git's state changes, and what refuses it.

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_ledger::GitDirs;
use serde::Serialize;
use std::path::Path;

/// A ref that is made, moved or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The whole name of the ref, `refs/heads/main`.
    pub name: Vec<u8>,
    /// Where it is; `None`: it is made.
    pub from: Option<String>,
    /// Where it goes; `None`: it is removed.
    pub to: Option<String>,
}

/// What restoring a state would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GitRestorePlan {
    /// Branches and tags that move, and the ref that HEAD is on.
    pub refs: Vec<Moved>,
    /// Whether HEAD goes to another branch, or is detached elsewhere.
    pub head: bool,
    /// Whether the index changes.
    pub index: bool,
    /// Whether the stash changes.
    pub stash: bool,
    /// The operation that ends: it began since, and is no part of the state to be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// Commits that leave a branch which goes back, and those that are on no branch of the state to be restored, newest first.
    pub new_commits: Vec<String>,
}

impl GitRestorePlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty() && !self.head && !self.index && !self.stash && self.ends.is_none()
    }
}

pub(super) fn dirs(root: &Path) -> Result<GitDirs> {
    ic_ledger::git_dirs(root).ok_or_else(|| {
        Diagnosis::new(Code::GitFailed, format!("{} is not a git work tree any more.", root.display()))
            .hint("restore the files alone: ic checkpoint restore ID --strategy files-only --yes")
    })
}

pub(super) fn busy(what: &str) -> Diagnosis {
    Diagnosis::new(Code::GitBusy, format!("Git's state was not restored: {what}."))
        .hint("try again; or restore the files alone: ic checkpoint restore ID --strategy files-only --yes")
}

/// The error of a lock, which a git that is dead may have left: it is named, so that it can be removed.
pub(super) fn locked(what: &str, lock: &Path) -> Diagnosis {
    let lock = lock.display().to_string();
    busy(&format!("another git command holds {what}"))
        .hint(format!(
            "try again; when no git runs here, remove the lock that one left: rm {}; or restore the files alone: ic checkpoint restore ID --strategy files-only --yes",
            shell_word(&lock)
        ))
        .detail("lock", lock)
}
