//! What a store remembers of its ledger's newest event and of its log, in a small file beside it (`ic.db.head`).
//!
//! A ledger between two calls is two files, and a copy of one of them is no copy. So the call that opens it is told if
//!
//! - its events are older than what the store remembers: the file was restored from a copy, or its log was removed. It can be read;
//!   writing is refused until that is accepted, because what is missing may still be found;
//! - its log belongs to another file: SQLite would play the log into any file of that name. Nothing is opened then.
//!
//! The note is written without a flush, after the commit that it tells of: it can be behind what is durable, never ahead. It helps and is
//! not needed: a note that cannot be read counts as none, and a failure to write it is ignored. It is written whole, at once and in place,
//! so readers need no lock, and a sum at its end tells a note that was cut off.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::log::{self, Salts};
use crate::private;

/// Its length in bytes, always the same: it is written in place, and no end of an earlier note may stay behind it.
const SIZE: usize = 320;

/// The word and version that it begins with. A note of another version is not read.
const MARK: &str = "ic-head 1";

/// Stands for what is not known, or not there.
const UNKNOWN: &str = "-";

/// What the store remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreNote {
    /// The id of the ledger that the note is about: another file may stand in its place by now.
    pub(crate) ledger: String,
    /// The newest event that was committed when the note was written.
    pub(crate) head: HeadNote,
    /// The log that was left.
    pub(crate) log: Option<LogNote>,
}

/// The newest event: its number and its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadNote {
    pub(crate) seq: i64,
    pub(crate) hash: String,
}

/// A log that was left beside its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogNote {
    pub(crate) salts: Salts,
    /// The newest event in the file when the log was begun: the file never goes behind it. `None`: not known.
    pub(crate) base: Option<i64>,
    /// The file that it belongs to; `None`: the file was being written, as while the log is folded in.
    pub(crate) file: Option<Stamp>,
}

/// Tells one state of a file from every other: a write changes its time or its size, a replacement its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    seconds: i64,
    nanos: i64,
    size: u64,
}

impl Stamp {
    pub(crate) fn of(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), seconds: meta.mtime(), nanos: meta.mtime_nsec(), size: meta.len() }
    }
}

/// Where the note of the ledger at `path` is, which is no link.
pub(crate) fn path_of(path: &Path) -> PathBuf {
    log::sibling(path, ".head")
}

impl StoreNote {
    /// What is remembered of the ledger at `path`; `None` if nothing is, or nothing that can be read.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let mut bytes = [0; SIZE];
        let mut options = File::options();
        let file = options.read(true).custom_flags(flags()).open(path_of(path)).ok()?;
        file.read_exact_at(&mut bytes, 0).ok()?;
        Self::parse(std::str::from_utf8(&bytes).ok()?)
    }

    /// Remembers it. Another user's, or a link in its place, is left alone.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create(true).truncate(false).custom_flags(flags());
        let file = private::open(&path_of(path), &mut options)?;
        if file.metadata()?.len() == 0 && rustix::process::geteuid().is_root() {
            // A call as root (sudo) leaves a note that the ledger's user can write, as SQLite does with the log.
            let of = std::fs::metadata(path)?;
            std::os::unix::fs::fchown(&file, Some(of.uid()), Some(of.gid()))?;
        }
        file.write_all_at(self.text().as_bytes(), 0)
    }

    fn text(&self) -> String {
        // One line, filled up with spaces; `-` stands for a base or a file that is not known:
        //   ic-head 1 LEDGER SEQ HASH SALTS BASE INODE:SECONDS.NANOS:SIZE SUM     with a log
        //   ic-head 1 LEDGER SEQ HASH - SUM                                       without one
        let log = self.log.as_ref().map_or_else(
            || UNKNOWN.to_owned(),
            |log| {
                let base = log.base.map_or_else(|| UNKNOWN.to_owned(), |base| base.to_string());
                let file = log.file.map_or_else(
                    || UNKNOWN.to_owned(),
                    |file| format!("{}:{}.{:09}:{}", file.inode, file.seconds, file.nanos, file.size),
                );
                format!("{:016x} {base} {file}", log.salts)
            },
        );
        let said = format!("{MARK} {} {} {} {log}", self.ledger, self.head.seq, self.head.hash);
        let text = format!("{said} {:016x}", sum(&said));
        format!("{text:<width$}\n", width = SIZE - 1)
    }

    fn parse(text: &str) -> Option<Self> {
        let (said, its_sum) = text.trim_end().rsplit_once(' ')?;
        if u64::from_str_radix(its_sum, 16).ok()? != sum(said) {
            return None;
        }
        let mut words = said.strip_prefix(MARK)?.strip_prefix(' ')?.split(' ');
        let ledger = words.next()?.to_owned();
        let head = HeadNote { seq: words.next()?.parse().ok()?, hash: words.next()?.to_owned() };
        let log = match words.next()? {
            UNKNOWN => None,
            salts => {
                let salts = Salts::from_str_radix(salts, 16).ok()?;
                let (base, file) = (words.next()?, words.next()?);
                let base = if base == UNKNOWN { None } else { Some(base.parse().ok()?) };
                let file = if file == UNKNOWN { None } else { Some(stamp(file)?) };
                Some(LogNote { salts, base, file })
            }
        };
        words.next().is_none().then_some(Self { ledger, head, log })
    }
}

/// Why nothing can be remembered of the ledger at `path`, where something else stands in the note's place; `None`: there is a note, or
/// nothing.
pub(crate) fn trouble(path: &Path) -> Option<String> {
    let at = path_of(&log::real(path));
    // An empty note was left by a call that was killed as it made it: the next call writes it.
    let is_there = std::fs::symlink_metadata(&at).is_ok_and(|found| !found.is_file() || found.len() > 0);
    (is_there && StoreNote::read(&log::real(path)).is_none()).then(|| {
        format!("{} cannot be read as what it is, so an older ledger would not be found out; remove it", at.display())
    })
}

/// Forgets what is remembered of the ledger at `path`.
pub(crate) fn forget(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path_of(path)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn stamp(word: &str) -> Option<Stamp> {
    let (inode, rest) = word.split_once(':')?;
    let (time, size) = rest.split_once(':')?;
    let (seconds, nanos) = time.split_once('.')?;
    Some(Stamp {
        inode: inode.parse().ok()?,
        seconds: seconds.parse().ok()?,
        nanos: nanos.parse().ok()?,
        size: size.parse().ok()?,
    })
}

/// NOFOLLOW: a link in its place could lead to another file. NONBLOCK: opening a pipe would wait for its other end.
fn flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

/// FNV-1a: it detects a note that was cut off. It is no protection against a person who edits it.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> Vec<StoreNote> {
        let stamp = Stamp { inode: u64::MAX, seconds: i64::MIN, nanos: 7, size: 4096 };
        let log = LogNote { salts: 0x00ab_cdef_0123_4567, base: None, file: None };
        let of = |log| StoreNote {
            ledger: "01a20e35-f0d5-7d6d-a614-a22f478dca86".into(),
            head: HeadNote { seq: i64::MAX, hash: "f".repeat(64) },
            log,
        };
        vec![
            of(None),
            of(Some(log.clone())),
            of(Some(LogNote { base: Some(0), ..log.clone() })),
            of(Some(LogNote { base: Some(i64::MAX), file: Some(stamp), ..log })),
        ]
    }

    #[test]
    fn what_is_remembered_is_read_again_and_overwritten_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ic.db");
        std::fs::write(&path, "").unwrap();
        assert_eq!(StoreNote::read(&path), None);
        for note in notes().iter().rev().chain(&notes()) {
            note.write(&path).unwrap();
            assert_eq!(StoreNote::read(&path).as_ref(), Some(note));
            assert_eq!(std::fs::metadata(path_of(&path)).unwrap().len(), SIZE as u64);
        }
        forget(&path).unwrap();
        forget(&path).unwrap();
        assert_eq!(StoreNote::read(&path), None);
    }

    #[test]
    fn what_was_cut_off_or_changed_is_not_believed() {
        let text = notes()[3].text();
        assert!(StoreNote::parse(&text).is_some());
        for at in 0..text.trim_end().len() {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1;
            assert_eq!(StoreNote::parse(&String::from_utf8(other).unwrap()), None, "{at}");
            assert_eq!(StoreNote::parse(&text[..at]), None, "{at}");
        }
        assert_eq!(StoreNote::parse(""), None);
    }

    #[test]
    fn nothing_is_read_or_written_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ic.db");
        let other = place.path().join("other");
        std::fs::write(&path, "").unwrap();
        std::fs::write(&other, notes()[0].text()).unwrap();
        std::os::unix::fs::symlink(&other, path_of(&path)).unwrap();
        assert_eq!(StoreNote::read(&path), None);
        assert!(notes()[1].write(&path).is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), notes()[0].text());
    }

    #[test]
    fn an_empty_note_is_none_and_a_cut_off_one_is_trouble() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = directory.path().join("ic.db");
        std::fs::write(&ledger, "").expect("a ledger");
        assert_eq!(trouble(&ledger), None);
        std::fs::write(path_of(&ledger), "").expect("a note that was only made");
        assert_eq!((StoreNote::read(&ledger), trouble(&ledger)), (None, None));
        std::fs::write(path_of(&ledger), "ic-head 1 cut").expect("half a note");
        assert!(trouble(&ledger).is_some());
    }
}
