//! The stat caches' files: read whole, continued in place, replaced when they are sparse.
//!
//! A process that continues a file holds its lock alone; readers share it ([`crate::lock`]). Nothing waits for the disk: a record that a
//! loss of power tore is detected, and its directory is read from the tree again.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Diagnose, Result};
use ic_ledger::events::Hash;
use ic_ledger::lock::{FileLock, HeldLock, LockMode, Rank, wait};
use ic_ledger::path_bytes;
use ic_ledger::path_from_bytes;
use ic_ledger::private;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, fstat, futimens};

use super::cache::{Cache, CacheUpdate, Key};
use super::memory_maps::Flush;
use super::partial_captures;
use crate::caches::{ROOT_KEY, cache_directory, root_key};
use crate::objects::Objects;
use crate::scratch::LazyScratch;

/// The stat cache's file, and room for one that will take its place.
pub(super) struct CacheFile {
    path: PathBuf,
    /// Where copies may be made.
    pub(super) scratch: LazyScratch,
    patience: Duration,
}

/// The name of the next stat cache among the copies.
const NEXT: &str = "cache";

/// Where the stat cache of a root lies; with an ending, what else is kept of the root.
pub(crate) fn beside(objects: &Objects, root: &Path, flush: Flush) -> Result<PathBuf> {
    // A cache that trusts files without a look at memory maps must not be used by captures that look at them: it has a name of its own.
    let key = match flush {
        Flush::Never => root_key(&path_from_bytes(&[path_bytes(root), b"\0never"].concat())),
        Flush::Auto | Flush::Always => root_key(root),
    };
    Ok(cache_directory(objects.path())?.join(key))
}

/// The ending of the file with git's settings of ignore rules.
pub(crate) const RULES: &str = "rules";

/// The ending of the file with what git told last.
pub(crate) const TOLD: &str = "git";

/// The ending of the file that is touched to learn the time.
const CLOCK: &str = "clock";

/// The moment by the clock of the file system, in nanoseconds: a file beside the stat cache `path` is touched for it. Another process may
/// touch it too: what is read is never later than now.
pub(crate) fn moment(path: &Path) -> io::Result<i64> {
    let clock = path.with_extension(CLOCK);
    let file = private::open(&clock, File::options().create(true).truncate(false).write(true))?;
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    futimens(&file, &Timestamps { last_access: now, last_modification: now })?;
    Ok(Key::of(&fstat(&file)?).mtime)
}

impl CacheFile {
    pub(super) fn new(objects: &Objects, root: &Path, flush: Flush) -> Result<Self> {
        let path = beside(objects, root, flush)?;
        Ok(Self { path, scratch: LazyScratch::new(objects.path()), patience: objects.patience() })
    }

    /// Where git's settings of ignore rules are kept for this root.
    pub(super) fn rule_settings(&self) -> PathBuf {
        // With an ending, as locks have one: it is no cache of a tree.
        self.path.with_extension(RULES)
    }

    /// Where what unfinished captures have read is written down.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.path.with_extension(partial_captures::ENDING)
    }

    /// The last cache, if it can be believed: whole, and about content that the store still has.
    ///
    /// None either while another process keeps it locked past the timeout: the tree is read again, which takes longer.
    pub(super) fn load(&self, objects: &Objects) -> Option<Cache> {
        // The rank ends with this function. The lock of a large cache lasts longer: the walk reads its records from the
        // open file.
        let _held = HeldLock::new(Rank::Cache);
        let file = File::open(&self.path).ok()?;
        wait(&file, LockMode::Shared, self.patience).ok()?.then_some(())?;
        read(file, objects)
    }

    /// The moment at which the capture began, by the clock of the file system, in nanoseconds.
    pub(super) fn moment(&self) -> Result<i64> {
        moment(&self.path).while_doing(|| "reading the file system's clock".to_owned())
    }

    /// Writes the update. If another capture has continued the file in between, its records are as good, and nothing is written.
    pub(super) fn save(self, update: &CacheUpdate) -> Result<()> {
        let doing = || format!("writing the stat cache {}", self.path.display());
        match update {
            CacheUpdate::Whole(bytes) => {
                // The scratch directory is beside the caches, so the rename stays on one file system.
                let next = self.scratch.path()?.join(NEXT);
                let written = private::create_new(&next).and_then(|mut file| file.write_all(bytes));
                written.and_then(|()| std::fs::rename(&next, &self.path)).while_doing(doing)
            }
            CacheUpdate::After { before, records, header } => {
                append(&self.path, self.patience, before, records, header).while_doing(doing)
            }
        }
    }
}

fn append(path: &Path, patience: Duration, before: &[u8], records: &[u8], header: &[u8]) -> io::Result<()> {
    let held = HeldLock::new(Rank::Cache);
    let file = match private::open(path, File::options().read(true).write(true)) {
        // It was removed (`forget_caches`): the next capture makes it anew.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    // Not worth waiting for: the next capture reads again what this one saw.
    if !wait(&file, LockMode::Exclusive, patience)? {
        return Ok(());
    }
    // If another process has continued or replaced the file, our records would have the places of others.
    let mut now = vec![0; before.len()];
    file.read_exact_at(&mut now, 0)?;
    if now != before {
        return Ok(());
    }
    // The header last: until it is written, the new records do not count, and a crash leaves the old cache.
    file.write_all_at(records, Cache::length_in(before))?;
    file.write_all_at(header, 0)?;
    drop(FileLock::of(file, held));
    Ok(())
}

/// A cache that can be believed: whole, and about content that the store still has.
fn read(file: File, objects: &Objects) -> Option<Cache> {
    let cache = Cache::open(file)?;
    // One look at the root is enough: a sweep keeps the whole tree of each cache, or removes the cache.
    objects.has(&tree_of(&cache)?).ok()?.then_some(cache)
}

/// The tree that a cache stands for.
fn tree_of(cache: &Cache) -> Option<Hash> {
    Some(cache.record(cache.header().root)?.read()?.record.hash)
}

/// The trees that stat caches stand for: a capture may name them again without reading them.
///
/// The caller holds the store's lock alone. Users of a cache hold that lock shared, so no file needs to be locked here. Waiting
/// for one would be waiting for a root, while every capture waits for the store.
pub fn cached_trees(objects: &Objects) -> Vec<Hash> {
    let tree = |path: PathBuf| {
        let cache = read(File::open(path).ok()?, objects)?;
        tree_of(&cache)
    };
    caches(objects).filter_map(tree).collect()
}

/// Forgets what captures saw, and what git told: the next ones read and ask everything again. The caller holds the store's lock alone.
pub fn forget_caches(objects: &Objects) -> Result<()> {
    let files = caches(objects)
        .flat_map(|path| [path.with_extension(TOLD), path.with_extension(partial_captures::ENDING), path]);
    let mut found = files.filter(|path| path.symlink_metadata().is_ok());
    found.try_for_each(|path| std::fs::remove_file(&path).while_doing(|| format!("removing {}", path.display())))
}

/// The files of stat caches. Locks, and copies of captures, lie beside them.
fn caches(objects: &Objects) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(objects.path().with_extension("cache")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        name.len() == ROOT_KEY && name.iter().all(u8::is_ascii_hexdigit)
    })
}
