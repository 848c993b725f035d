//! Forks, their names, and the marks by which they are known.

use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnose, Diagnosis, Result};
use ic_checkpoint::git;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;

use super::super::workspace::require_kept;

/// The file in git's directory of a work tree that makes it a fork. It has the id of a checkpoint, or nothing before there is one.
const MARK: &str = "ic-fork";

/// A work tree that was forked from another one.
#[derive(Debug, Clone)]
pub struct Fork {
    /// Its name: that of its directory.
    pub name: String,
    /// The directory, without links.
    pub root: PathBuf,
    /// The tree with which it began; `None`: the call that made it was killed.
    pub base: Option<CheckpointRecord>,
}

impl Fork {
    /// The tree with which it began. Errors: `file_conflict` where that is not known; `checkpoint_not_found` if it was pruned.
    pub(super) fn require_base(&self) -> Result<&CheckpointRecord> {
        let Some(base) = &self.base else {
            let message = format!("The fork {} is unfinished: the call that made it was killed.", self.name);
            return Err(Diagnosis::new(Code::FileConflict, message)
                .hint(format!("remove it, and make it again: ic drop {0}; ic fork --name {0}", self.name)));
        };
        require_kept(base)?;
        Ok(base)
    }
}

/// Where the fork of this name of a work tree lies: in a directory beside that.
pub(super) fn directory_of(root: &Path, name: &str) -> PathBuf {
    let mut beside = root.file_name().unwrap_or_default().to_owned();
    beside.push(".forks");
    root.with_file_name(beside).join(name)
}

/// The first name that no fork of this work tree has: 1, 2, 3.
pub fn free_name(root: &Path) -> String {
    let is_free = |number: &u32| directory_of(root, &number.to_string()).symlink_metadata().is_err();
    (1..u32::MAX).find(is_free).unwrap_or_default().to_string()
}

/// Says that a work tree is a fork, and with which checkpoint it began.
pub(super) fn mark(directory: &Path, checkpoint: &str) -> Result<()> {
    let Some(dirs) = ic_ledger::git_dirs(directory) else {
        let message = format!("{} is no work tree.", directory.display());
        return Err(Diagnosis::new(Code::GitFailed, message).hint("see: git worktree list"));
    };
    let path = dirs.git_dir.join(MARK);
    fs::write(&path, checkpoint).while_doing(|| format!("writing {}", path.display()))
}

/// What the mark of a work tree says; `None`: it has none, so it is no fork.
pub(super) fn marked(directory: &Path) -> Option<String> {
    fs::read_to_string(ic_ledger::git_dirs(directory)?.git_dir.join(MARK)).ok()
}

/// The forks of a repository that are there, by their directories.
fn all(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<Fork>> {
    let mut forks = Vec::new();
    for other in git::other_work_trees(root) {
        let Some(checkpoint) = marked(&other) else { continue };
        let is_whole = !checkpoint.is_empty();
        let base = is_whole.then(|| record::get(snapshot, &CheckpointId::from_ledger(checkpoint))).transpose()?;
        let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
        forks.push(Fork { name, root: other, base });
    }
    forks.sort_by(|one, other| one.root.cmp(&other.root));
    Ok(forks)
}

/// The forks of the work tree here. Another one of the repository may have forks of its own, with the same names.
pub fn of_here(kernel: &Kernel) -> Result<Vec<Fork>> {
    let root = &kernel.project.root;
    let mut forks = kernel.read(|snapshot| all(snapshot, root))?;
    forks.retain(|fork| fork.root == directory_of(root, &fork.name));
    Ok(forks)
}

/// The fork of the work tree here with this name, or any of the repository in this directory. Errors: `fork_not_found`.
pub fn find(kernel: &Kernel, text: &str) -> Result<Fork> {
    let here = of_here(kernel)?;
    if let Some(fork) = here.iter().find(|fork| fork.name == text) {
        return Ok(fork.clone());
    }
    let meant = fs::canonicalize(kernel.project.directory.join(text)).ok();
    let mut forks = kernel.read(|snapshot| all(snapshot, &kernel.project.root))?.into_iter();
    forks.find(|fork| meant.as_ref() == Some(&fork.root)).ok_or_else(|| {
        let names: Vec<&str> = here.iter().map(|fork| fork.name.as_str()).collect();
        let listed = format!("the forks here: {}", names.join(", "));
        let hint = if names.is_empty() { "make one: ic fork".to_owned() } else { listed };
        Diagnosis::new(Code::ForkNotFound, format!("There is no fork {text:?} of this work tree."))
            .hint(hint)
            .detail("fork", text)
    })
}
