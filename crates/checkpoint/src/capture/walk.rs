//! Walking a tree, directory by directory, on every core.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ic_base::{Diagnose, Result};
use ic_events::Hash;
use ic_store::{DATABASE_SIDE_SUFFIXES, is_database, path_bytes, path_from_bytes};
use rayon::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::cache::{Cache, Key, Line, Maker, Record, Seen};
use super::file::{self, Outcome};
use super::rules::{Level, Rules, Verdict, looks_secret};
use super::{Counts, Options, Progress};
use crate::objects::{Objects, Writer};
use crate::tree::{Encoder, Node, Reason};

/// The beginning of the names of a restore's temporary files.
pub(crate) const TEMPORARY: &[u8] = b".ic-restore-";

/// Below this many, files are read one after the other.
const WORTH_SHARING: usize = 8;

/// What a walk needs to know.
pub(crate) struct Walk<'w> {
    pub(crate) root: &'w Path,
    pub(crate) writer: &'w Writer<'w>,
    pub(crate) options: &'w Options,
    pub(crate) rules: &'w Rules<'w>,
    pub(crate) progress: &'w Progress,
    pub(crate) cache: Option<&'w Cache>,
    /// When the capture began, by the file system's clock, in nanoseconds.
    pub(crate) now: i64,
    pub(crate) index_is_same: bool,
    /// A directory for copies of databases.
    pub(crate) space: &'w Path,
    own: HashSet<(u64, u64)>,
    found: Mutex<Found>,
    is_changed: AtomicBool,
}

/// What a walk found.
pub(crate) struct Found {
    pub(crate) maker: Maker,
    pub(crate) counts: Counts,
    pub(crate) skipped: Vec<(Vec<u8>, Reason)>,
    pub(crate) nested_git: Vec<Vec<u8>>,
}

/// A directory that was walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visited {
    pub(crate) hash: Hash,
    /// Where its record lies in the new cache.
    pub(crate) at: u64,
}

/// A directory to be walked.
struct Place {
    fd: OwnedFd,
    path: Vec<u8>,
    above: Arc<Level>,
    is_ignored: bool,
    old: Option<u64>,
}

/// What is to be done about a name.
enum Todo<'c> {
    Nothing(Seen<'c>, bool),
    Target(Key, Vec<u8>),
    Read(Key),
    Database(Key),
    Enter {
        old: Option<u64>,
        is_ignored: bool,
    },
    /// It is gone.
    Drop,
}

/// The inputs of a walk that are not its own.
pub(crate) struct Inputs<'w> {
    pub(crate) root: &'w Path,
    pub(crate) writer: &'w Writer<'w>,
    pub(crate) objects: &'w Objects,
    pub(crate) options: &'w Options,
    pub(crate) rules: &'w Rules<'w>,
    pub(crate) progress: &'w Progress,
    pub(crate) cache: Option<&'w Cache>,
    pub(crate) now: i64,
    pub(crate) index_is_same: bool,
    pub(crate) space: &'w Path,
}

impl<'w> Walk<'w> {
    pub(crate) fn new(inputs: &Inputs<'w>) -> Self {
        Self {
            root: inputs.root,
            writer: inputs.writer,
            options: inputs.options,
            rules: inputs.rules,
            progress: inputs.progress,
            cache: inputs.cache,
            now: inputs.now,
            index_is_same: inputs.index_is_same,
            space: inputs.space,
            own: own_files(inputs.root, inputs.options, inputs.objects),
            found: Mutex::new(Found {
                maker: Maker::new(),
                counts: Counts::default(),
                skipped: Vec::new(),
                nested_git: Vec::new(),
            }),
            is_changed: AtomicBool::new(inputs.cache.is_none()),
        }
    }

    /// Walks everything; `old` is where the root's record lies in the last cache.
    pub(crate) fn root(&self, fd: OwnedFd, old: u64) -> Result<Visited> {
        let old = self.cache.map(|_| old);
        let place = Place { fd, path: Vec::new(), above: self.rules.top(), is_ignored: false, old };
        pool(|| self.visit(&place))
    }

    /// What was found, sorted, and whether anything differs from the last cache.
    pub(crate) fn finish(self) -> (Found, bool) {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.skipped.sort_unstable();
        found.nested_git.sort_unstable();
        (found, self.is_changed.into_inner())
    }

    fn reading(&self, place: &Place, name: &[u8]) -> String {
        format!("reading {}", self.root.join(path_from_bytes(&join(&place.path, name))).display())
    }

    fn visit(&self, place: &Place) -> Result<Visited> {
        let doing = || format!("reading {}", self.root.join(path_from_bytes(&place.path)).display());
        let key = fstat(&place.fd).map(|s| Key::of(&s)).map_err(io::Error::from).while_doing(doing)?;
        let text = ignore_file(&place.fd);
        let level = Rules::enter(&place.above, &place.path, text.as_deref(), place.is_ignored);
        let record = place.old.and_then(|at| self.cache?.record(at));
        let is_as_it_was = record.as_ref().is_some_and(|record| {
            record.trusted
                && record.key == key
                && record.rules == level.fingerprint
                && !self.rules.forces_below(&place.path)
        });
        let lines = record.as_ref().map_or(&[][..], |record| &record.lines);
        let listed;
        let names: Vec<&[u8]> = if is_as_it_was {
            lines.iter().map(|line| line.name).collect()
        } else {
            listed = list(&place.fd).while_doing(doing)?;
            listed.iter().map(Vec::as_slice).collect()
        };
        let has_side_files = names.iter().any(|n| DATABASE_SIDE_SUFFIXES.iter().any(|end| n.ends_with(end)));
        let looker = Looker { walk: self, place, level: &level, names: &names, is_as_it_was, has_side_files };
        let mut old = lines.iter().peekable();
        let todo: Result<Vec<Todo<'_>>> = names
            .iter()
            .map(|name| {
                while old.next_if(|line| line.name < *name).is_some() {}
                looker.look(name, old.next_if(|line| line.name == *name))
            })
            .collect();
        let todo = todo?;
        self.progress.seen.fetch_add(names.len() as u64, Relaxed);
        if self.progress.seen.load(Relaxed) > self.options.max_files {
            return Err(file::too_large(self.options.max_files));
        }
        let seen = self.carry_out(place, &level, &names, &todo)?;
        let lines = names
            .iter()
            .zip(seen)
            .filter_map(|(name, seen)| seen.map(|(seen, trusted)| Line { name, seen, trusted }))
            .collect();
        let new = Record {
            key,
            trusted: key.is_settled(self.now),
            rules: level.fingerprint,
            hash: Hash::default(),
            lines,
        };
        self.keep(place, record.as_ref(), new)
    }

    /// Reads files and walks directories; `None` for what is gone.
    fn carry_out<'s>(
        &self,
        place: &Place,
        level: &Arc<Level>,
        names: &[&[u8]],
        todo: &'s [Todo<'_>],
    ) -> Result<Vec<Option<(Seen<'s>, bool)>>> {
        let work = |(name, todo): (&&[u8], &'s Todo<'_>)| self.carry_out_one(place, level, name, todo);
        let work_load = todo.iter().filter(|t| matches!(t, Todo::Read(_))).count() / WORTH_SHARING
            + todo.iter().filter(|t| matches!(t, Todo::Enter { .. })).count() / 2;
        if work_load == 0 {
            names.iter().zip(todo).map(work).collect()
        } else {
            names.par_iter().zip(todo).with_max_len(64).map(work).collect()
        }
    }

    fn carry_out_one<'s>(
        &self,
        place: &Place,
        level: &Arc<Level>,
        name: &[u8],
        todo: &'s Todo<'_>,
    ) -> Result<Option<(Seen<'s>, bool)>> {
        match todo {
            Todo::Drop => Ok(None),
            Todo::Nothing(seen, trusted) => Ok(Some((*seen, *trusted))),
            Todo::Target(key, target) => {
                Ok(Some((Seen::Symlink { key: *key, target }, key.is_settled(self.now))))
            }
            Todo::Read(key) => self.read(place, name, key, false),
            Todo::Database(key) => self.read(place, name, key, true),
            Todo::Enter { old, is_ignored } => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = match openat(&place.fd, name, flags, Mode::empty()) {
                    Ok(fd) => fd,
                    Err(Errno::ACCESS | Errno::PERM) => return Ok(Some(passed(Reason::Unreadable))),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                    Err(e) => return Err(io::Error::from(e)).while_doing(|| self.reading(place, name)),
                };
                let path = join(&place.path, name);
                let below = Place { fd, path, above: level.clone(), is_ignored: *is_ignored, old: *old };
                self.visit(&below).map(|Visited { hash, at }| Some((Seen::Directory { hash, at }, false)))
            }
        }
    }

    fn read(
        &self,
        place: &Place,
        name: &[u8],
        key: &Key,
        in_use: bool,
    ) -> Result<Option<(Seen<'static>, bool)>> {
        let path = self.root.join(path_from_bytes(&place.path)).join(path_from_bytes(name));
        let database = || file::keep_database(self.writer, &path, key, self.space);
        let mut kept = if in_use { database()? } else { None };
        if kept.is_none() {
            kept = match file::keep(self.writer, place.fd.as_fd(), name)? {
                Outcome::Gone => return Ok(None),
                Outcome::Unreadable => return Ok(Some(passed(Reason::Unreadable))),
                // A database that somebody writes all the time never stands still: SQLite can tell its state.
                Outcome::Kept(kept) if kept.key.is_none() => database()?.or(Some(kept)),
                Outcome::Kept(kept) => Some(kept),
            };
        }
        Ok(kept.map(|kept| {
            self.progress.read.fetch_add(kept.size, Relaxed);
            let stored = kept.key.unwrap_or(*key);
            let key = Key { mode: stored.mode & !0o7777 | kept.mode, ..stored };
            let trusted = kept.key.is_some_and(|key| key.is_settled(self.now));
            (Seen::File { key, hash: kept.hash, size: kept.size }, trusted)
        }))
    }

    /// Stores the directory, unless it is what it was, and its record.
    fn keep(&self, place: &Place, old: Option<&Record<'_>>, mut new: Record<'_>) -> Result<Visited> {
        let as_it_was = old.filter(|old| old.is_same(&new));
        let mut encoder = Encoder::new(new.key.permissions());
        let mut counts = Counts { directories: 1, ..Counts::default() };
        let (mut skipped, mut is_nested) = (Vec::new(), false);
        for line in &new.lines {
            let node = match line.seen {
                Seen::File { key, hash, size } => {
                    counts.files += 1;
                    counts.bytes += size;
                    Node::File { hash, size, mode: key.permissions() }
                }
                Seen::Symlink { target, .. } => {
                    counts.symlinks += 1;
                    Node::Symlink(target.to_vec())
                }
                Seen::Directory { hash, .. } => Node::Directory(hash),
                Seen::Passed(reason) => {
                    is_nested |= reason == Reason::Git && !place.path.is_empty();
                    if reason.is_a_gap() {
                        skipped.push((join(&place.path, line.name), reason));
                    }
                    Node::Passed(reason)
                }
            };
            if as_it_was.is_none() {
                encoder.entry(line.name, &node);
            }
        }
        new.hash = if let Some(old) = as_it_was {
            old.hash
        } else {
            self.is_changed.store(true, Relaxed);
            self.writer.put_tree(&encoder.finish())?
        };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.counts.files += counts.files;
        found.counts.directories += 1;
        found.counts.symlinks += counts.symlinks;
        found.counts.bytes += counts.bytes;
        found.skipped.append(&mut skipped);
        if is_nested {
            found.nested_git.push(place.path.clone());
        }
        let at = found.maker.add(&new);
        Ok(Visited { hash: new.hash, at })
    }
}

/// Judges the names of one directory.
struct Looker<'l, 'w> {
    walk: &'l Walk<'w>,
    place: &'l Place,
    level: &'l Arc<Level>,
    names: &'l [&'l [u8]],
    /// Neither the directory nor its rules changed since the last capture.
    is_as_it_was: bool,
    /// There are names of a database's side files.
    has_side_files: bool,
}

impl Looker<'_, '_> {
    fn look<'c>(&self, name: &[u8], old: Option<&Line<'c>>) -> Result<Todo<'c>> {
        let old_reason = match old {
            Some(Line { seen: Seen::Passed(reason), .. }) => Some(*reason),
            _ => None,
        };
        if name == b".git" {
            return Ok(pass(Reason::Git));
        }
        if name.starts_with(TEMPORARY) {
            return Ok(pass(Reason::Store));
        }
        if let (true, Some(reason @ (Reason::Ignored | Reason::Store | Reason::Database))) =
            (self.is_as_it_was, old_reason)
        {
            return Ok(pass(reason));
        }
        let stat = match statat(&self.place.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Todo::Drop),
            Err(Errno::ACCESS | Errno::PERM) => return Ok(pass(Reason::Unreadable)),
            Err(e) => return Err(io::Error::from(e)).while_doing(|| self.walk.reading(self.place, name)),
        };
        let key = Key::of(&stat);
        let kind = FileType::from_raw_mode(stat.st_mode);
        if self.walk.own.contains(&(key.dev, key.ino)) && kind != FileType::Symlink {
            return Ok(pass(Reason::Store));
        }
        // What was captured from a directory that is as it was is not ignored now either.
        let needs_judging = !self.is_as_it_was || old.is_none() || old_reason.is_some();
        if kind == FileType::Directory {
            return Ok(self.directory(name, old));
        }
        if needs_judging {
            let path = join(&self.place.path, name);
            if self.walk.rules.judge(self.level, &path, false) == Verdict::Ignored {
                return Ok(pass(Reason::Ignored));
            }
        }
        match kind {
            FileType::RegularFile => Ok(self.file(name, key, old)),
            FileType::Symlink => self.symlink(name, key, old),
            _ => Ok(pass(Reason::Special)),
        }
    }

    fn directory<'c>(&self, name: &[u8], old: Option<&Line<'c>>) -> Todo<'c> {
        let at = match old {
            Some(Line { seen: Seen::Directory { at, .. }, .. }) => Some(*at),
            _ => None,
        };
        match self.walk.rules.judge(self.level, &join(&self.place.path, name), true) {
            Verdict::Ignored => pass(Reason::Ignored),
            Verdict::Capture => Todo::Enter { old: at, is_ignored: false },
            Verdict::Descend => Todo::Enter { old: at, is_ignored: true },
        }
    }

    fn symlink<'c>(&self, name: &[u8], key: Key, old: Option<&Line<'c>>) -> Result<Todo<'c>> {
        if let Some(Line { seen: seen @ Seen::Symlink { key: known, .. }, trusted: true, .. }) = old
            && *known == key
        {
            return Ok(Todo::Nothing(*seen, true));
        }
        match readlinkat(&self.place.fd, name, Vec::new()) {
            Ok(target) => Ok(Todo::Target(key, target.into_bytes())),
            Err(Errno::NOENT | Errno::INVAL) => Ok(Todo::Drop),
            Err(e) => Err(io::Error::from(e)).while_doing(|| self.walk.reading(self.place, name)),
        }
    }

    fn file<'c>(&self, name: &[u8], key: Key, old: Option<&Line<'c>>) -> Todo<'c> {
        let rules = self.walk.rules;
        let path = || join(&self.place.path, name);
        let is_secret = match old {
            _ if !looks_secret(name) => false,
            Some(line) if self.is_as_it_was && self.walk.index_is_same && !rules.forces_below(b"") => {
                line.seen == Seen::Passed(Reason::Secret)
            }
            _ => rules.is_secret(&path(), name),
        };
        if is_secret {
            return pass(Reason::Secret);
        }
        if key.size > self.walk.options.max_file_size && !rules.is_forced(&path()) {
            return pass(Reason::Oversize);
        }
        if self.has_side_files {
            if DATABASE_SIDE_SUFFIXES.iter().any(|end| self.is_side_file(name, end)) {
                return pass(Reason::Database);
            }
            if [&b"-wal"[..], b"-journal"].iter().any(|end| self.has(&[name, end].concat())) {
                return Todo::Database(key);
            }
        }
        match old {
            Some(Line { seen: seen @ Seen::File { key: known, .. }, trusted: true, .. }) if *known == key => {
                Todo::Nothing(*seen, true)
            }
            _ => Todo::Read(key),
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        self.names.binary_search(&name).is_ok()
    }

    /// Whether a file belongs to a database beside it that is named without this ending.
    fn is_side_file(&self, name: &[u8], end: &[u8]) -> bool {
        let Some(database) = name.strip_suffix(end).filter(|name| self.has(name)) else { return false };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut head = [0; 16];
        let read = openat(&self.place.fd, database, flags, Mode::empty())
            .and_then(|fd| rustix::io::read(fd, &mut head));
        read.is_ok() && is_database(&head)
    }
}

fn pass<'c>(reason: Reason) -> Todo<'c> {
    Todo::Nothing(Seen::Passed(reason), false)
}

/// What a name that cannot be read turns out to be.
fn passed<'s>(reason: Reason) -> (Seen<'s>, bool) {
    (Seen::Passed(reason), false)
}

pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// The names in a directory, in byte order.
fn list(fd: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The directory's `.gitignore`; a link is not followed, as for git.
fn ignore_file(fd: &OwnedFd) -> Option<Vec<u8>> {
    use std::io::Read;
    const LONGEST: u64 = 4 << 20;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(openat(fd, ".gitignore", flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Device and inode of what is ours in the tree.
fn own_files(root: &Path, options: &Options, objects: &Objects) -> HashSet<(u64, u64)> {
    let inode = |path: &Path| std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    // A file in place of the store's directory leads to the store.
    let pointer = root.join(".ic");
    let mut own: HashSet<_> = inode(&pointer).filter(|_| pointer.is_file()).into_iter().collect();
    let Ok(store) = std::fs::canonicalize(&options.store) else { return own };
    if !root.starts_with(&store) {
        own.extend(inode(&store));
        return own;
    }
    // The ledger lies loose in the root, or above it: its own files, by name.
    let bare = objects.path().with_extension("");
    let ours: Vec<&[u8]> = [options.ledger.as_path(), objects.path(), &bare]
        .into_iter()
        .filter_map(|path| path.file_name().map(|name| path_bytes(Path::new(name))))
        .collect();
    let entries = std::fs::read_dir(&store).into_iter().flatten().flatten();
    let is_ours = |name: &[u8]| {
        ours.iter().any(|own| {
            name.strip_prefix(*own).is_some_and(|end| matches!(end.first(), None | Some(b'-' | b'.')))
        })
    };
    own.extend(
        entries
            .filter(|entry| is_ours(path_bytes(Path::new(&entry.file_name()))))
            .filter_map(|entry| inode(&entry.path())),
    );
    own
}

/// Runs on threads whose stacks are deep enough for deep trees.
fn pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    const STACK: usize = 256 << 20;
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    raise_file_limit();
    match POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().stack_size(STACK).build().ok()) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// A directory stays open while those below it are walked.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, only very deep trees suffer, with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
