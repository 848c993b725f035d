//! The index, read from its file as git would list it: <https://git-scm.com/docs/index-format>. No process is started.
//!
//! What is of any form but the usual one is left to git: an index that is split or sparse, entries that a sparse checkout leaves out,
//! modes that only old versions wrote. Every length, every byte of padding and the order of the entries are looked at, so names of objects
//! that are longer than was thought are no usual form either.

use std::io::{ErrorKind, Read};
use std::path::Path;

use ic_store::regular::open_regular;

/// An entry.
#[derive(Debug)]
pub(super) struct Entry<'f> {
    mode: u32,
    oid: &'f [u8],
    stage: u16,
    path: Vec<u8>,
    /// How long the file was when git saw last that it is what the entry says; 0 where it has to look again.
    size: u32,
    is_assumed: bool,
    is_intended: bool,
}

const STAT: usize = 40;
const ASSUMED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const INTENDED: u16 = 0x2000;
const LONGEST: usize = 0x0fff;

/// Paths that build on one another could take any room: more than so many times the file's length is no usual form.
const MOST_PATHS: usize = 32;

/// The file's bytes; none where there is no file. `None` if it cannot be read.
pub(super) fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(bytes),
        Err(_) => None,
    }
}

/// The entries in a file, in its order; `None` if it is not of the usual form. `hash_length`: how long the names of objects are.
pub(super) fn entries(file: &[u8], hash_length: usize) -> Option<Vec<Entry<'_>>> {
    if file.is_empty() {
        return Some(Vec::new());
    }
    let mut rest = Bytes(file.get(..file.len().checked_sub(hash_length)?)?);
    let (magic, version, count) = (rest.take(4)?, rest.number()?, rest.number()?);
    if magic != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut all: Vec<Entry<'_>> = Vec::new();
    let mut left = file.len().saturating_mul(MOST_PATHS);
    for _ in 0..count {
        let last = all.last();
        let entry = rest.entry(version, hash_length, last.map_or(&[], |last| &last.path))?;
        left = left.checked_sub(entry.path.len())?;
        if last.is_some_and(|last| (&last.path, last.stage) >= (&entry.path, entry.stage)) {
            return None;
        }
        all.push(entry);
    }
    while !rest.0.is_empty() {
        // What begins with a small letter says how the entries are to be read.
        let name = rest.take(4)?;
        let length = usize::try_from(rest.number()?).ok()?;
        rest.take(length).filter(|_| name[0].is_ascii_uppercase())?;
    }
    Some(all)
}

/// What `git ls-files -s -v -z` prints of them.
pub(super) fn listing(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(entries.len() * 96);
    for entry in entries {
        let tag = if entry.stage == 0 { b'H' } else { b'M' };
        text.push(if entry.is_assumed { tag.to_ascii_lowercase() } else { tag });
        text.extend_from_slice(format!(" {:06o} ", entry.mode).as_bytes());
        for byte in entry.oid {
            let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
            text.extend([digit(byte >> 4), digit(byte & 15)]);
        }
        text.extend([b' ', b'0' + u8::try_from(entry.stage).unwrap_or_default(), b'\t']);
        text.extend_from_slice(&entry.path);
        text.push(0);
    }
    text
}

impl Entry<'_> {
    /// How long its file is as far as git knows, where that alone tells that it changed: git takes one of another length for changed, and
    /// looks into it only where it wrote 0.
    pub(super) fn length(&self) -> Option<u32> {
        let is_file = matches!(self.mode, 0o100_644 | 0o100_755);
        let is_compared = is_file && self.stage == 0 && !self.is_assumed && !self.is_intended;
        (is_compared && self.size != 0).then_some(self.size)
    }

    /// Its path, from the top of the work tree.
    pub(super) fn path(&self) -> &Vec<u8> {
        &self.path
    }

    /// Whether it is only intended to be added.
    pub(super) fn is_intended(&self) -> bool {
        self.is_intended
    }

    /// As [`Entry::path`].
    pub(super) fn into_path(self) -> Vec<u8> {
        self.path
    }
}

/// What is not read yet.
struct Bytes<'f>(&'f [u8]);

impl<'f> Bytes<'f> {
    fn take(&mut self, length: usize) -> Option<&'f [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn flags(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// `before`: the path of the entry before, on which this one's may build.
    fn entry(&mut self, version: u32, hash_length: usize, before: &[u8]) -> Option<Entry<'f>> {
        let begun = self.0.len();
        let stat = self.take(STAT)?;
        let number =
            |at: usize| stat[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let (mode, size) = (number(24), number(36));
        let oid = self.take(hash_length)?;
        let flags = self.flags()?;
        // Of the others, one is of a sparse checkout, and none else is known.
        let extended = if flags & EXTENDED == 0 { 0 } else { self.flags().filter(|_| version > 2)? };
        let is_usual =
            extended & !INTENDED == 0 && matches!(mode, 0o100_644 | 0o100_755 | 0o120_000 | 0o160_000);
        let kept = if version == 4 { before.len().checked_sub(self.offset()?)? } else { 0 };
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let path = [&before[..kept], self.take(end)?].concat();
        // Entries end with one NUL, and but for the newest form with as many as make their length a multiple of eight.
        let length = begun - self.0.len();
        let padding = if version == 4 { 1 } else { 8 - length % 8 };
        let is_padded = self.take(padding)?.iter().all(|byte| *byte == 0);
        let said = usize::from(flags) & LONGEST;
        let is_so_long = if said == LONGEST { path.len() >= LONGEST } else { path.len() == said };
        (is_usual && is_padded && is_so_long && !path.is_empty()).then_some(Entry {
            mode,
            oid,
            stage: flags >> 12 & 3,
            path,
            size,
            is_assumed: flags & ASSUMED != 0,
            is_intended: extended & INTENDED != 0,
        })
    }

    /// A number as pack files write offsets: seven bits a byte, each step one more.
    fn offset(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut number = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            number = number.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
        }
        Some(number)
    }
}
