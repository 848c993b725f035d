//! The stat cache: what the last capture saw, so that the next one reads only what changed.
//!
//! One file beside the object store for each root, replaced whole by a rename. It holds a record for each directory, below
//! it before above it, and ends with its own SHA-256: a cache that a loss of power tore is not believed. An entry is
//! trusted when it was last touched at least two seconds before the capture began; a younger one may be changed again
//! within the same tick of the file system's clock, so it is read again until it was seen older ("racy git", as git's own
//! documentation calls it).

use ic_events::Hash;
use rustix::fs::Stat;

use crate::objects::hash_of;
use crate::tree::{Reader, Reason};

const MAGIC: &[u8; 8] = b"icstat01";

/// How long something must have been left alone to be trusted, in nanoseconds.
const SETTLED: i64 = 2_000_000_000;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) mode: u32,
}

impl Key {
    #[allow(clippy::useless_conversion, reason = "the widths differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanos = |seconds: i64, nanos: u64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(i64::try_from(nanos).unwrap_or(0))
        };
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec.into()),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec.into()),
            mode: stat.st_mode,
        }
    }

    /// Whether it was left alone for long enough at the moment `now`, in nanoseconds.
    pub(crate) fn is_settled(&self, now: i64) -> bool {
        self.mtime.max(self.ctime) < now.saturating_sub(SETTLED)
    }

    /// The permission bits.
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    fn put(&self, out: &mut Vec<u8>) {
        for number in [self.dev, self.ino, self.size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.mtime.to_le_bytes());
        out.extend_from_slice(&self.ctime.to_le_bytes());
        out.extend_from_slice(&self.mode.to_le_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            dev: fixed(reader)?,
            ino: fixed(reader)?,
            size: fixed(reader)?,
            mtime: fixed(reader)?.cast_signed(),
            ctime: fixed(reader)?.cast_signed(),
            mode: u32::from_le_bytes(reader.take(4)?.try_into().ok()?),
        })
    }
}

fn fixed(reader: &mut Reader<'_>) -> Option<u64> {
    Some(u64::from_le_bytes(reader.take(8)?.try_into().ok()?))
}

/// What an entry was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen<'c> {
    File {
        key: Key,
        hash: Hash,
        size: u64,
    },
    Symlink {
        key: Key,
        target: &'c [u8],
    },
    /// A directory, and where its record lies.
    Directory {
        hash: Hash,
        at: u64,
    },
    Passed(Reason),
}

/// A name in a cached directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'c> {
    pub(crate) name: &'c [u8],
    pub(crate) seen: Seen<'c>,
    pub(crate) trusted: bool,
}

/// The record of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Record<'c> {
    pub(crate) key: Key,
    pub(crate) trusted: bool,
    /// The rules that its names were judged by.
    pub(crate) rules: u64,
    /// The directory's own object.
    pub(crate) hash: Hash,
    pub(crate) lines: Vec<Line<'c>>,
}

impl Line<'_> {
    /// Whether it says the same, wherever the record of a directory lies.
    fn is_same(&self, other: &Line<'_>) -> bool {
        let same = match (self.seen, other.seen) {
            (Seen::Directory { hash, .. }, Seen::Directory { hash: other, .. }) => hash == other,
            (seen, other) => seen == other,
        };
        same && self.name == other.name && self.trusted == other.trusted
    }
}

impl Record<'_> {
    /// Whether it says the same as another but for its own hash.
    pub(crate) fn is_same(&self, other: &Record<'_>) -> bool {
        self.key == other.key
            && self.trusted == other.trusted
            && self.rules == other.rules
            && self.lines.len() == other.lines.len()
            && self.lines.iter().zip(&other.lines).all(|(line, other)| line.is_same(other))
    }
}

/// A cache as it lies on disk.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
}

/// What stands before the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// Where the root's record lies.
    pub(crate) root: u64,
    /// The state of git's index.
    pub(crate) index: u64,
    /// What git tracked though a rule ignores it, when the index was in that state.
    pub(crate) tracked: u64,
}

const HEADER: usize = 8 + 3 * 8;

impl Cache {
    /// A cache, if these are the bytes of one and nothing is wrong with them.
    pub(crate) fn parse(mut bytes: Vec<u8>) -> Option<Self> {
        let content = bytes.len().checked_sub(32)?;
        if content < HEADER || !bytes.starts_with(MAGIC) || hash_of(&bytes[..content])[..] != bytes[content..]
        {
            return None;
        }
        bytes.truncate(content);
        Some(Self { bytes })
    }

    pub(crate) fn header(&self) -> Option<Header> {
        let mut reader = Reader(self.bytes.get(8..)?);
        Some(Header { root: fixed(&mut reader)?, index: fixed(&mut reader)?, tracked: fixed(&mut reader)? })
    }

    /// The record at a place; `None` if there is none.
    pub(crate) fn record(&self, at: u64) -> Option<Record<'_>> {
        let mut reader = Reader(self.bytes.get(usize::try_from(at).ok()?..)?);
        let key = Key::read(&mut reader)?;
        let trusted = reader.byte()? == 1;
        let rules = fixed(&mut reader)?;
        let hash = reader.hash()?;
        let count = usize::try_from(reader.number()?).ok()?;
        let mut lines = Vec::with_capacity(count.min(reader.0.len()));
        for _ in 0..count {
            lines.push(line(&mut reader)?);
        }
        Some(Record { key, trusted, rules, hash, lines })
    }
}

fn line<'c>(reader: &mut Reader<'c>) -> Option<Line<'c>> {
    let (kind, trusted) = (reader.byte()?, reader.byte()? == 1);
    let name = reader.bytes()?;
    let seen = match kind {
        0 => Seen::File { key: Key::read(reader)?, hash: reader.hash()?, size: reader.number()? },
        1 => Seen::Symlink { key: Key::read(reader)?, target: reader.bytes()? },
        2 => Seen::Directory { hash: reader.hash()?, at: fixed(reader)? },
        3 => Seen::Passed(Reason::of_byte(reader.byte()?)?),
        _ => return None,
    };
    Some(Line { name, seen, trusted })
}

/// A cache that is being made.
#[derive(Debug)]
pub(crate) struct Maker {
    bytes: Vec<u8>,
}

impl Maker {
    pub(crate) fn new() -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(HEADER, 0);
        Self { bytes }
    }

    /// Adds the record of a directory, after those below it; returns where it lies.
    pub(crate) fn add(&mut self, record: &Record<'_>) -> u64 {
        let at = self.bytes.len() as u64;
        let out = &mut self.bytes;
        record.key.put(out);
        out.push(u8::from(record.trusted));
        out.extend_from_slice(&record.rules.to_le_bytes());
        out.extend_from_slice(&record.hash);
        crate::tree::put_number(out, record.lines.len() as u64);
        for line in &record.lines {
            put_line(out, line);
        }
        at
    }

    /// The bytes of the file.
    pub(crate) fn finish(mut self, header: Header) -> Vec<u8> {
        for (i, number) in [header.root, header.index, header.tracked].into_iter().enumerate() {
            self.bytes[8 + i * 8..16 + i * 8].copy_from_slice(&number.to_le_bytes());
        }
        let hash = hash_of(&self.bytes);
        self.bytes.extend_from_slice(&hash);
        self.bytes
    }
}

fn put_line(out: &mut Vec<u8>, line: &Line<'_>) {
    let kind = match line.seen {
        Seen::File { .. } => 0,
        Seen::Symlink { .. } => 1,
        Seen::Directory { .. } => 2,
        Seen::Passed(_) => 3,
    };
    out.extend_from_slice(&[kind, u8::from(line.trusted)]);
    crate::tree::put_bytes(out, line.name);
    match line.seen {
        Seen::File { key, hash, size } => {
            key.put(out);
            out.extend_from_slice(&hash);
            crate::tree::put_number(out, size);
        }
        Seen::Symlink { key, target } => {
            key.put(out);
            crate::tree::put_bytes(out, target);
        }
        Seen::Directory { hash, at } => {
            out.extend_from_slice(&hash);
            out.extend_from_slice(&at.to_le_bytes());
        }
        Seen::Passed(reason) => out.push(reason.byte()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Header, Key, Line, Maker, Record, Seen};
    use crate::tree::Reason;

    #[test]
    fn what_is_written_is_read_and_damage_is_seen() {
        let key = Key { dev: 1, ino: 2, size: 3, mtime: -4, ctime: 5, mode: 0o100_644 };
        let file = Seen::File { key, hash: [7; 32], size: 3 };
        let seen = [
            file,
            Seen::Symlink { key, target: b"t" },
            Seen::Directory { hash: [6; 32], at: 9 },
            Seen::Passed(Reason::Git),
        ];
        let lines = seen.map(|seen| Line { name: b"n", seen, trusted: true }).to_vec();
        let record = Record { key, trusted: false, rules: 11, hash: [8; 32], lines };
        let mut maker = Maker::new();
        let root = maker.add(&record);
        let bytes = maker.finish(Header { root, index: 1, tracked: 2 });
        let cache = Cache::parse(bytes.clone()).unwrap();
        assert_eq!(cache.header().unwrap(), Header { root, index: 1, tracked: 2 });
        let read = cache.record(root).unwrap();
        assert_eq!((read.key, read.trusted, read.rules, read.hash), (key, false, 11, [8; 32]));
        assert_eq!(read.lines.iter().map(|l| l.seen).collect::<Vec<_>>(), seen);
        assert!(cache.record(1 << 40).is_none());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Cache::parse(damaged).is_none(), "byte {at}");
        }
        assert!(Cache::parse(bytes[..20].to_vec()).is_none());
    }

    #[test]
    fn what_was_touched_lately_is_not_trusted() {
        let key = |mtime, ctime| Key { dev: 0, ino: 0, size: 0, mtime, ctime, mode: 0 };
        let second = 1_000_000_000;
        assert!(key(0, 0).is_settled(3 * second));
        assert!(!key(second, 0).is_settled(3 * second));
        assert!(!key(0, 2 * second).is_settled(3 * second));
        assert!(!key(0, 9 * second).is_settled(3 * second), "a clock that stepped back");
    }
}
