//! Walking a tree, directory by directory, on every core.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};

use ic_base::{Diagnose, Result};
use ic_ledger::events::Hash;
use ic_ledger::{DATABASE_SIDE_SUFFIXES, path_from_bytes};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Stat, statat};
use rustix::io::Errno;

use super::cache::{CacheLine, CacheRecord, CacheSeen, Key, Lying, Maker, Old};
use super::comparison::{IGNORE_FILE, Looker, ignore_file, is_ours};
use super::directory_queue::{Visited, VisitedDirectory, Walk, Walked};
use super::file;
use super::findings::{WalkFindings, leave};
use crate::attributes::Attributes;
use crate::pool;
use crate::tree::{Reason, join};

impl Walk<'_> {
    /// Walks everything; `old` is where the root's record lies in the last cache.
    pub(crate) fn root(&self, fd: OwnedFd, old: u64) -> Result<Visited> {
        // The default header says 0, where there is never a record.
        let old = self.cache.map(|_| old);
        let (path, above) = (Vec::new(), self.rules.top());
        let place = VisitedDirectory { fd, path, depth: 0, above, is_ignored: false, old, opened: None };
        let visit = || self.visit(place);
        let visited = if self.is_small() { pool::run_alone(visit) } else { pool::run(visit) };
        visited?
            .0
            .ok()
            .ok_or_else(|| io::Error::from(Errno::IO))
            .while_doing(|| format!("reading {}", self.root.display()))
    }

    /// What was found, sorted, and whether anything differs from the last cache.
    pub(crate) fn finish(self) -> (WalkFindings, bool) {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The threads of the walk find them in any order.
        found.skipped.sort_unstable();
        found.nested_git.sort_unstable();
        found.work_trees.sort_unstable();
        found.unsettled.sort_unstable();
        found.unseen.sort_unstable();
        (found, self.is_changed.into_inner())
    }

    pub(crate) fn reading(&self, directory: &[u8], name: &[u8]) -> String {
        format!("reading {}", self.root.join(path_from_bytes(&join(directory, name))).display())
    }

    /// Walks a directory and all below it. It is left out, with a reason, if it is another work tree, or if its names cannot be listed to
    /// the end: a list that breaks off would say that the missing names are gone.
    ///
    /// Its handle is returned too: a parent that closed its own handle finds back through `..` (see `reader.rs`).
    pub(super) fn visit(&self, place: VisitedDirectory) -> Result<(Walked, OwnedFd)> {
        const UNREADABLE: Walked = Err(Reason::Unreadable);
        self.progress.limit.check()?;
        let Some(stat) = self.readable(&place, place.stat())? else { return Ok((UNREADABLE, place.fd)) };
        // The key is from before the names are listed: if a name comes later, the next capture lists them again.
        let key = Key::of(&stat);
        let lying = place.old.and_then(|at| self.cache?.record(at));
        let old = lying.as_ref().and_then(Lying::read);
        let record = old.as_ref().map(|old| &old.record);
        let has_same_names = record.is_some_and(|record| record.trusted && record.key == key);
        let lines = record.map_or(&[][..], |record| &record.lines);
        // With the same names there is a `.gitignore` only if there was one. Its text may have changed since.
        let has_rules = !has_same_names || lines.iter().any(|line| line.name == IGNORE_FILE);
        let text = if has_rules { ignore_file(&place.fd) } else { None };
        let level = self.rules.enter(&place.above, &place.path, text.as_deref(), place.is_ignored);
        let has_same_rules = record.is_some_and(|record| record.rules == level.fingerprint);
        let is_as_it_was = has_same_names && has_same_rules && !self.rules.forces_below(&place.path);
        // Most directories of an unchanged tree end here: they cost one `statat` for each name, and nothing is listed or judged.
        if let Some(old) = old.as_ref().filter(|_| is_as_it_was)
            && self.holds_only_what_it_held(&place, &old.record)
        {
            return Ok((Ok(self.stay(&place, old)?), place.fd));
        }
        let listed;
        // A directory that did not change has the names of the last listing.
        let names: Vec<&[u8]> = if is_as_it_was {
            lines.iter().map(|line| line.name).collect()
        } else {
            let Some(names) = self.readable(&place, list(&place.fd))? else {
                return Ok((UNREADABLE, place.fd));
            };
            listed = names;
            listed.iter().map(Vec::as_slice).collect()
        };
        // This is asked only about a directory with a `.git`, which few have.
        if names.binary_search(&&b".git"[..]).is_ok() && self.places.is_one(&place.path) {
            return Ok((Err(Reason::WorkTree), place.fd));
        }
        let has_side_files = names.iter().any(|n| DATABASE_SIDE_SUFFIXES.iter().any(|end| n.ends_with(end)));
        let looker = Looker {
            walk: self,
            place: &place,
            level: &level,
            names: &names,
            is_as_it_was,
            has_same_rules,
            has_side_files,
        };
        let todo = looker.all(lines)?;
        let (seen, place) = self.carry_out_at(place, &level, &names, &todo)?;
        // The directory was moved during the walk, so what was seen may be of two directories.
        let Some(seen) = seen else { return Ok((UNREADABLE, place.fd)) };
        let lines = names
            .iter()
            .zip(seen)
            .filter_map(|(name, seen)| seen.map(|(seen, trusted)| CacheLine { name, seen, trusted }))
            .collect();
        let new = CacheRecord {
            key,
            trusted: key.is_settled(self.now),
            rules: level.fingerprint,
            hash: Hash::default(),
            attributes: self.attributes(&place, &stat, record.filter(|_| has_same_names)),
            lines,
        };
        Ok((Ok(self.keep(&place, old.as_ref(), new)?), place.fd))
    }

    /// A directory's attributes. They are as they were where the directory is: to set one changes its inode.
    fn attributes<'r>(&self, place: &VisitedDirectory, stat: &Stat, same: Option<&CacheRecord<'r>>) -> Cow<'r, [u8]> {
        match same {
            Some(record) => record.attributes.clone(),
            None => Cow::Owned(Attributes::of(&place.fd, stat, self.owner).bytes()),
        }
    }

    /// What was read of a directory; `None` where its file system refuses. The root must be readable.
    pub(super) fn readable<T>(
        &self,
        place: &VisitedDirectory,
        read: std::result::Result<T, Errno>,
    ) -> Result<Option<T>> {
        match read {
            Err(e) if place.path.is_empty() || is_ours(e) => Err(io::Error::from(e))
                .while_doing(|| format!("reading {}", self.root.join(path_from_bytes(&place.path)).display())),
            read => Ok(read.ok()),
        }
    }

    /// Whether every name is a file or link that was trusted and did not change: then there is nothing to judge or to read.
    fn holds_only_what_it_held(&self, place: &VisitedDirectory, record: &CacheRecord<'_>) -> bool {
        let is_plain = |line: &CacheLine<'_>| {
            line.trusted
                && matches!(line.seen, CacheSeen::File { .. } | CacheSeen::Symlink { .. })
                && !DATABASE_SIDE_SUFFIXES.iter().any(|end| line.name.ends_with(end))
        };
        let is_same = |line: &CacheLine<'_>| {
            let (CacheSeen::File { key, .. } | CacheSeen::Symlink { key, .. }) = line.seen else {
                return false;
            };
            if matches!(line.seen, CacheSeen::File { .. }) && self.maps.may_hide_changes(&key) {
                return false;
            }
            statat(&place.fd, line.name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| Key::of(&stat) == key)
        };
        // All kinds are checked first: no file is looked at where a name must be judged anyway.
        self.index_is_same && record.lines.iter().all(is_plain) && record.lines.iter().all(is_same)
    }

    /// Stores the directory, unless it is what it was, and its record.
    fn keep(&self, place: &VisitedDirectory, old: Option<&Old<'_>>, mut new: CacheRecord<'_>) -> Result<Visited> {
        if let Some(old) = old.filter(|old| old.record.is_same(&new)) {
            return self.stay(place, old);
        }
        self.is_changed.store(true, Relaxed);
        if let Some(old) = old {
            // The caller compares the new tree with the old one next: the old directory need not be read from the store for that.
            self.objects.remember(old.record.hash, &old.record.encode().bytes);
        }
        new.hash = self.writer.put_tree(&new.encode())?;
        self.add(place, &new, |maker| maker.add(&new))
    }

    /// Leaves a directory as the last capture found it.
    fn stay(&self, place: &VisitedDirectory, old: &Old<'_>) -> Result<Visited> {
        self.add(place, &old.record, |maker| {
            // Without a base the cache is written anew, and no record stays where it lies.
            if self.base.is_none() {
                return maker.add(&old.record);
            }
            maker.keep(old);
            old.at
        })
    }

    /// A directory in which nothing can have changed, and all below it, as the last capture found them.
    pub(super) fn untouched(&self, path: &[u8], at: u64) -> Option<Visited> {
        // This works only where the cache is continued: one that is written anew needs each record, and `leave` adds none.
        let cache = self.base?;
        if is_touched(self.options.touched.as_ref()?, path) {
            return None;
        }
        let mut found = WalkFindings::new(self.base, self.options.since);
        let hash = leave(cache, path, at, &mut found)?;
        self.found().merge(found);
        Some(Visited { hash, at })
    }

    /// Adds a directory to what was found; `enter` gives its record a place in the new cache.
    fn add(
        &self,
        place: &VisitedDirectory,
        record: &CacheRecord<'_>,
        enter: impl FnOnce(&mut Maker) -> u64,
    ) -> Result<Visited> {
        let names = record.lines.len() as u64;
        if self.progress.seen.fetch_add(names, Relaxed) + names > self.options.max_files {
            return Err(file::too_large(self.options.max_files));
        }
        let mut found = self.found();
        found.count(&place.path, record);
        Ok(Visited { hash: record.hash, at: enter(&mut found.maker) })
    }

    pub(super) fn found(&self) -> MutexGuard<'_, WalkFindings> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a path, what lies below it or what it lies in is among the touched.
fn is_touched(touched: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    // `a/` is followed by what is below `a`; `a.txt` comes before it.
    let below = join(path, b"");
    let mut ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    touched.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below))
        || touched.contains(path)
        || ends.any(|end| touched.contains(&path[..end]))
}

/// The names in a directory, in byte order.
fn list(fd: &OwnedFd) -> std::result::Result<Vec<Vec<u8>>, Errno> {
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
