//! The index, read from its file as git would list it. No process is started.
//!
//! What is of any form but the usual one is left to git: an index that is split or sparse, entries that a sparse checkout leaves out,
//! modes that only old versions wrote. Every length, every byte of padding and the order of the entries are looked at, so names of objects
//! that are longer than was thought are no usual form either.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use ic_ledger::regular_file::open_regular;
use ic_ledger::{IndexEntries, IndexEntry, LONGEST_GIT_HASH as LONGEST_HASH};

/// Paths that build on one another (version 4) could take any amount of memory. An index whose paths together are longer than this many
/// times its file is left to git.
const MOST_PATHS: u64 = 32;

/// The whole file is not held: its memory would cost more time than the reading.
const BUFFER: usize = 64 * 1024;

/// Visits every entry of an index, in the order of the file; none where there is no file. `None` if it cannot be read, or is not of the
/// usual form: what was visited by then counts for nothing. `hash_length`: how long the names of objects are.
pub(super) fn each(path: &Path, hash_length: usize, visit: impl FnMut(&IndexEntry)) -> Option<()> {
    match open_regular(path).and_then(|file| Ok((file.metadata()?.len(), file))) {
        Ok((length, file)) => each_in(BufReader::with_capacity(BUFFER, file), length, hash_length, visit),
        // Before the first `git add` there is no file.
        Err(error) => (error.kind() == ErrorKind::NotFound).then_some(()),
    }
}

/// As [`each`], of a file that is open, and of this length.
pub(super) fn each_in(
    file: impl BufRead,
    length: u64,
    hash_length: usize,
    mut visit: impl FnMut(&IndexEntry),
) -> Option<()> {
    if length == 0 {
        return Some(());
    }
    // The file ends with a checksum, which is as long as the name of an object.
    let body = file.take(length.checked_sub(u64::try_from(hash_length).ok()?)?);
    let mut reader = IndexEntries::new(body, hash_length).ok()?;
    let mut last: Option<(Vec<u8>, u8)> = None;
    let mut left = length.saturating_mul(MOST_PATHS);
    while let Some(entry) = reader.next_entry().ok()? {
        left = left.checked_sub(u64::try_from(entry.path.len()).ok()?)?;
        let is_sorted = last.as_ref().is_none_or(|(path, stage)| (path, *stage) < (&entry.path, entry.stage()));
        if !is_sorted || !is_usual(entry) {
            return None;
        }
        let (path, stage) = last.get_or_insert_default();
        path.clone_from(&entry.path);
        *stage = entry.stage();
        visit(entry);
    }
    let (mut rest, mut extensions) = (reader.into_rest(), Vec::new());
    rest.read_to_end(&mut extensions).ok()?;
    // A file that is shorter than it was said to be was written to while it was read.
    (rest.limit() == 0 && are_usual_extensions(&extensions)?).then_some(())
}

fn is_usual(entry: &IndexEntry) -> bool {
    mode(entry).is_some() && !entry.says_more() && !entry.path.is_empty()
}

/// An entry's mode as git writes it; `None` for one that only old versions wrote.
fn mode(entry: &IndexEntry) -> Option<&'static [u8]> {
    Some(match entry.mode {
        0o100_644 => b"100644",
        0o100_755 => b"100755",
        0o120_000 => b"120000",
        0o160_000 => b"160000",
        _ => return None,
    })
}

/// What follows the entries; `None` if it is cut off. What begins with a small letter says how the entries are to be read.
fn are_usual_extensions(mut rest: &[u8]) -> Option<bool> {
    while !rest.is_empty() {
        // Four letters, a length in four bytes, and as many bytes of content.
        let (head, behind) = rest.split_at_checked(8)?;
        let length = u32::from_be_bytes(head[4..].try_into().ok()?);
        if !head[0].is_ascii_uppercase() {
            return Some(false);
        }
        rest = behind.get(usize::try_from(length).ok()?..)?;
    }
    Some(true)
}

/// What `git ls-files -s -v -z` prints of them.
pub(super) fn listing(entries: &[IndexEntry]) -> Vec<u8> {
    let mut text = Vec::with_capacity(entries.len() * 96);
    for entry in entries {
        list(entry, &mut text);
    }
    text
}

/// Adds what `git ls-files -s -v -z` prints of an entry.
pub(super) fn list(entry: &IndexEntry, text: &mut Vec<u8>) {
    let tag = if entry.stage() == 0 { b'H' } else { b'M' };
    text.extend_from_slice(&[if entry.is_assumed() { tag.to_ascii_lowercase() } else { tag }, b' ']);
    text.extend_from_slice(mode(entry).unwrap_or_default());
    text.push(b' ');
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    // At once, not byte by byte: the room is looked at once an entry.
    let mut hex = [0; 2 * LONGEST_HASH];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(entry.oid()) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    text.extend_from_slice(&hex[..2 * entry.oid().len()]);
    text.extend_from_slice(&[b' ', b'0' + entry.stage(), b'\t']);
    text.extend_from_slice(&entry.path);
    text.push(0);
}

/// The length of an entry's file that git recorded, in bytes. A file of another length has changed. `None`: the length does not tell,
/// because git wrote 0 and looks into the file.
pub(super) fn length(entry: &IndexEntry) -> Option<u32> {
    let is_file = matches!(entry.mode, 0o100_644 | 0o100_755);
    let is_compared = is_file && entry.stage() == 0 && !entry.is_assumed() && !entry.is_intended();
    (is_compared && entry.size != 0).then_some(entry.size)
}
