//! Room for what lives no longer than a call: copies of databases, the next stat cache, objects that git has lost.
//!
//! Each call has a directory of its own beside the stat caches, and holds its lock for as long as it lives. A directory
//! whose lock can be had belongs to a dead owner: the process that finds it removes it. The operating system ends the lock with
//! the process, so neither an age nor a process number has to be believed. A file that gets its name when it is
//! whole has none: the store's lock, which every capture holds, tells whether its writer lives.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ic_base::{Diagnose, Result};
use ic_ledger::lock::wait;
use tempfile::TempDir;

use crate::caches::cache_directory;
use crate::lock::{self, LockMode};

/// The end of the names of these directories.
const ENDING: &str = ".scratch";

/// The beginning of the names of files that are not whole yet.
const UNFINISHED: &str = ".tmp";

/// A directory for copies, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    place: TempDir,
    _owner: File,
}

impl Scratch {
    /// Makes room beside the object store `objects`.
    pub(crate) fn new(objects: &Path) -> Result<Self> {
        let above = cache_directory(objects)?;
        let doing = || format!("making room in {}", above.display());
        loop {
            // Until it is locked, another process may take it for a dead owner's. Then the next one is made.
            let place = tempfile::Builder::new().prefix("").suffix(ENDING).tempdir_in(&above).while_doing(doing)?;
            // One that was taken for a dead owner's is gone by now: the lock tells.
            let _ = ic_ledger::private::mend(place.path());
            if let Some(owner) = own(place.path()).while_doing(doing)? {
                return Ok(Self { place, _owner: owner });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }
}

/// Room that is made when it is first asked for: most calls need none.
#[derive(Debug)]
pub(crate) struct LazyScratch {
    objects: PathBuf,
    made: Mutex<Option<Scratch>>,
}

impl LazyScratch {
    /// Room beside the object store `objects`.
    pub(crate) fn new(objects: &Path) -> Self {
        Self { objects: objects.to_owned(), made: Mutex::new(None) }
    }

    /// The directory. Errors: those of [`Scratch::new`].
    pub(crate) fn path(&self) -> Result<PathBuf> {
        // The lock is held while it is made: all threads of a capture share one directory.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = match made.take() {
            Some(scratch) => scratch,
            None => Scratch::new(&self.objects)?,
        };
        Ok(made.insert(scratch).path().to_owned())
    }
}

/// Locks a directory that was just made; `None` if it was taken for a dead owner's before it was locked.
fn own(path: &Path) -> io::Result<Option<File>> {
    let gone = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    let owner = match File::open(path) {
        Err(e) if gone(&e) => return Ok(None),
        opened => opened?,
    };
    if !wait(&owner, LockMode::Exclusive, Duration::ZERO)? {
        return Ok(None);
    }
    // Another process may have had the lock in between, and removed the directory under it.
    match std::fs::metadata(path) {
        Err(e) if gone(&e) => Ok(None),
        now => Ok((now?.ino() == owner.metadata()?.ino()).then_some(owner)),
    }
}

/// What dead owners left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// How many copies there are.
    pub count: usize,
    /// The bytes in them.
    pub bytes: u64,
    /// What could not be removed, and why.
    pub failed: Vec<(PathBuf, String)>,
}

/// Counts what dead owners left beside the object store `objects`, and changes nothing.
pub fn leftovers(objects: &Path) -> Leftovers {
    // Files that are not whole have no lock. Only a process that holds the store alone knows that no capture
    // writes them now.
    let alone = has_unfinished(objects).then(|| alone(objects)).flatten();
    let mut found = Leftovers::default();
    for path in candidates(objects, alone.is_some()) {
        if owned_by_the_dead(&path).is_some() {
            found.count += 1;
            found.bytes += size_of(&path);
        }
    }
    found
}

/// Removes what dead owners left beside the object store `objects`. The caller holds no lock of the store's; files
/// that are not whole stay while a capture runs.
pub fn clear(objects: &Path) -> Leftovers {
    // The store is locked only if there is such a file: otherwise captures would wait without a reason.
    let alone = has_unfinished(objects).then(|| alone(objects)).flatten();
    remove(objects, alone.is_some())
}

/// As [`clear`], for a caller that holds the store's lock alone.
pub fn clear_alone(objects: &Path) -> Leftovers {
    remove(objects, true)
}

fn remove(objects: &Path, is_alone: bool) -> Leftovers {
    let mut removed = Leftovers::default();
    for path in candidates(objects, is_alone) {
        // Held until it is gone: of two that find it, one removes it.
        let Some(_owner) = owned_by_the_dead(&path) else { continue };
        let size = size_of(&path);
        // A link is not followed: what it leads to is not ours.
        let is_directory = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        let done = if is_directory { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match done {
            // Another process had the lock before this one, and has removed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => removed.failed.push((path, e.to_string())),
            Ok(()) => {
                removed.count += 1;
                removed.bytes += size;
            }
        }
    }
    removed
}

/// The store's lock, alone, if it can be had at once.
fn alone(objects: &Path) -> Option<lock::Lock> {
    lock::store(objects, LockMode::Exclusive, Duration::ZERO).ok()
}

/// Whether there are files that are not whole: left by a dead process, or written now.
fn has_unfinished(objects: &Path) -> bool {
    names(objects).any(|name| name.starts_with(UNFINISHED))
}

/// What may be a dead owner's.
fn candidates(objects: &Path, is_alone: bool) -> Vec<PathBuf> {
    let above = objects.with_extension("cache");
    let is_one = |name: &String| name.ends_with(ENDING) || (is_alone && name.starts_with(UNFINISHED));
    names(objects).filter(is_one).map(|name| above.join(name)).collect()
}

fn names(objects: &Path) -> impl Iterator<Item = String> {
    // `cache_directory` is not used, because it makes the directory: a count changes nothing.
    let entries = std::fs::read_dir(objects.with_extension("cache")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The lock of a directory whose owner is dead.
fn owned_by_the_dead(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    wait(&file, LockMode::Exclusive, Duration::ZERO).ok()?.then_some(file)
}

/// The bytes of a file, or of the files in a directory.
fn size_of(path: &Path) -> u64 {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let objects = place.path().join("objects.db");
        (place, objects)
    }

    #[test]
    fn what_an_owner_holds_stays_and_what_it_leaves_goes() {
        let (_place, objects) = place();
        let living = Scratch::new(&objects).unwrap();
        std::fs::write(living.path().join("copy.db"), [7; 100]).unwrap();
        let dead = Scratch::new(&objects).unwrap();
        std::fs::write(dead.path().join("copy.db"), [7; 50]).unwrap();
        let Scratch { place, _owner: owner } = dead;
        let left = place.keep();
        assert_eq!(leftovers(&objects), Leftovers::default());
        drop(owner);
        let one = Leftovers { count: 1, bytes: 50, failed: Vec::new() };
        assert_eq!(leftovers(&objects), one);
        assert_eq!(clear(&objects), one);
        assert!(!left.exists() && living.path().join("copy.db").exists());
        assert_eq!(clear_alone(&objects), Leftovers::default());
    }

    #[test]
    fn room_is_made_once_and_only_where_it_is_asked_for() {
        let (_place, objects) = place();
        let scratch = LazyScratch::new(&objects);
        assert_eq!(names(&objects).count(), 0);
        let path = scratch.path().unwrap();
        assert!(path.is_dir() && scratch.path().unwrap() == path);
        drop(scratch);
        assert_eq!(names(&objects).count(), 0);
    }

    #[test]
    fn unfinished_files_go_once_no_capture_runs() {
        let (_place, objects) = place();
        let above = cache_directory(&objects).unwrap();
        std::fs::create_dir(above.join(".tmpAbCdEf")).unwrap();
        std::fs::write(above.join(".tmpAbCdEf/copy.db"), [7; 30]).unwrap();
        std::fs::write(above.join(".tmpGhIjKl"), "cache").unwrap();
        std::fs::write(above.join("0123456789abcdef0123456789abcdef"), "a stat cache").unwrap();
        // A capture may live: what it writes cannot be told from what a dead one left.
        let capturing = ic_ledger::lock::open(&lock::store_path(&objects)).unwrap();
        assert!(wait(&capturing, LockMode::Shared, Duration::ZERO).unwrap());
        assert_eq!((leftovers(&objects).count, clear(&objects).count), (0, 0));
        drop(capturing);
        assert_eq!((leftovers(&objects).count, leftovers(&objects).bytes), (2, 35));
        assert_eq!(clear(&objects).count, 2);
        let left: Vec<String> = names(&objects).collect();
        assert_eq!(left, ["0123456789abcdef0123456789abcdef"]);
    }
}
