//! Walking a tree, directory by directory, on every core.

use std::collections::HashSet;
use std::io;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ic_base::{Diagnose, Result};
use ic_events::Hash;
use ic_store::{DATABASE_SIDE_SUFFIXES, path_from_bytes};
use rayon::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Dir, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::cache::{Cache, Key, Line, Maker, Record, Seen};
use super::file::{self, Outcome, Subject};
use super::look::{Looker, ignore_file, own_files};
use super::rules::{Level, Rules};
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
    pub(crate) own: HashSet<(u64, u64)>,
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
pub(crate) struct Place {
    pub(crate) fd: OwnedFd,
    pub(crate) path: Vec<u8>,
    above: Arc<Level>,
    is_ignored: bool,
    old: Option<u64>,
}

/// What is to be done about a name.
pub(crate) enum Todo<'c> {
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

    pub(crate) fn reading(&self, place: &Place, name: &[u8]) -> String {
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
        let subject = Subject {
            directory: place.fd.as_fd(),
            name,
            path: &path,
            now: self.now,
            space: self.space,
            in_use,
        };
        let kept = match file::keep(self.writer, &subject)? {
            Outcome::Gone => return Ok(None),
            Outcome::Unreadable => return Ok(Some(passed(Reason::Unreadable))),
            Outcome::Kept(kept) => Some(kept),
        };
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
