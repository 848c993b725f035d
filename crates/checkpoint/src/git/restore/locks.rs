//! Locks of refs and of the index that a git of ours left, which was killed in the midst of a restore together with us.
//!
//! Git makes such a lock as a new file, holds it for milliseconds, and does not write into it whose it is. One is taken
//! for left behind if the restore may have made it, no process has touched it while we looked, and no process that could
//! hold it is running. In doubt it stays, and is named.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result, Timestamp, shell_word};
use ic_ledger::{GitDirs, path_from_bytes};
use ic_sys::open_files::{SoughtFile, holder_of, working_in};

use super::change::GitRestorePlan;
use super::index::is_left_behind;

/// How often a lock is looked at, with [`BETWEEN`] in between. Git itself waits for 100 ms at most (`core.filesRefLockTimeout`).
const LOOKS: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(100);

/// The clock of a file system may be behind by a tick of the kernel: 10 ms where that is longest.
const TICK_MILLIS: i64 = 20;

/// A lock as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLock {
    path: PathBuf,
    /// Its device and its inode.
    place: (u64, u64),
    /// When it was written, in seconds and nanoseconds, and its size.
    written: (i64, i64, u64),
}

impl LeftLock {
    /// The path of the lock file, to be shown or removed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn find(path: &Path) -> Option<(Self, Metadata)> {
        let meta = fs::symlink_metadata(path).ok()?;
        let place = (meta.dev(), meta.ino());
        let written = (meta.mtime(), meta.mtime_nsec(), meta.size());
        Some((Self { path: path.to_owned(), place, written }, meta))
    }

    fn is_as_it_was(&self) -> bool {
        Self::find(&self.path).is_some_and(|(now, _)| now == *self)
    }

    fn sought(&self) -> SoughtFile {
        SoughtFile { path: self.path.clone(), identity: Some(self.place), has_other_names: false }
    }

    fn millis(&self) -> i64 {
        let (seconds, nanos, _) = self.written;
        seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)
    }
}

/// A lock that stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingLock {
    path: PathBuf,
    why: String,
    /// The process that has to end first.
    holder: Option<u32>,
}

impl StandingLock {
    fn new(path: &Path, why: impl Into<String>, holder: Option<u32>) -> Self {
        Self { path: path.to_owned(), why: why.into(), holder }
    }

    /// The error of a call that it refuses.
    pub fn diagnosis(&self) -> Diagnosis {
        let path = self.path.display().to_string();
        let hint = match self.holder {
            Some(pid) => format!("when the process {pid} has ended, call again"),
            None => format!("when no git runs here, remove it: rm {}; then call again", shell_word(&path)),
        };
        let message = format!("Git's state was not restored: {path} is in the way; {}.", self.why);
        let error = Diagnosis::new(Code::GitBusy, message).hint(hint).detail("lock", path);
        match self.holder {
            Some(pid) => error.detail("pid", pid),
            None => error,
        }
    }
}

/// The locks there are of those that the restore with this id may have made, by its plan; without one, those alone that are known without
/// it.
pub fn locks_of(root: &Path, id: &str, plan: Option<&GitRestorePlan>) -> Vec<PathBuf> {
    let Some(dirs) = ic_ledger::git_dirs(root) else { return Vec::new() };
    // What moves nothing makes no lock.
    if plan.is_some_and(GitRestorePlan::is_empty) {
        return Vec::new();
    }
    // A lock with our mark is simply taken over. One without was made by the git that looks at the files again, or by us just before the
    // mark was written.
    let index = Some(dirs.git_dir.join("index.lock")).filter(|lock| !is_left_behind(lock));
    let mut locks: Vec<PathBuf> = index.into_iter().chain(packed(&dirs)).chain(tables(&dirs)).collect();
    locks.push(dirs.git_dir.join("HEAD.lock"));
    locks.extend(plan.into_iter().flat_map(|plan| named_by(plan, &dirs)));
    locks.retain(|lock| lock.symlink_metadata().is_ok());
    add_below(&dirs.common_dir.join("refs/ic/rolled-back").join(id), &mut locks);
    locks.sort();
    locks.dedup();
    locks
}

/// The locks there are that a restore by this plan would meet. One of the index that a killed restore left is taken over.
pub(super) fn met_by(plan: &GitRestorePlan, dirs: &GitDirs) -> Vec<PathBuf> {
    let mut locks = vec![dirs.git_dir.join("HEAD.lock")];
    locks.extend(Some(dirs.git_dir.join("index.lock")).filter(|lock| !is_left_behind(lock)));
    // Where a ref moves, its file is written anew; only one that goes is taken out of those that are packed.
    if plan.refs.iter().any(|moved| moved.to.is_none()) {
        locks.extend(packed(dirs));
    }
    if plan.head || plan.stash || !plan.refs.is_empty() {
        locks.extend(tables(dirs));
    }
    locks.extend(named_by(plan, dirs));
    locks.retain(|lock| lock.symlink_metadata().is_ok());
    locks
}

/// Locks of the refs that have no file of their own. The second holds what they are to be: git makes that under the lock, and fails where
/// it is there.
fn packed(dirs: &GitDirs) -> [PathBuf; 2] {
    ["packed-refs.lock", "packed-refs.new"].map(|name| dirs.common_dir.join(name))
}

/// Locks of refs that are kept in tables.
fn tables(dirs: &GitDirs) -> [PathBuf; 2] {
    [&dirs.common_dir, &dirs.git_dir].map(|dir| dir.join("reftable/tables.list.lock"))
}

/// Where the locks of the refs that a plan moves would be.
fn named_by(plan: &GitRestorePlan, dirs: &GitDirs) -> Vec<PathBuf> {
    let mut locks = Vec::new();
    for moved in &plan.refs {
        let name = path_from_bytes(&[&moved.name[..], b".lock"].concat());
        // Most refs are shared. A few belong to one work tree, such as those of `git bisect`, and have their locks there.
        locks.extend([dirs.common_dir.join(&name), dirs.git_dir.join(&name)]);
    }
    // Git drops an entry of the stash by writing its log anew, under a lock of the log.
    if plan.stash {
        locks.extend(["refs/stash.lock", "logs/refs/stash.lock"].map(|name| dirs.common_dir.join(name)));
    }
    locks
}

/// Adds every lock below a directory, which is of one restore alone. No ref has a name that ends so.
fn add_below(directory: &Path, locks: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_below(&path, locks);
        } else if path.extension().is_some_and(|end| end == "lock") {
            locks.push(path);
        }
    }
}

/// Those of the locks that no process holds, after a wait in which a living git would have released them. `begun`: when the restore began
/// to move refs, if it did, and the time now.
///
/// Errors: the first that is not certain to be left behind.
pub fn left_locks(
    root: &Path,
    locks: &[PathBuf],
    begun: Option<(Timestamp, Timestamp)>,
) -> std::result::Result<Vec<LeftLock>, StandingLock> {
    let Some(dirs) = ic_ledger::git_dirs(root) else { return Ok(Vec::new()) };
    let found: Vec<(LeftLock, Metadata)> = locks.iter().filter_map(|path| LeftLock::find(path)).collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    // A process that holds one of them runs before and after the wait. Those that begin or end during it do not matter.
    let gits_in_it = || working_in("git", |directory| is_in(directory, &dirs.common_dir));
    let first = found[0].0.path.clone();
    let unknown = |error| StandingLock::new(&first, format!("it cannot be told who has it open: {error}"), None);
    let mut gits = gits_in_it().map_err(unknown)?;
    for _ in 0..LOOKS {
        if !found.iter().any(|(lock, _)| lock.path.symlink_metadata().is_ok()) {
            return Ok(Vec::new());
        }
        std::thread::sleep(BETWEEN);
    }
    let still = gits_in_it().map_err(unknown)?;
    gits.retain(|pid| still.contains(pid));
    let mut left = Vec::new();
    for (lock, meta) in found {
        if lock.path.symlink_metadata().is_err() {
            continue;
        }
        require_left(&lock, &meta, begun)?;
        if let Some(pid) = holder_of(&[lock.sought()]).map_err(unknown)? {
            let why = format!("the process {pid} has it open");
            return Err(StandingLock::new(&lock.path, why, Some(pid)));
        }
        if let Some(pid) = gits.first() {
            let why = format!("git may hold it, which runs here as the process {pid}");
            return Err(StandingLock::new(&lock.path, why, Some(*pid)));
        }
        left.push(lock);
    }
    Ok(left)
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

/// Whether a lock may be of the restore that was killed, by what its file tells.
fn require_left(
    lock: &LeftLock,
    meta: &Metadata,
    begun: Option<(Timestamp, Timestamp)>,
) -> std::result::Result<(), StandingLock> {
    let stays = |why: &str| Err(StandingLock::new(&lock.path, why, None));
    if !lock.is_as_it_was() {
        return stays("another git command makes it again and again");
    }
    // It cannot be known what another user's processes have open: their locks stay.
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return stays("it is no file of yours");
    }
    let Some((since, now)) = begun else { return stays("another git command holds it, or left it") };
    if lock.millis() < since.millis() - TICK_MILLIS {
        return stays(
            "it was there before the restore that was interrupted, so another git command holds it or left it",
        );
    }
    if lock.millis() > now.millis() + TICK_MILLIS {
        return stays("its time is to come, so it cannot be told whether a git that is gone left it");
    }
    Ok(())
}

/// Removes locks that were found to be left behind, unless one is another by now.
pub fn remove_locks(locks: &[LeftLock]) -> Result<()> {
    for lock in locks.iter().filter(|lock| lock.is_as_it_was()) {
        fs::remove_file(&lock.path).while_doing(|| format!("removing {}", lock.path.display()))?;
    }
    Ok(())
}
