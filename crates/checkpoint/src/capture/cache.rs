//! The stat cache: what the last capture saw, so that the next one reads only what changed.
//!
//! One file beside the object store for each root ([`super::cache_file`]): a header, then a record for each directory, those
//! below it before it. Header and records carry checksums: what a loss of power tore is not believed. A directory that is
//! what it was keeps its record where it lies; new records follow, and once the old ones take more room than the
//! living, all are written anew. An entry is
//! trusted when it was last touched at least two seconds before the capture began; a younger one may be changed again
//! within the same tick of the file system's clock, so it is read again until it was seen older ("racy git", as git's own
//! documentation calls it). Nor is a file trusted that a process has mapped into memory ([`super::memory_maps`]).

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

use ic_ledger::events::Hash;

use super::text::number_of;
use crate::attributes::Attributes;
use crate::tree::{Encoded, Encoder, Reader, Reason, TreeNode};

mod key;
mod storage;
pub(crate) use self::key::{Key, SETTLED};
pub(super) use self::storage::sum_of;
use self::storage::{BEFORE_RECORD, fixed};
use self::storage::{CacheBytes, SMALL};

// The file is a header and records, each after those of the directories in it:
//   header: magic, six numbers, checksum
//   record: length, checksum, then the directory's key, trust, rules, hash, attributes and lines
// A cache of another form has another magic, and is not believed.
const MAGIC: &[u8; 8] = b"icstat06";

/// What an entry was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CacheSeen<'c> {
    File {
        key: Key,
        hash: Hash,
        size: u64,
        /// Its attributes, in their byte form.
        attributes: Cow<'c, [u8]>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheLine<'c> {
    pub(crate) name: &'c [u8],
    pub(crate) seen: CacheSeen<'c>,
    pub(crate) trusted: bool,
}

/// The record of a directory.
#[derive(Debug, Clone)]
pub(crate) struct CacheRecord<'c> {
    pub(crate) key: Key,
    pub(crate) trusted: bool,
    /// The rules that its names were judged by.
    pub(crate) rules: u64,
    /// The directory's own object.
    pub(crate) hash: Hash,
    /// Its attributes, in their byte form.
    pub(crate) attributes: Cow<'c, [u8]>,
    pub(crate) lines: Vec<CacheLine<'c>>,
}

/// The bytes of a record of the last capture, which are whole.
#[derive(Debug)]
pub(crate) struct Lying<'c> {
    at: u64,
    content: Cow<'c, [u8]>,
}

/// A record of the last capture, and where it lies.
#[derive(Debug, Clone)]
pub(crate) struct Old<'c> {
    pub(crate) record: CacheRecord<'c>,
    pub(crate) at: u64,
    /// The bytes that it takes.
    pub(crate) length: u64,
}

impl CacheLine<'_> {
    /// A file's attributes, in their byte form.
    fn attributes(&self) -> &[u8] {
        match &self.seen {
            CacheSeen::File { attributes, .. } => attributes,
            _ => &[],
        }
    }

    /// What a tree says of it.
    fn node(&self) -> TreeNode {
        match self.seen {
            CacheSeen::File { key, hash, size, .. } => TreeNode::File { hash, size, mode: key.permissions() },
            CacheSeen::Symlink { target, .. } => TreeNode::Symlink(target.to_vec()),
            CacheSeen::Directory { hash, .. } => TreeNode::Directory(hash),
            CacheSeen::Passed(reason) => TreeNode::Passed(reason),
        }
    }
}

impl CacheRecord<'_> {
    /// The directory's byte form.
    pub(crate) fn encode(&self) -> Encoded {
        let own = &self.attributes;
        // The form with attributes only if there are any: a directory has one byte form, and so one hash.
        let is_any = !own.is_empty() || self.lines.iter().any(|line| !line.attributes().is_empty());
        let mut encoder = Encoder::new(self.key.permissions(), is_any.then_some((own, &Vec::new())));
        for line in &self.lines {
            encoder.entry(line.name, &line.node(), line.attributes());
        }
        encoder.finish()
    }

    /// Whether it says the same as another but for its own hash.
    pub(crate) fn is_same(&self, other: &CacheRecord<'_>) -> bool {
        self.key == other.key
            && self.trusted == other.trusted
            && self.rules == other.rules
            && self.attributes == other.attributes
            && self.lines == other.lines
    }
}

/// A cache as it lies on disk.
#[derive(Debug)]
pub(crate) struct Cache {
    held: CacheBytes,
    header: Header,
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
    /// Who the root belongs to: every other owner is told apart from it.
    pub(crate) owner: u64,
    /// The bytes of the records that belong to the tree.
    pub(crate) living: u64,
    /// The bytes of the file that count.
    pub(crate) length: u64,
}

/// The bytes of a header: the magic, its numbers, its checksum.
pub(crate) const HEADER: usize = 8 + 6 * 8 + 8;

impl Header {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.root, self.index, self.tracked, self.owner, self.living, self.length] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = number_of(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, sum) = bytes.get(..HEADER)?.split_at(HEADER - 8);
        if !head.starts_with(MAGIC) || number_of(head).to_le_bytes() != sum {
            return None;
        }
        let mut reader = Reader(&head[MAGIC.len()..]);
        Some(Self {
            root: fixed(&mut reader)?,
            index: fixed(&mut reader)?,
            tracked: fixed(&mut reader)?,
            owner: fixed(&mut reader)?,
            living: fixed(&mut reader)?,
            length: fixed(&mut reader)?,
        })
    }
}

/// What becomes of the file.
#[derive(Debug)]
pub(crate) enum CacheUpdate {
    /// The file is replaced by these bytes.
    Whole(Vec<u8>),
    /// The file is continued, if its header still is `before`.
    After {
        before: Vec<u8>,
        /// The new records, where the file ended.
        records: Vec<u8>,
        header: Vec<u8>,
    },
}

/// With fewer bytes of old records, it is not worth to write all records again.
const WORTH_COMPACTING: u64 = 64 << 10;

impl Cache {
    /// A cache, if these are the bytes of one.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn parse(mut bytes: Vec<u8>) -> Option<Self> {
        let header = Header::read(&bytes)?;
        let length = usize::try_from(header.length).ok().filter(|length| *length <= bytes.len())?;
        bytes.truncate(length);
        Some(Self { held: CacheBytes::Whole(bytes), header })
    }

    /// The cache in a file, if it is one.
    pub(crate) fn open(file: File) -> Option<Self> {
        let mut first = [0; HEADER];
        file.read_exact_at(&mut first, 0).ok()?;
        let header = Header::read(&first)?;
        // The header is written last, but a loss of power can keep it and lose the records before it.
        if header.length > file.metadata().ok()?.len() {
            return None;
        }
        Some(Self { held: CacheBytes::open(file, header.length)?, header })
    }

    /// Whether it is of so small a tree that one thread walks it as quickly as several.
    pub(crate) fn is_small(&self) -> bool {
        self.header.living <= SMALL
    }

    /// How many bytes of a file with this header count.
    pub(crate) fn length_in(header: &[u8]) -> u64 {
        Header::read(header).map_or(0, |header| header.length)
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// Whether old records take more room than the living: written anew, those are all that is left.
    pub(crate) fn is_sparse(&self) -> bool {
        // Twice as long: compacting then costs no more than what was appended since the last time.
        self.header.length > self.header.living.saturating_mul(2).saturating_add(WORTH_COMPACTING)
    }

    /// The record at a place; `None` if there is none, or it is damaged.
    pub(crate) fn record(&self, at: u64) -> Option<Lying<'_>> {
        Some(Lying { at, content: self.held.content(at, self.header.length)? })
    }
}

impl Lying<'_> {
    /// What it says; `None` if it is no record.
    pub(crate) fn read(&self) -> Option<Old<'_>> {
        let mut reader = Reader(&self.content);
        let key = Key::read(&mut reader)?;
        let trusted = reader.byte()? == 1;
        let rules = fixed(&mut reader)?;
        let hash = reader.hash()?;
        let attributes = attributes(&mut reader)?;
        let count = usize::try_from(reader.number()?).ok()?;
        // A damaged count may be huge. A line has at least one byte, so no more than the rest is ever reserved.
        let mut lines = Vec::with_capacity(count.min(reader.0.len()));
        for _ in 0..count {
            lines.push(line(&mut reader)?);
        }
        Some(Old {
            record: CacheRecord { key, trusted, rules, hash, attributes, lines },
            at: self.at,
            length: self.content.len() as u64 + BEFORE_RECORD,
        })
    }
}

/// Attributes in their byte form. They become part of a directory's object unchanged, so they are checked here.
fn attributes<'c>(reader: &mut Reader<'c>) -> Option<Cow<'c, [u8]>> {
    let bytes = reader.bytes()?;
    Attributes::of_bytes(bytes).map(|_| Cow::Borrowed(bytes))
}

fn line<'c>(reader: &mut Reader<'c>) -> Option<CacheLine<'c>> {
    let (kind, trusted) = (reader.byte()?, reader.byte()? == 1);
    let name = reader.bytes()?;
    let seen = match kind {
        0 => CacheSeen::File {
            key: Key::read(reader)?,
            hash: reader.hash()?,
            size: reader.number()?,
            attributes: attributes(reader)?,
        },
        1 => CacheSeen::Symlink { key: Key::read(reader)?, target: reader.bytes()? },
        2 => CacheSeen::Directory { hash: reader.hash()?, at: fixed(reader)? },
        3 => CacheSeen::Passed(Reason::of_byte(reader.byte()?)?),
        _ => return None,
    };
    Some(CacheLine { name, seen, trusted })
}

/// A cache that is being made.
#[derive(Debug)]
pub(crate) struct Maker {
    /// Where the first new record will lie.
    start: u64,
    bytes: Vec<u8>,
    /// The bytes of the records that belong to the tree.
    pub(crate) living: u64,
}

impl Maker {
    /// A maker that continues `old`, or begins a new file.
    pub(crate) fn new(old: Option<&Cache>) -> Self {
        let start = old.map_or(HEADER as u64, |old| old.header.length);
        Self { start, bytes: Vec::new(), living: 0 }
    }

    /// Says that a record of the last capture stays.
    pub(crate) fn keep(&mut self, old: &Old<'_>) {
        self.living += old.length;
    }

    /// Adds the record of a directory, after those below it; returns where it lies.
    pub(crate) fn add(&mut self, record: &CacheRecord<'_>) -> u64 {
        let begin = self.bytes.len();
        let out = &mut self.bytes;
        // Room for length and checksum, which are known only when the record is written.
        out.resize(begin + 16, 0);
        record.key.put(out);
        out.push(u8::from(record.trusted));
        out.extend_from_slice(&record.rules.to_le_bytes());
        out.extend_from_slice(&record.hash);
        crate::tree::put_bytes(out, &record.attributes);
        crate::tree::put_number(out, record.lines.len() as u64);
        for line in &record.lines {
            put_line(out, line);
        }
        let content = &out[begin + 16..];
        let (length, sum) = (content.len() as u64, sum_of(content));
        out[begin..begin + 8].copy_from_slice(&length.to_le_bytes());
        out[begin + 8..begin + 16].copy_from_slice(&sum.to_le_bytes());
        self.living += length + BEFORE_RECORD;
        self.start + begin as u64
    }

    /// What becomes of the file; `old` is what it goes on after. The maker says what lives and how long it is.
    pub(crate) fn finish(self, old: Option<&Cache>, header: Header) -> CacheUpdate {
        let length = self.start + self.bytes.len() as u64;
        let header = Header { living: self.living, length, ..header }.bytes();
        match old {
            Some(old) => CacheUpdate::After { before: old.header.bytes(), records: self.bytes, header },
            None => CacheUpdate::Whole([header, self.bytes].concat()),
        }
    }
}

fn put_line(out: &mut Vec<u8>, line: &CacheLine<'_>) {
    let kind = match line.seen {
        CacheSeen::File { .. } => 0,
        CacheSeen::Symlink { .. } => 1,
        CacheSeen::Directory { .. } => 2,
        CacheSeen::Passed(_) => 3,
    };
    out.extend_from_slice(&[kind, u8::from(line.trusted)]);
    crate::tree::put_bytes(out, line.name);
    match &line.seen {
        CacheSeen::File { key, hash, size, attributes } => {
            key.put(out);
            out.extend_from_slice(hash);
            crate::tree::put_number(out, *size);
            crate::tree::put_bytes(out, attributes);
        }
        CacheSeen::Symlink { key, target } => {
            key.put(out);
            crate::tree::put_bytes(out, target);
        }
        CacheSeen::Directory { hash, at } => {
            out.extend_from_slice(hash);
            out.extend_from_slice(&at.to_le_bytes());
        }
        CacheSeen::Passed(reason) => out.push(reason.byte()),
    }
}

#[cfg(fuzzing)]
#[path = "cache/tests/fuzz.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
