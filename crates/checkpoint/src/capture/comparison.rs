//! Judging the names of one directory: which are known from the last capture, which are left out, which must be read.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ic_base::{Diagnose, Result};
use ic_ledger::{DATABASE_SIDE_SUFFIXES, is_database, is_ledger_head, path_bytes};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use super::cache::{CacheLine, CacheSeen, Key};
use super::directory_queue::{Todo, VisitedDirectory, Walk};
use super::options::CaptureOptions;
use super::rules::{Level, RuleVerdict, looks_secret};
use super::text::rules_in;
use crate::names::TEMPORARY;
use crate::names::is_like_git;
use crate::objects::Objects;
use crate::tree::Reason;
use crate::tree::join;

/// What the names of a ledger's files end with, after its own: of its object store, of their locks, and of its caches, its reserve and
/// what is remembered of it. Its logs stay beside it between two calls.
const OF_LEDGER: [&[u8]; 12] = [
    b".head", b".objects.db.head", b".objects.db-wal", b".objects.db-shm", b".objects.db-journal", b".lock",
    b".lock.turn", b".reserve", b".objects.db", b".objects.db.lock", b".objects.db.lock.turn", b".objects.cache",
];

/// Judges the names of one directory.
pub(crate) struct Looker<'l, 'w> {
    pub(crate) walk: &'l Walk<'w>,
    pub(crate) place: &'l VisitedDirectory,
    pub(crate) level: &'l Arc<Level>,
    pub(crate) names: &'l [&'l [u8]],
    /// Neither the directory nor its rules changed since the last capture.
    pub(crate) is_as_it_was: bool,
    /// The last capture judged its names by the rules of now.
    pub(crate) has_same_rules: bool,
    /// There are names of a database's side files.
    pub(crate) has_side_files: bool,
}

impl Looker<'_, '_> {
    /// What is to be done about each name. `lines`: what was seen of them, in their order.
    pub(crate) fn all<'c>(&self, lines: &[CacheLine<'c>]) -> Result<Vec<Todo<'c>>> {
        let mut known = lines.iter().peekable();
        // Names and lines are in the same order, so one pass finds the line of each name.
        let look = |name: &&[u8]| {
            while known.next_if(|line| line.name < *name).is_some() {}
            self.look(name, known.next_if(|line| line.name == *name))
        };
        self.names.iter().map(look).collect()
    }

    fn look<'c>(&self, name: &[u8], old: Option<&CacheLine<'c>>) -> Result<Todo<'c>> {
        let old_reason = match old {
            Some(CacheLine { seen: CacheSeen::Passed(reason), .. }) => Some(*reason),
            _ => None,
        };
        // These three are decided by the name alone, before the file is looked at.
        if name == b".git" {
            return Ok(pass(Reason::Git));
        }
        if is_like_git(name) {
            return Ok(pass(Reason::GitName));
        }
        if name.starts_with(TEMPORARY) {
            return Ok(pass(Reason::Store));
        }
        // Neither the names here nor the rules changed, so these files are not looked at. For any other reason the file is
        // looked at: it may be shorter by now, or readable, or tracked by git.
        if let (true, Some(reason @ (Reason::Ignored | Reason::Store | Reason::Database))) =
            (self.is_as_it_was, old_reason)
        {
            return Ok(pass(reason));
        }
        let stat = match statat(&self.place.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // It was removed after the directory was listed.
            Err(Errno::NOENT) => return Ok(Todo::Drop),
            Err(e) => return self.unreadable(name, e),
        };
        let key = Key::of(&stat);
        let kind = FileType::from_raw_mode(stat.st_mode);
        if self.walk.own.contains(&(key.dev, key.ino)) && kind != FileType::Symlink {
            return Ok(pass(Reason::Store));
        }
        // What was captured from a directory that is as it was is not ignored now either.
        let needs_judging = !self.is_as_it_was || old.is_none() || old_reason.is_some();
        // This is asked before directories are told apart, because the caches of a ledger are a directory.
        if self.belongs_to_ledger(name) {
            return Ok(pass(Reason::Ledger));
        }
        if kind == FileType::Directory {
            return Ok(self.directory(name, old));
        }
        if needs_judging {
            let path = join(&self.place.path, name);
            let was_file =
                matches!(old, Some(CacheLine { seen: CacheSeen::File { .. } | CacheSeen::Symlink { .. }, .. }));
            let is_new = !self.has_same_rules || !was_file;
            if self.walk.rules.judge(self.level, &path, false, is_new) == RuleVerdict::Ignored {
                return Ok(pass(Reason::Ignored));
            }
        }
        match kind {
            FileType::RegularFile => Ok(self.file(name, key, old)),
            FileType::Symlink => self.symlink(name, key, old),
            _ => Ok(pass(Reason::Special)),
        }
    }

    fn directory<'c>(&self, name: &[u8], old: Option<&CacheLine<'c>>) -> Todo<'c> {
        let at = match old {
            Some(CacheLine { seen: CacheSeen::Directory { at, .. }, .. }) => Some(*at),
            _ => None,
        };
        let is_new = !self.has_same_rules || at.is_none();
        match self.walk.rules.judge(self.level, &join(&self.place.path, name), true, is_new) {
            RuleVerdict::Ignored => pass(Reason::Ignored),
            RuleVerdict::Capture => Todo::Enter { old: at, is_ignored: false },
            RuleVerdict::Descend => Todo::Enter { old: at, is_ignored: true },
        }
    }

    fn symlink<'c>(&self, name: &[u8], key: Key, old: Option<&CacheLine<'c>>) -> Result<Todo<'c>> {
        if let Some(CacheLine { seen: seen @ CacheSeen::Symlink { key: known, .. }, trusted: true, .. }) = old
            && *known == key
        {
            return Ok(Todo::Nothing(seen.clone(), true));
        }
        match readlinkat(&self.place.fd, name, Vec::new()) {
            Ok(target) => Ok(Todo::Target(key, target.into_bytes())),
            // It was removed after the look, or is no link any more.
            Err(Errno::NOENT | Errno::INVAL) => Ok(Todo::Drop),
            Err(e) => self.unreadable(name, e),
        }
    }

    /// A name that its file system does not let us look at is listed, and the capture continues.
    fn unreadable<'c>(&self, name: &[u8], error: Errno) -> Result<Todo<'c>> {
        if is_ours(error) {
            return Err(io::Error::from(error)).while_doing(|| self.walk.reading(&self.place.path, name));
        }
        Ok(pass(Reason::Unreadable))
    }

    fn file<'c>(&self, name: &[u8], key: Key, old: Option<&CacheLine<'c>>) -> Todo<'c> {
        let rules = self.walk.rules;
        let path = || join(&self.place.path, name);
        let is_secret = match old {
            // This comes first, because git may have to be asked for the rest.
            _ if !looks_secret(name) => false,
            Some(line) if self.is_as_it_was && self.walk.index_is_same && !rules.forces_below(b"") => {
                line.seen == CacheSeen::Passed(Reason::Secret)
            }
            _ => rules.is_secret(&path(), name),
        };
        if is_secret {
            return pass(Reason::Secret);
        }
        let is_forced = |name: &[u8]| rules.is_forced(&join(&self.place.path, name));
        let is_side = |end: &&[u8]| self.is_side_file(name, end);
        // Before the size is checked: the content of a log is in the copy of its database, so a large one is no gap.
        if self.has_side_files && !is_forced(name) && DATABASE_SIDE_SUFFIXES.iter().any(is_side) {
            return pass(Reason::Database);
        }
        if key.size > self.walk.options.max_file_size && !is_forced(name) {
            return pass(Reason::Oversize);
        }
        if self.has_side_files {
            let beside = DATABASE_SIDE_SUFFIXES.map(|end| [name, end].concat());
            let beside: Vec<&Vec<u8>> = beside.iter().filter(|side| self.has(side)).collect();
            // A caller that forces a log gets its database byte by byte too: a copy made by SQLite would not fit the log.
            if beside.iter().any(|side| is_forced(side)) {
                return Todo::Raw(key);
            }
            // An index (`-shm`) alone has no content that the database lacks.
            if beside.iter().any(|side| !side.ends_with(b"-shm")) {
                return Todo::Database(key);
            }
        }
        match old {
            Some(CacheLine { seen: seen @ CacheSeen::File { key: known, .. }, trusted: true, .. })
                if *known == key && !self.walk.maps.may_hide_changes(&key) =>
            {
                Todo::Nothing(seen.clone(), true)
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
        is_database(&self.head(database))
    }

    /// Whether a name is that of a store, a lock, a reserve or caches, beside the ledger that it is named after. An old store under a
    /// ledger that records more would lack what the ledger refers to. Only such names are looked behind.
    fn belongs_to_ledger(&self, name: &[u8]) -> bool {
        let is_ledger = |name: &[u8]| self.has(name) && is_ledger_head(&self.head(name));
        let is_log = || DATABASE_SIDE_SUFFIXES.iter().any(|end| name.strip_suffix(*end).is_some_and(is_ledger));
        // For a ledger with the usual name, the name of the store does not contain it; `lock` and `head` alone are a user's files.
        let is_of_store = || {
            OF_LEDGER.iter().any(|end| {
                let is_bare = end.starts_with(b".objects.") && *name == end[1..];
                let ledger = if is_bare { Some(&b"ic.db"[..]) } else { name.strip_suffix(*end) };
                ledger.is_some_and(is_ledger)
            })
        };
        is_log() || is_of_store()
    }

    /// How a file begins; zeros where it cannot be read so far.
    fn head(&self, name: &[u8]) -> [u8; 72] {
        // Without NONBLOCK, a pipe of that name would make the capture wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut head = [0; 72];
        let _ = openat(&self.place.fd, name, flags, Mode::empty()).and_then(|fd| rustix::io::read(fd, &mut head));
        head
    }
}

/// Whether an error says that this process lacks something, and nothing of the file that it was about.
///
/// Only these end a capture. Whatever else a file system answers (`EIO`, `ESTALE`, `EACCES`, what FUSE and `/proc` make up) is a
/// property of the name: with every other call it would be the same, and the rest of the tree would be in no checkpoint.
pub(crate) fn is_ours(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR)
}

fn pass<'c>(reason: Reason) -> Todo<'c> {
    Todo::Nothing(CacheSeen::Passed(reason), false)
}

/// The name of files with ignore rules.
pub(crate) const IGNORE_FILE: &[u8] = b".gitignore";

/// The directory's `.gitignore`; a link is not followed, as for git.
pub(crate) fn ignore_file(fd: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rules_in(openat(fd, IGNORE_FILE, flags, Mode::empty()).ok()?.into())
}

/// Whether a file of ours may have this ending after the name of a database: `-wal` and `.lock.turn` are ours. `-notes` and `x` are not:
/// such a file is the user's, and left out of every capture if it is taken for ours.
fn is_own_ending(ending: &[u8]) -> bool {
    const WORDS: [&str; 11] =
        ["wal", "shm", "journal", "lock", "turn", "head", "reserve", "backup", "partial", "aside", "new"];
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let is_word = |word: &[u8]| {
        WORDS.iter().any(|known| known.as_bytes() == word) || is_number(word.strip_prefix(b"v").unwrap_or(word))
    };
    let mut words = ending.split(|byte| matches!(byte, b'-' | b'.'));
    words.next() == Some(&[][..]) && words.all(is_word)
}

/// Device and inode of what is ours in the tree.
pub(crate) fn own_files(root: &Path, options: &CaptureOptions, objects: &Objects) -> HashSet<(u64, u64)> {
    let inode = |path: &Path| std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    // A file in place of the store's directory leads to the store.
    let pointer = root.join(".ic");
    let mut own: HashSet<_> = inode(&pointer).filter(|_| pointer.is_file()).into_iter().collect();
    let Ok(store) = std::fs::canonicalize(&options.store) else { return own };
    // The store has a directory of its own, in the root or elsewhere, and is left out as a whole.
    if !root.starts_with(&store) {
        own.extend(inode(&store));
        return own;
    }
    // The ledger lies loose in the root, or above it: its own files, by name.
    let beside = ["cache", "damaged", "rebuilt"].map(|ending| objects.path().with_extension(ending));
    let ours = [options.ledger.as_path(), objects.path()].into_iter().chain(beside.iter().map(PathBuf::as_path));
    let ours: Vec<&[u8]> = ours.filter_map(|path| path.file_name().map(|name| path_bytes(Path::new(name)))).collect();
    let entries = std::fs::read_dir(&store).into_iter().flatten().flatten();
    let is_ours = |name: &[u8]| ours.iter().any(|own| name.strip_prefix(*own).is_some_and(is_own_ending));
    own.extend(
        entries
            .filter(|entry| is_ours(path_bytes(Path::new(&entry.file_name()))))
            .filter_map(|entry| inode(&entry.path())),
    );
    own
}
