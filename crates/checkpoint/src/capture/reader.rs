//! Doing what the look at a directory's names asks for: reading files, walking directories.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ic_base::{Diagnose, Result};
use ic_ledger::path_from_bytes;
use rayon::prelude::*;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::cache::{CacheSeen, Key};
use super::comparison::is_ours;
use super::directory_queue::{Todo, Visited, VisitedDirectory, Walk, Walked};
use super::file::{self, ReadOutcome, ReadingWay, Subject};
use super::partial_captures::Read;
use super::rules::Level;
use crate::pool;
use crate::tree::Reason;
use crate::tree::join;
use crate::unreadable_files;

/// Below this many, files are read one after the other.
const WORTH_SHARING: usize = 8;

/// How many nested directories each thread holds open at most: a process is often allowed 1,024 handles.
const HELD: usize = 64;

/// Directories further below are left out. A system call takes paths half as deep; a deeper tree was made by a runaway loop, and
/// each of its paths is as long as the tree is deep.
const DEEPEST: usize = 4096;

/// What became of entering a directory.
enum Entered<'s> {
    /// What it is, without looking into it.
    Known(Option<(CacheSeen<'s>, bool)>),
    /// It is to be walked.
    Open(VisitedDirectory),
}

impl Walk<'_> {
    /// Reads files and walks directories; `None` for what is gone.
    fn carry_out<'s>(
        &self,
        place: &VisitedDirectory,
        level: &Arc<Level>,
        names: &[&[u8]],
        todo: &'s [Todo<'_>],
    ) -> Result<Vec<Option<(CacheSeen<'s>, bool)>>> {
        let work = |(name, todo): (&&[u8], &'s Todo<'_>)| self.carry_out_one(place, level, name, todo);
        let reads = todo.iter().filter(|t| matches!(t, Todo::Read(_))).count();
        let below = todo.iter().filter(|t| matches!(t, Todo::Enter { .. })).count();
        if reads < WORTH_SHARING && (below < 2 || self.is_small()) {
            names.iter().zip(todo).map(work).collect()
        } else {
            pool::run(|| names.par_iter().zip(todo).with_max_len(64).map(work).collect())
        }
    }

    /// The same, however deep the directory lies: as [`Walk::carry_out_deep`] where too many would be held open.
    #[allow(clippy::type_complexity, reason = "what carry_out returns, and the place")]
    pub(super) fn carry_out_at<'s>(
        &self,
        place: VisitedDirectory,
        level: &Arc<Level>,
        names: &[&[u8]],
        todo: &'s [Todo<'_>],
    ) -> Result<(Option<Vec<Option<(CacheSeen<'s>, bool)>>>, VisitedDirectory)> {
        if place.depth < HELD {
            return Ok((Some(self.carry_out(&place, level, names, todo)?), place));
        }
        self.carry_out_deep(place, level, names, todo)
    }

    /// The same far below, where a directory is closed while those in it are walked: one after the other, for it is found again
    /// from the last one. Nothing was seen (`None`) if that is not in it any more.
    #[allow(clippy::type_complexity, reason = "what carry_out returns, and the place")]
    fn carry_out_deep<'s>(
        &self,
        mut place: VisitedDirectory,
        level: &Arc<Level>,
        names: &[&[u8]],
        todo: &'s [Todo<'_>],
    ) -> Result<(Option<Vec<Option<(CacheSeen<'s>, bool)>>>, VisitedDirectory)> {
        let mut seen = Vec::with_capacity(names.len());
        for (name, todo) in names.iter().zip(todo) {
            let Todo::Enter { old, is_ignored } = todo else {
                seen.push(self.carry_out_one(&place, level, name, todo)?);
                continue;
            };
            let below = match self.enter(&place, level, name, *old, *is_ignored)? {
                Entered::Known(known) => {
                    seen.push(known);
                    continue;
                }
                Entered::Open(below) => below,
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // This is tried before this directory is closed: one that may be listed but not searched has no `..`.
            if let Err(error) = openat(&below.fd, "..", flags, Mode::empty())
                && !is_ours(error)
            {
                seen.push(Some(passed(Reason::Unreadable)));
                continue;
            }
            // Device and inode identify this directory when it is opened again through `..`.
            let here = self.readable(&place, fstat(&place.fd))?.map(|stat| (stat.st_dev, stat.st_ino));
            drop(place.fd);
            let (visited, fd) = self.visit(below)?;
            place.fd = openat(&fd, "..", flags, Mode::empty())
                .map_err(io::Error::from)
                .while_doing(|| self.reading(&place.path, b".."))?;
            let back = fstat(&place.fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
            if here != back {
                // The directory was moved during the walk: `..` is another one now, and the names here are not known any more.
                return Ok((None, place));
            }
            seen.push(Some(entered(visited)));
        }
        Ok((Some(seen), place))
    }

    fn carry_out_one<'s>(
        &self,
        place: &VisitedDirectory,
        level: &Arc<Level>,
        name: &[u8],
        todo: &'s Todo<'_>,
    ) -> Result<Option<(CacheSeen<'s>, bool)>> {
        match todo {
            Todo::Drop => Ok(None),
            Todo::Nothing(seen, trusted) => Ok(Some((seen.clone(), *trusted))),
            Todo::Target(key, target) => Ok(Some((CacheSeen::Symlink { key: *key, target }, key.is_settled(self.now)))),
            Todo::Read(key) => self.read(place, name, key, ReadingWay::Usual),
            Todo::Database(key) => self.read(place, name, key, ReadingWay::InUse),
            Todo::Raw(key) => self.read(place, name, key, ReadingWay::Raw),
            Todo::Enter { old, is_ignored } => match self.enter(place, level, name, *old, *is_ignored)? {
                Entered::Known(known) => Ok(known),
                Entered::Open(below) => Ok(Some(entered(self.visit(below)?.0))),
            },
        }
    }

    /// Opens a directory, unless what is in it is known.
    fn enter<'s>(
        &self,
        place: &VisitedDirectory,
        level: &Arc<Level>,
        name: &[u8],
        old: Option<u64>,
        is_ignored: bool,
    ) -> Result<Entered<'s>> {
        let path = join(&place.path, name);
        if place.depth >= DEEPEST {
            return Ok(Entered::Known(Some(passed(Reason::Deep))));
        }
        // Its repository has it on record as a work tree, even if its `.git` is lost or its disk is absent.
        if self.places.registered().contains(&path) {
            return Ok(Entered::Known(Some(passed(Reason::WorkTree))));
        }
        if let Some(visited) = old.and_then(|at| self.untouched(&path, at)) {
            return Ok(Entered::Known(Some(entered(Ok(visited)))));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Not further below: there the directory is found again through `..` of a child, and is closed in between.
        let closed = if place.depth < HELD { unreadable_files::open_directory(&place.fd, name) } else { Ok(None) };
        // A directory that had to be opened up comes with its handle.
        let (fd, opened) = match closed {
            Ok(Some((fd, guard))) => (fd, Some(guard)),
            _ => match openat(&place.fd, name, flags, Mode::empty()) {
                Ok(fd) => (fd, None),
                // It was removed or replaced after the look.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Entered::Known(None)),
                Err(e) if !is_ours(e) => return Ok(Entered::Known(Some(passed(Reason::Unreadable)))),
                Err(e) => return Err(io::Error::from(e)).while_doing(|| self.reading(&place.path, name)),
            },
        };
        let (depth, above) = (place.depth + 1, level.clone());
        Ok(Entered::Open(VisitedDirectory { fd, path, depth, above, is_ignored, old, opened }))
    }

    fn read(
        &self,
        place: &VisitedDirectory,
        name: &[u8],
        key: &Key,
        way: ReadingWay,
    ) -> Result<Option<(CacheSeen<'static>, bool)>> {
        self.progress.limit.check()?;
        // Of a database in use the stat proves nothing: what changes is its log.
        // The store is asked for the content: a capture that failed may have removed what it had noted.
        if way == ReadingWay::Usual
            && let Some(known) = self.unfinished.find(key)
            && !self.maps.may_hide_changes(key)
            && self.writer.has(&known.hash)?
        {
            let attributes = Cow::Owned(known.attributes.clone());
            return Ok(Some((CacheSeen::File { key: *key, hash: known.hash, size: known.size, attributes }, true)));
        }
        let path = self.root.join(path_from_bytes(&place.path)).join(path_from_bytes(name));
        // A file that was touched within two seconds is not trusted anyway, so its maps need not be looked for.
        let may_trust = key.is_settled(self.now);
        let subject = Subject {
            directory: place.fd.as_fd(),
            name,
            path: &path,
            now: self.now,
            maps: may_trust.then_some(self.maps),
            scratch: self.scratch,
            way,
            owner: self.owner,
        };
        let kept = match file::keep(self.writer, &subject)? {
            ReadOutcome::Gone => return Ok(None),
            ReadOutcome::Unreadable => return Ok(Some(passed(Reason::Unreadable))),
            ReadOutcome::Purged => return Ok(Some(passed(Reason::Purged))),
            ReadOutcome::Ledger => return Ok(Some(passed(Reason::Ledger))),
            ReadOutcome::Kept(kept) => kept,
        };
        if kept.is_unsettled {
            self.found().unsettled.push(join(&place.path, name));
        }
        self.progress.read.fetch_add(kept.size, Relaxed);
        // Without a state of its own, the file has that of the look, and is not trusted.
        let stored = kept.key.unwrap_or(*key);
        let key = Key { mode: stored.mode & !0o7777 | kept.mode, ..stored };
        let trusted = may_trust && !kept.is_mapped && kept.key.is_some_and(|key| key.is_settled(self.now));
        let attributes = kept.attributes.bytes();
        if trusted && way == ReadingWay::Usual {
            let read = Read { hash: kept.hash, size: kept.size, attributes: attributes.clone() };
            self.unfinished.note(&key, &read);
        }
        let attributes = Cow::Owned(attributes);
        Ok(Some((CacheSeen::File { key, hash: kept.hash, size: kept.size, attributes }, trusted)))
    }
}

/// What a directory that was walked is in the one that holds it.
fn entered<'s>(walked: Walked) -> (CacheSeen<'s>, bool) {
    match walked {
        // A directory is never trusted by its entry: its own record says whether it changed.
        Ok(Visited { hash, at }) => (CacheSeen::Directory { hash, at }, false),
        Err(reason) => passed(reason),
    }
}

/// What a name that cannot be read turns out to be.
fn passed<'s>(reason: Reason) -> (CacheSeen<'s>, bool) {
    (CacheSeen::Passed(reason), false)
}
