//! The stat caches' files: read whole, gone on after in place, replaced when they are sparse.
//!
//! Who goes on after a file holds its lock alone, who reads it shares it. Nothing waits for the disk: what a loss of power
//! tears is seen, and read from the tree again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Result};
use ic_events::Hash;

use super::cache::{Cache, Key, Update};
use super::root_key;
use crate::objects::Objects;

/// The stat cache's file, and a new one that will take its place.
pub(super) struct CacheFile {
    path: PathBuf,
    /// Where it lies, and where copies may be made.
    pub(super) directory: PathBuf,
    next: tempfile::NamedTempFile,
}

impl CacheFile {
    pub(super) fn new(objects: &Objects, root: &Path) -> Result<Self> {
        let directory = cache_directory(objects.path())?;
        let doing = || format!("using the stat cache in {}", directory.display());
        let next = tempfile::NamedTempFile::new_in(&directory).while_doing(doing)?;
        let path = directory.join(root_key(root));
        Ok(Self { path, directory, next })
    }

    /// Where git's settings of ignore rules are kept for this root.
    pub(super) fn rule_settings(&self) -> PathBuf {
        // With an ending, as locks have one: it is no cache of a tree.
        self.path.with_extension("rules")
    }

    /// The last cache, if it can be believed: whole, and about content that the store still has.
    pub(super) fn load(&self, objects: &Objects) -> Option<Cache> {
        read(&self.path, objects)
    }

    /// The moment at which the capture began, by the clock of the file system, in nanoseconds.
    pub(super) fn moment(&self) -> Result<i64> {
        let stat = rustix::fs::fstat(self.next.as_file()).map_err(io::Error::from);
        stat.map(|stat| Key::of(&stat).mtime).while_doing(|| "reading the file system's clock".to_owned())
    }

    /// Writes what becomes of the file. Where somebody else went on after it meanwhile, what they saw is as good.
    pub(super) fn save(mut self, update: &Update) -> Result<()> {
        let doing = || format!("writing the stat cache {}", self.path.display());
        match update {
            Update::Whole(bytes) => {
                self.next.write_all(bytes).while_doing(doing)?;
                self.next.persist(&self.path).map_err(|e| e.error).while_doing(doing).map(|_: File| ())
            }
            Update::After { before, records, header } => {
                go_on(&self.path, before, records, header).while_doing(doing)
            }
        }
    }
}

fn go_on(path: &Path, before: &[u8], records: &[u8], header: &[u8]) -> io::Result<()> {
    let file = match File::options().read(true).write(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    file.lock()?;
    let mut now = vec![0; before.len()];
    file.read_exact_at(&mut now, 0)?;
    if now != before {
        return Ok(());
    }
    // The header last: until then the file is what it was.
    file.write_all_at(records, Cache::length_in(before))?;
    file.write_all_at(header, 0)
}

/// A cache that can be believed: whole, and about content that the store still has.
fn read(path: &Path, objects: &Objects) -> Option<Cache> {
    let mut file = File::open(path).ok()?;
    file.lock_shared().ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let cache = Cache::parse(bytes)?;
    let root = cache.record(cache.header().root)?.record.hash;
    objects.has(&root).ok()?.then_some(cache)
}

/// The trees that stat caches stand for: a capture may name them again without reading them.
pub fn cached_trees(objects: &Objects) -> Vec<Hash> {
    let entries = std::fs::read_dir(objects.path().with_extension("cache")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let cache = read(&entry.path(), objects)?;
            cache.record(cache.header().root).map(|root| root.record.hash)
        })
        .collect()
}

/// Forgets what captures saw: the next ones read everything again.
pub fn forget_caches(objects: &Objects) -> Result<()> {
    for entry in std::fs::read_dir(objects.path().with_extension("cache")).into_iter().flatten().flatten() {
        let path = entry.path();
        // Locks have an ending, caches have none.
        if path.extension().is_none() {
            std::fs::remove_file(&path).while_doing(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

/// The directory beside the object store for what belongs to roots: stat caches and locks.
pub(crate) fn cache_directory(objects: &Path) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let directory = objects.with_extension("cache");
    match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(e).while_doing(|| format!("making {}", directory.display()))
        }
        _ => Ok(directory),
    }
}
