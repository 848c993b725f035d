//! What unfinished captures have read: their caller killed them, or their limit ended them.
//!
//! A stat cache is written by a capture that is whole. Until then each file that was read, and may be trusted, is written down here by what
//! tells its state from another, with the hash of its content: the next capture does not read it again. That the store has the content is
//! asked when a line is used, so it does not matter which of the two reached the disk first.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ic_ledger::events::Hash;
use ic_ledger::private;

use super::cache::{Key, sum_of};
use crate::attributes::Attributes;
use crate::tree::{Reader, put_bytes, put_number};

/// The ending of the file beside the stat cache.
pub(super) const ENDING: &str = "unfinished";

/// What each part of the file begins with. A process that is killed in the middle of a write leaves half a part: the next whole one is
/// found by this.
const MARK: [u8; 8] = *b"\xffic\x00read";

/// The interval in which the files that were read are written down: if this capture is killed, at most so much work is repeated.
const EVERY: Duration = Duration::from_millis(250);

/// What is known of a file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) hash: Hash,
    pub(super) size: u64,
    /// In their byte form.
    pub(super) attributes: Vec<u8>,
}

/// What captures of a root have read that did not end, and what this one reads.
pub(super) struct PartialCapture {
    path: PathBuf,
    /// A number for the owner of the root: attributes are kept relative to that owner, so they do not hold for another one.
    owner: u64,
    known: HashMap<Key, Read>,
    /// What is to be written, and since when; `None`: this capture writes nothing, because nothing limits it.
    waiting: Option<Mutex<Waiting>>,
}

struct Waiting {
    bytes: Vec<u8>,
    since: Instant,
}

impl PartialCapture {
    /// `keeps`: whether this capture may be cut off, so that what it reads is written down.
    pub(super) fn open(path: PathBuf, owner: u64, keeps: bool) -> Self {
        // Each capture reads it, even one without a limit: it may follow one that was cut off.
        let known = std::fs::read(&path).map_or_else(|_| HashMap::new(), |bytes| read(&bytes, owner));
        let waiting = || Mutex::new(Waiting { bytes: Vec::new(), since: Instant::now() });
        Self { path, owner, known, waiting: keeps.then(waiting) }
    }

    /// What is known of a file in this state.
    pub(super) fn find(&self, key: &Key) -> Option<&Read> {
        self.known.get(key)
    }

    /// Writes down what was read of a file that may be trusted.
    pub(super) fn note(&self, key: &Key, read: &Read) {
        let Some(waiting) = &self.waiting else { return };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        key.put(&mut waiting.bytes);
        waiting.bytes.extend_from_slice(&read.hash);
        put_number(&mut waiting.bytes, read.size);
        put_bytes(&mut waiting.bytes, &read.attributes);
        if waiting.since.elapsed() >= EVERY {
            self.write(&mut waiting);
        }
    }

    /// Adds a part to the file. What cannot be written is read again by the next capture.
    fn write(&self, waiting: &mut Waiting) {
        let bytes = std::mem::take(&mut waiting.bytes);
        waiting.since = Instant::now();
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len() as u64;
        let numbers = [self.owner, length, sum_of(&bytes)].map(u64::to_le_bytes);
        let part = [&MARK[..], numbers.as_flattened(), &bytes].concat();
        // One write at the end: parts of captures that run at once do not mix.
        if let Ok(mut file) = private::open(&self.path, File::options().create(true).append(true)) {
            let _ = file.write_all(&part);
        }
    }
}

impl Drop for PartialCapture {
    fn drop(&mut self) {
        // A capture that reaches its limit comes here, too: the next one uses what it has read.
        if let Some(waiting) = self.waiting.take() {
            self.write(&mut waiting.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Forgets what is written down: the stat cache has it.
pub(super) fn forget(path: &Path) {
    // Most captures have none. A file that stays is harmless: each line counts only for a file whose stat is still the same.
    let _ = std::fs::remove_file(path);
}

fn read(bytes: &[u8], owner: u64) -> HashMap<Key, Read> {
    let mut known = HashMap::new();
    let mut rest = bytes;
    // A part that was cut off has a wrong length or checksum, and a part may be of another owner. Then the search continues after its mark.
    while let Some(at) = rest.windows(MARK.len()).position(|found| found == MARK) {
        rest = &rest[at + MARK.len()..];
        if let Some((part, after)) = part(rest, owner) {
            let mut reader = Reader(part);
            while let Some((key, read)) = line(&mut reader) {
                known.insert(key, read);
            }
            rest = after;
        }
    }
    known
}

/// A whole part of this owner, and what follows it.
fn part(bytes: &[u8], owner: u64) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(bytes);
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let [of, length, sum] = [number(reader.take(8)?)?, number(reader.take(8)?)?, number(reader.take(8)?)?];
    let part = reader.take(usize::try_from(length).ok()?)?;
    (of == owner && sum_of(part) == sum).then_some((part, reader.0))
}

fn line(reader: &mut Reader<'_>) -> Option<(Key, Read)> {
    let key = Key::read(reader)?;
    let (hash, size, attributes) = (reader.hash()?, reader.number()?, reader.bytes()?);
    // Checked, because they become part of a directory's object unchanged.
    Attributes::of_bytes(attributes)?;
    Some((key, Read { hash, size, attributes: attributes.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ino: u64) -> Key {
        Key { dev: 1, ino, size: 3, mtime: 5, ctime: 7, mode: 0o100_644 }
    }

    fn one(ino: u64) -> Read {
        Read { hash: [u8::try_from(ino).unwrap(); 32], size: 3, attributes: Vec::new() }
    }

    fn noted(path: &Path, inos: std::ops::Range<u64>) {
        let unfinished = PartialCapture::open(path.to_owned(), 1, true);
        inos.for_each(|ino| unfinished.note(&key(ino), &one(ino)));
    }

    #[test]
    fn what_was_noted_is_known_to_the_next_and_half_a_part_hides_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.unfinished");
        noted(&path, 1..4);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..whole.len() - 1]].concat()).unwrap();
        noted(&path, 4..6);
        let known = PartialCapture::open(path.clone(), 1, false);
        for ino in 1..6 {
            assert_eq!(known.find(&key(ino)), Some(&one(ino)), "{ino}");
        }
        assert_eq!(known.find(&Key { mtime: 6, ..key(1) }), None, "it was changed since");
        known.note(&key(9), &one(9));
        drop(known);
        assert_eq!(PartialCapture::open(path.clone(), 1, false).find(&key(9)), None, "nothing limits it");
        assert_eq!(PartialCapture::open(path.clone(), 2, false).find(&key(1)), None, "the root has another owner now");
        forget(&path);
        assert_eq!(PartialCapture::open(path, 1, false).find(&key(1)), None);
    }
}
