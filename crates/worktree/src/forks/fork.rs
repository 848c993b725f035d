//! Forks, their names, and the marks by which they are known.

use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnose, Diagnosis, DispatchId, Result};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{DispatchStatus, dispatch};
use ic_kernel::Kernel;
use ic_ledger::{OtherWorkTree, Snapshot, other_work_trees, path_bytes};

use super::super::workspace::require_kept;

/// The file in git's directory of a work tree that makes it a fork. It has the id of a checkpoint, or nothing before there is one; then a
/// line for each adoption: the dispatch that it was, and the checkpoint of the fork at that moment.
const MARK: &str = "ic-fork";

/// A work tree that was forked from another one.
#[derive(Debug, Clone)]
pub struct Fork {
    /// Its name: that of its directory.
    pub name: String,
    /// The directory, without links.
    pub root: PathBuf,
    /// The tree with which it began; `None`: the call that made it was killed, or another ledger has it.
    pub base: Option<CheckpointRecord>,
    /// Whether it has all of its files: the call that made it was not killed.
    pub is_finished: bool,
    /// The tree that was adopted last, where that adoption stands: what is adopted next is what changed since.
    pub adopted: Option<CheckpointRecord>,
}

impl Fork {
    /// The tree with which it began. Errors: `file_conflict` where that is not known; `checkpoint_not_found` if it was pruned.
    pub(super) fn require_base(&self) -> Result<&CheckpointRecord> {
        let Some(base) = &self.base else {
            if !self.is_finished {
                return Err(unfinished(&self.name));
            }
            let message = format!("This ledger does not know with which files the fork {} began.", self.name);
            return Err(Diagnosis::new(Code::FileConflict, message).hint(format!(
                "name the ledger with which it was made: --db FILE; or remove it: ic drop {}",
                self.name
            )));
        };
        require_kept(base)?;
        Ok(base)
    }

    /// The tree from which on its changes are to be adopted. Errors: as of [`Self::require_base`].
    pub(super) fn require_unadopted(&self) -> Result<&CheckpointRecord> {
        let base = self.require_base()?;
        Ok(self.adopted.as_ref().filter(|adopted| require_kept(adopted).is_ok()).unwrap_or(base))
    }

    /// Notes that a piece of work adopted it as it was at a checkpoint.
    pub fn note_adopted(&self, work: &DispatchId, checkpoint: &CheckpointId) -> Result<()> {
        let noted = marked(&self.root).unwrap_or_default();
        mark(&self.root, &format!("{}\n{work} {checkpoint}", noted.trim_end()))
    }
}

/// The newest adoption that stands, of those that a mark has.
fn newest_adopted(snapshot: &Snapshot<'_>, mark: &str) -> Result<Option<CheckpointRecord>> {
    // The newest adoption is the last line; the first line is the base.
    for line in mark.lines().skip(1).collect::<Vec<_>>().into_iter().rev() {
        let Some((work, checkpoint)) = line.split_once(' ') else { continue };
        let work = dispatch::find(snapshot, &DispatchId::from_ledger(work.to_owned()))?;
        let stands = work.is_some_and(|work| work.rolled_back_by.is_none() && work.status == DispatchStatus::Completed);
        if stands {
            return known(snapshot, checkpoint);
        }
    }
    Ok(None)
}

/// The checkpoint that a mark names; `None`: this ledger does not have it. The forks of a repository may be of several ledgers.
fn known(snapshot: &Snapshot<'_>, id: &str) -> Result<Option<CheckpointRecord>> {
    match record::get(snapshot, &CheckpointId::from_ledger(id.to_owned())) {
        Err(error) if error.code() == Code::CheckpointNotFound => Ok(None),
        found => found.map(Some),
    }
}

fn unfinished(name: &str) -> Diagnosis {
    let message = format!("The fork {name} is unfinished: the call that made it was killed.");
    Diagnosis::new(Code::FileConflict, message)
        .hint(format!("remove it, and make it again: ic drop {name}; ic fork --name {name}"))
}

/// Errors: `file_conflict` for a fork that has only a part of its files.
pub fn require_finished(place: &Path) -> Result<()> {
    match (marked(place), place.file_name()) {
        (Some(mark), Some(name)) if mark.is_empty() => Err(unfinished(&name.to_string_lossy())),
        _ => Ok(()),
    }
}

/// Where the fork of this name of a work tree lies: in a directory beside that.
pub(super) fn directory_of(root: &Path, name: &str) -> PathBuf {
    let mut beside = root.file_name().unwrap_or_default().to_owned();
    beside.push(".forks");
    root.with_file_name(beside).join(name)
}

/// The name of the fork of a work tree whose place this directory is, whether it is there or not; `None`: it is not such a place.
pub(crate) fn name_at(root: &Path, directory: &Path) -> Option<String> {
    let name = directory.file_name()?.to_str()?;
    (directory_of(root, name) == directory).then(|| name.to_owned())
}

/// Git's records of work trees in a directory, whether that is there or not.
pub(super) fn records_of(root: &Path, directory: &Path) -> Vec<PathBuf> {
    let Some(dirs) = ic_ledger::git_dirs(root) else { return Vec::new() };
    let dot_git = directory.join(".git");
    let entries = fs::read_dir(dirs.common_dir.join("worktrees")).into_iter().flatten().flatten();
    let is_of = |record: &PathBuf| {
        let place = fs::read_to_string(record.join("gitdir")).unwrap_or_default();
        record.join(place.trim_end()) == dot_git
    };
    entries.map(|entry| entry.path()).filter(is_of).collect()
}

/// Whether git has a finished fork on record in a place where none is: a person moved or removed its directory. Its commits are reached
/// through that record alone.
pub(super) fn is_registered(root: &Path, directory: &Path) -> bool {
    let is_finished = |record: &PathBuf| fs::read_to_string(record.join(MARK)).is_ok_and(|mark| !mark.is_empty());
    !directory.join(".git").exists() && records_of(root, directory).iter().any(is_finished)
}

/// The first name that no fork of this work tree has: 1, 2, 3.
pub fn free_name(root: &Path) -> String {
    let is_free = |number: &u32| {
        let directory = directory_of(root, &number.to_string());
        directory.symlink_metadata().is_err() && !is_registered(root, &directory)
    };
    (1..u32::MAX).find(is_free).unwrap_or_default().to_string()
}

/// Says that a work tree is a fork, and with which checkpoint it began.
pub(super) fn mark(directory: &Path, checkpoint: &str) -> Result<()> {
    let Some(dirs) = ic_ledger::git_dirs(directory) else {
        let message = format!("{} is no work tree.", directory.display());
        return Err(Diagnosis::new(Code::GitFailed, message).hint("see: git worktree list"));
    };
    replace(&dirs.git_dir.join(MARK), checkpoint)
}

/// Writes a file as a whole or not at all: an empty mark would say that the fork is unfinished.
pub(super) fn replace(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).while_doing(|| format!("writing {}", path.display()))
}

/// What the mark of a work tree says; `None`: it has none, so it is no fork.
pub(super) fn marked(directory: &Path) -> Option<String> {
    fs::read_to_string(ic_ledger::git_dirs(directory)?.git_dir.join(MARK)).ok()
}

/// The forks of a repository that are there, by their directories.
fn all(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<Fork>> {
    let mut forks = Vec::new();
    for OtherWorkTree { top: other, .. } in other_work_trees(root) {
        let Some(mark) = marked(&other) else { continue };
        let base = mark.lines().next().map_or(Ok(None), |id| known(snapshot, id))?;
        let adopted = newest_adopted(snapshot, &mark)?;
        let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
        forks.push(Fork { name, root: other, base, is_finished: !mark.is_empty(), adopted });
    }
    forks.sort_by(|one, other| one.root.cmp(&other.root));
    Ok(forks)
}

/// The forks of the work tree here. Another one of the repository may have forks of its own, with the same names.
pub fn of_here(kernel: &Kernel) -> Result<Vec<Fork>> {
    let root = &kernel.project.root;
    let mut forks = kernel.read(|snapshot| all(snapshot, root))?;
    forks.retain(|fork| name_at(root, &fork.root).is_some());
    Ok(forks)
}

/// The directories of the forks that a fork has itself.
pub(super) fn forks_in(root: &Path) -> Vec<Vec<u8>> {
    let is_of = |other: &PathBuf| name_at(root, other).is_some() && marked(other).is_some();
    let others = other_work_trees(root).into_iter().map(|other| other.top);
    others.filter(is_of).map(|other| path_bytes(&other).to_vec()).collect()
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
