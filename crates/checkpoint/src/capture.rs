//! Capturing a working tree: the whole of it, reading only what changed.
//!
//! Every directory is looked at through a handle of its own, and every name is compared with the stat cache of the last
//! capture. Names that are left out are entries too, so that a tree tells an absent name from one that was not looked at.

mod cache;
mod cache_file;
mod compare;
mod comparison;
mod directory_queue;
mod file;
mod findings;
mod memory_maps;
mod options;
mod partial_captures;
mod reader;
mod rules;
mod sources;
mod text;
mod tracked_files;
mod walk;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ic_base::{Code, Diagnose, Diagnosis, Result, Timestamp};
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;
use rustix::fs::{Mode, OFlags, fstat, open};

#[cfg(fuzzing)]
pub use cache::fuzz;
pub(crate) use cache::{Key, SETTLED};
pub(crate) use cache_file::{RULES, TOLD, beside, moment};
pub use cache_file::{cached_trees, forget_caches};
pub use memory_maps::Flush;
pub use rules::{RuleOptions, looks_secret};
pub(crate) use sources::settings_files;

use self::cache::{Cache, CacheUpdate, Header};
use self::cache_file::CacheFile;
use self::comparison::{ignore_file, own_files};
use self::findings::WalkFindings;
use self::partial_captures::PartialCapture;
use self::sources::RuleSources;
use self::tracked_files::IndexSeen;
use crate::attributes::FileOwner;
pub use crate::caches::root_key;
pub use crate::limit::Limit;
use crate::nested_work_trees::Places;
use crate::objects::{Objects, Stored, Writer};
pub use crate::tree::join;
use crate::tree::{Groups, Reason, TreeObject};
pub use options::{CaptureCounts, CaptureOptions, CaptureProgress};

/// A tree that was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The root's directory object.
    pub root: Hash,
    /// Who the root directory belongs to.
    pub owner: FileOwner,
    /// Groups of paths that are names of one file each.
    pub links: Groups,
    /// Paths of files whose other names are not in the tree.
    pub linked_outside: Vec<Vec<u8>>,
    /// How much it holds.
    pub counts: CaptureCounts,
    /// What a user may miss in it, by path.
    pub skipped: Vec<(Vec<u8>, Reason)>,
    /// Files that changed whenever they were read, by path: what is kept of them may be a state that they never had.
    pub unsettled: Vec<Vec<u8>>,
    /// What is at these paths is not in the tree, though git may track it.
    pub unseen: Vec<Vec<u8>>,
    /// Files, links and directories that were touched since [`CaptureOptions::since`].
    pub young: Vec<Vec<u8>>,
    /// Directories that are git repositories of their own, by path.
    pub nested_git: Vec<Vec<u8>>,
    /// Directories that are other work trees, by path: nothing of them is in it.
    pub work_trees: Vec<Vec<u8>>,
    /// What git may ignore, or show, otherwise than it was judged here: sentences for the person.
    pub doubts: Vec<String>,
    /// What it added to the store, with what became durable in the same transaction.
    pub stored: Stored,
}

impl Captured {
    /// Whether it holds all that its user may expect, each as it was at one moment.
    pub fn is_complete(&self) -> bool {
        self.skipped.is_empty() && self.unsettled.is_empty()
    }

    /// Paths that could not be read, though they should be in it.
    pub fn unreadable(&self) -> impl Iterator<Item = &[u8]> {
        self.skipped.iter().filter(|(_, reason)| *reason == Reason::Unreadable).map(|(path, _)| path.as_slice())
    }
}

/// What the stat cache will know, once what it names is durable.
pub struct CaptureSeen {
    news: Option<(CacheFile, CacheUpdate)>,
    /// What unfinished captures left: with the stat cache it is not needed any more. `None`: the stat cache will not have it.
    unfinished: Option<PathBuf>,
}

impl CaptureSeen {
    /// Keeps it if `is_stored`. After a look the store may lack content, and the next capture would believe that it is there.
    pub fn keep_if(self, is_stored: bool) -> Result<()> {
        if is_stored { self.keep() } else { Ok(()) }
    }

    /// Keeps it; to be called once the content is durable. Earlier, a crash could lose content that the next capture believes in.
    pub fn keep(self) -> Result<()> {
        self.news.map_or(Ok(()), |(file, update)| file.save(&update))?;
        // This comes after the cache: if this process ends in between, both know what was read.
        if let Some(unfinished) = &self.unfinished {
            partial_captures::forget(unfinished);
        }
        Ok(())
    }
}

/// Captures the tree below `root` into the store: [`capture_with`], and all that belongs to it.
pub fn capture(
    objects: &Objects,
    root: &Path,
    now: Timestamp,
    options: &CaptureOptions,
    progress: &CaptureProgress,
) -> Result<Captured> {
    let writer = objects.writer(now)?;
    let (captured, seen) = capture_with(objects, &writer, root, options, progress)?;
    let stored = writer.finish()?;
    seen.keep()?;
    Ok(Captured { stored, ..captured })
}

/// As [`capture`], and stores nothing: what the tree is now can be compared by its hashes. The store gets no content that no checkpoint
/// holds, and a purge finds all that there is.
pub fn look(
    objects: &Objects,
    root: &Path,
    now: Timestamp,
    options: &CaptureOptions,
    progress: &CaptureProgress,
) -> Result<Captured> {
    let looker = objects.looker(now)?;
    let (captured, seen) = capture_with(objects, &looker, root, options, progress)?;
    seen.keep_if(looker.stores_all())?;
    Ok(captured)
}

/// Captures the tree below `root`. The caller holds the store's lock shared, and the root's, then finishes the writer, then
/// keeps what was seen; `stored` is what [`Writer::finish`] says.
///
/// Errors: `tree_too_large`, `disk_full`, `io_error`, `permission_denied` (the root itself): nothing may refer to it then.
pub fn capture_with(
    objects: &Objects,
    writer: &Writer<'_>,
    root: &Path,
    options: &CaptureOptions,
    progress: &CaptureProgress,
) -> Result<(Captured, CaptureSeen)> {
    let space = CacheFile::new(objects, root, options.flush)?;
    let (git, (directory, owner)) = (ic_ledger::git_dirs(root), open_root(root)?);
    let number = owner_number(owner);
    // Attributes are kept relative to the root's owner: with another owner nothing in the cache is true any more.
    let cache = space.load(objects).filter(|cache| cache.header().owner == number);
    let old = cache.as_ref().map(Cache::header).unwrap_or_default();
    // Before the walk: what is touched from here on is read again by the next capture.
    let now = space.moment()?;
    let mut sources = RuleSources::read(root, git.as_ref(), &space.rule_settings(), now);
    // The index is read before the walk, too: if it changes during the walk, the next capture sees another index.
    let mut index = IndexSeen::now(root, git.as_ref(), cache.as_ref().map(Cache::header));
    // Both numbers decide about names, so they are part of the fingerprint: where one changes, names are judged anew.
    let rules = rules::CaptureRules::new(root, &sources, &options.rules, &[index.tracked, options.max_file_size])?;
    // A sparse cache is still read, but the new one does not continue it: that is how old records are dropped.
    let base = cache.as_ref().filter(|cache| !cache.is_sparse());
    let places = places_below(objects, root);
    let maps = memory_maps::Maps::new(&directory, options.flush).while_doing(|| reading(root))?;
    let walk = directory_queue::Walk {
        root,
        writer,
        objects,
        options,
        rules: &rules,
        progress,
        cache: cache.as_ref(),
        base,
        now,
        index_is_same: index.is_same,
        owner,
        scratch: &space.scratch,
        maps: &maps,
        places: &places,
        own: own_files(root, options, objects),
        unfinished: PartialCapture::open(space.unfinished(), number, progress.limit.is_any() && writer.keeps()),
        found: Mutex::new(WalkFindings::new(base, options.since)),
        // Without a cache everything is new, and a cache is written even if the tree did not change.
        is_changed: AtomicBool::new(cache.is_none()),
    };
    let root_record = walk.root(directory, old.root)?;
    let (mut found, is_changed) = walk.finish();
    let (links, linked_outside) = found.links();
    // This comes after the walk, which asks git what it tracks when the first name is in question.
    add_doubts(&mut sources, &mut index, &rules, root);
    let IndexSeen { state: index, tracked, .. } = index;
    // A capture with forced paths holds files that the rules leave out: the next capture must not take them from the cache.
    let is_forced = !options.rules.force.is_empty();
    let is_news = !is_forced && (is_changed || index != old.index);
    let header = Header { root: root_record.at, index, tracked, owner: number, ..Header::default() };
    let seen = CaptureSeen {
        unfinished: (!is_forced).then(|| space.unfinished()),
        news: is_news.then(|| (space, found.maker.finish(base, header))),
    };
    let captured = Captured {
        root: with_links(objects, writer, root_record.hash, &links)?,
        owner,
        links,
        linked_outside,
        counts: found.counts,
        skipped: found.skipped,
        unsettled: found.unsettled,
        unseen: found.unseen,
        young: found.young,
        nested_git: found.nested_git,
        work_trees: found.work_trees,
        doubts: sources.doubts,
        stored: Stored::default(),
    };
    Ok((captured, seen))
}

/// Adds what git may judge otherwise than it was judged here.
fn add_doubts(sources: &mut RuleSources, index: &mut IndexSeen, rules: &rules::CaptureRules<'_>, root: &Path) {
    if rules.lacks_tracked() {
        // The next capture must not find that git was asked about this index.
        index.forget();
    }
    sources.doubts.extend(index.doubt());
    sources.doubts.extend(compare::differences(root, &rules.judged()));
}

/// A number for the owner of a root. If the root gets another owner, each file's owner has to be compared with it again.
fn owner_number(owner: FileOwner) -> u64 {
    u64::from(owner.user) << 32 | u64::from(owner.group)
}

/// The other work trees below a root: those that its comparisons leave out, too.
fn places_below(objects: &Objects, root: &Path) -> Arc<Places> {
    // The store knows the places of one root. A capture of another root looks for its own.
    let known = objects.places().filter(|places| places.root() == root);
    known.unwrap_or_else(|| Arc::new(Places::of(root)))
}

fn reading(root: &Path) -> String {
    format!("reading {}", root.display())
}

/// The root's object with the names of one file in it. The stat cache knows the plain one: what is below does not tell which names
/// are one file, and most trees have none.
fn with_links(objects: &Objects, writer: &Writer<'_>, plain: Hash, links: &Groups) -> Result<Hash> {
    if links.is_empty() {
        return Ok(plain);
    }
    // The plain root may be in a pack that is not written yet.
    writer.expose()?;
    writer.put_tree(&TreeObject { links: links.clone(), ..objects.tree(&plain)? }.encode())
}

/// The root's handle, and whose it is.
fn open_root(root: &Path) -> Result<(rustix::fd::OwnedFd, FileOwner)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(root, flags, Mode::empty()).and_then(|directory| {
        let owner = FileOwner::of(&fstat(&directory)?);
        Ok((directory, owner))
    });
    opened.map_err(io::Error::from).while_doing(|| reading(root))
}

/// Whether a capture of `root` leaves out the file at `path` because a rule ignores it; the file need not be there.
///
/// Errors: `invalid_config` if a pattern of the configuration is not one; `io_error` where the store cannot be written.
pub fn is_ignored(objects: &Objects, root: &Path, options: &CaptureOptions, path: &[u8]) -> Result<bool> {
    let space = CacheFile::new(objects, root, options.flush)?;
    let git = ic_ledger::git_dirs(root);
    let sources = RuleSources::read(root, git.as_ref(), &space.rule_settings(), space.moment()?);
    let rules = rules::CaptureRules::new(root, &sources, &options.rules, &[])?;
    let own_rules = |directory: &[u8]| {
        // A directory that is not there has no rules of its own: the path need not exist.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(root.join(path_from_bytes(directory)), flags, Mode::empty());
        opened.ok().and_then(|directory| ignore_file(&directory))
    };
    // It goes from the root down, as a walk does: each level adds its rules, and an ignored directory ends it.
    let mut level = rules.enter(&rules.top(), b"", own_rules(b"").as_deref(), false);
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    for (end, _) in slashes {
        let directory = &path[..end];
        let is_ignored = match rules.judge(&level, directory, true, false) {
            rules::RuleVerdict::Ignored => return Ok(true),
            rules::RuleVerdict::Descend => true,
            rules::RuleVerdict::Capture => false,
        };
        level = rules.enter(&level, directory, own_rules(directory).as_deref(), is_ignored);
    }
    Ok(rules.judge(&level, path, false, false) == rules::RuleVerdict::Ignored)
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
    .hint("work in a directory of the project, or give --allow-unsafe-root"))
}

#[cfg(test)]
mod tests;
