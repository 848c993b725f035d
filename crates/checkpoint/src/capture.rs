//! Capturing a working tree: the whole of it, reading only what changed.
//!
//! Every directory is looked at through a handle of its own, and every name is compared with the stat cache of the last
//! capture. Names that are passed over are entries too, so that a tree tells what it saw from what it did not look at.

mod cache;
mod file;
mod look;
mod rules;
mod tracked;
mod walk;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use ic_base::{Code, Diagnose, Diagnosis, Result, Timestamp};
use ic_events::Hash;
use ic_store::GitDirs;
use rustix::fs::{Mode, OFlags, open};

pub use rules::RuleOptions;

use self::cache::{Cache, Header, Key};
pub(crate) use self::walk::{TEMPORARY, join};
use crate::objects::{Objects, Stored};
use crate::tree::Reason;

/// What limits a capture.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is passed over, and what is not.
    pub rules: RuleOptions,
    /// Larger files are passed over, in bytes.
    pub max_file_size: u64,
    /// More files are refused.
    pub max_files: u64,
    /// The store's directory and the ledger's file: they are never part of a tree.
    pub store: PathBuf,
    /// See `store`.
    pub ledger: PathBuf,
}

/// How far a capture is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files that were looked at.
    pub seen: AtomicU64,
    /// Bytes that were read.
    pub read: AtomicU64,
}

/// How much a tree holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Regular files.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Bytes in the files.
    pub bytes: u64,
}

/// A tree that was captured; its content is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The root's directory object.
    pub root: Hash,
    /// How much it holds.
    pub counts: Counts,
    /// What a user may miss in it, by path.
    pub skipped: Vec<(Vec<u8>, Reason)>,
    /// Directories that are git repositories of their own, by path.
    pub nested_git: Vec<Vec<u8>>,
    /// What it added to the store.
    pub stored: Stored,
}

impl Captured {
    /// Paths that could not be read, though they should be in it.
    pub fn unreadable(&self) -> impl Iterator<Item = &[u8]> {
        self.skipped
            .iter()
            .filter(|(_, reason)| *reason == Reason::Unreadable)
            .map(|(path, _)| path.as_slice())
    }
}

/// Captures the tree below `root` into the store. The caller holds the store's lock shared, and the root's.
///
/// Errors: `tree_too_large`, `disk_full`, `io_error`, `permission_denied` (the root itself): nothing may refer to it then.
pub fn capture(
    objects: &Objects,
    root: &Path,
    now: Timestamp,
    options: &Options,
    progress: &Progress,
) -> Result<Captured> {
    let git = ic_store::git_dirs(root);
    let space = CacheFile::new(objects, root)?;
    let cache = space.load(objects);
    let old = cache.as_ref().and_then(Cache::header).unwrap_or_default();
    let index = git.as_ref().map_or(0, index_state);
    let tracked = if git.is_some() && (cache.is_none() || index != old.index) {
        let paths = tracked::tracked(root, &["-i", "--exclude-standard"]);
        rules::number_of(&paths.join(&0))
    } else {
        old.tracked
    };
    let rules = rules::Rules::new(root, git.as_ref(), &options.rules, &[tracked, options.max_file_size])?;
    let directory = open_root(root)?;
    let writer = objects.writer(now)?;
    let walk = walk::Walk::new(&walk::Inputs {
        root,
        writer: &writer,
        objects,
        options,
        rules: &rules,
        progress,
        cache: cache.as_ref(),
        now: space.moment()?,
        index_is_same: index == old.index,
        space: &space.directory,
    });
    let root_record = walk.root(directory, old.root)?;
    let (found, is_changed) = walk.finish();
    let stored = writer.finish()?;
    if options.rules.force.is_empty() && (is_changed || index != old.index) {
        space.save(&found.maker.finish(Header { root: root_record.at, index, tracked }))?;
    }
    Ok(Captured {
        root: root_record.hash,
        counts: found.counts,
        skipped: found.skipped,
        nested_git: found.nested_git,
        stored,
    })
}

fn open_root(root: &Path) -> Result<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(root, flags, Mode::empty())
        .map_err(io::Error::from)
        .while_doing(|| format!("reading {}", root.display()))
}

/// A number that changes whenever git's index does.
fn index_state(git: &GitDirs) -> u64 {
    let Ok(meta) = std::fs::metadata(git.git_dir.join("index")) else { return 1 };
    let numbers = [
        meta.ino(),
        meta.size(),
        meta.mtime().cast_unsigned(),
        meta.mtime_nsec().cast_unsigned(),
        meta.ctime().cast_unsigned(),
        meta.ctime_nsec().cast_unsigned(),
    ];
    rules::number_of(&numbers.map(u64::to_le_bytes).concat())
}

/// The stat cache's file, and a new one that will take its place.
struct CacheFile {
    path: PathBuf,
    directory: PathBuf,
    next: tempfile::NamedTempFile,
}

impl CacheFile {
    fn new(objects: &Objects, root: &Path) -> Result<Self> {
        let directory = cache_directory(objects.path())?;
        let doing = || format!("using the stat cache in {}", directory.display());
        let next = tempfile::NamedTempFile::new_in(&directory).while_doing(doing)?;
        let path = directory.join(root_key(root));
        Ok(Self { path, directory, next })
    }

    /// The last cache, if it can be believed: whole, and about content that the store still has.
    fn load(&self, objects: &Objects) -> Option<Cache> {
        let cache = Cache::parse(std::fs::read(&self.path).ok()?)?;
        let root = cache.record(cache.header()?.root)?.hash;
        objects.has(&root).ok()?.then_some(cache)
    }

    /// The moment at which the capture began, by the clock of the file system, in nanoseconds.
    fn moment(&self) -> Result<i64> {
        let stat = rustix::fs::fstat(self.next.as_file()).map_err(io::Error::from);
        stat.map(|stat| Key::of(&stat).mtime).while_doing(|| "reading the file system's clock".to_owned())
    }

    fn save(mut self, bytes: &[u8]) -> Result<()> {
        let doing = || format!("writing the stat cache {}", self.path.display());
        self.next.write_all(bytes).while_doing(doing)?;
        self.next.persist(&self.path).map_err(|e| e.error).while_doing(doing).map(|_: File| ())
    }
}

/// The trees that stat caches stand for: a capture may name them again without reading them.
pub fn cached_trees(objects: &Objects) -> Vec<Hash> {
    let entries = std::fs::read_dir(objects.path().with_extension("cache")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let cache = Cache::parse(std::fs::read(entry.path()).ok()?)?;
            let root = cache.record(cache.header()?.root)?.hash;
            objects.has(&root).ok()?.then_some(root)
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

/// The name under which the store keeps what belongs to a root.
pub(crate) fn root_key(root: &Path) -> String {
    ic_events::hex(&crate::objects::hash_of(ic_store::path_bytes(root)))[..32].to_owned()
}

/// Refuses roots that are no projects. Errors: `unsafe_root`.
pub fn check_root(root: &Path, home: Option<&Path>) -> Result<()> {
    let is_home = home.is_some_and(|home| std::fs::canonicalize(home).is_ok_and(|home| home == root));
    if root != Path::new("/") && !is_home {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::UnsafeRoot,
        format!("{} is not a project: a checkpoint of it would hold everything you have.", root.display()),
    )
    .hint("work in a directory of the project's own, or give --allow-unsafe-root"))
}

#[cfg(test)]
mod tests;
