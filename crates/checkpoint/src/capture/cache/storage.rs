//! Where the records of a stat cache are read from, and how damage is seen.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::buffer::spare_capacity;
use rustix::io::pread;

use crate::tree::Reader;

/// A record's length and checksum.
pub(super) const BEFORE_RECORD: u64 = 16;

/// A number of eight bytes.
pub(super) fn fixed(reader: &mut Reader<'_>) -> Option<u64> {
    Some(u64::from_le_bytes(reader.take(8)?.try_into().ok()?))
}

/// A cache of no more bytes is read whole: some 5,000 files.
pub(super) const SMALL: u64 = 512 << 10;

/// Where a cache is read from. The bytes that its header counts never change: a file is continued or replaced.
#[derive(Debug)]
pub(super) enum CacheBytes {
    Whole(Vec<u8>),
    /// Each thread reads the records that it needs: if one thread read a large file whole, the others would wait for it.
    In(File),
}

impl CacheBytes {
    /// The first `length` bytes of a file.
    pub(super) fn open(file: File, length: u64) -> Option<Self> {
        if length > SMALL {
            return Some(Self::In(file));
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        Some(Self::Whole(bytes))
    }

    /// The content of the record at a place before `end`; `None` if there is none, or it is damaged.
    pub(super) fn content(&self, at: u64, end: u64) -> Option<Cow<'_, [u8]>> {
        let bytes = match self {
            Self::Whole(bytes) => bytes,
            Self::In(file) => return content_in(file, at, end).map(Cow::Owned),
        };
        let mut reader = Reader(bytes.get(usize::try_from(at).ok()?..)?);
        let (length, sum) = (fixed(&mut reader)?, fixed(&mut reader)?);
        let content = reader.take(usize::try_from(length).ok()?)?;
        (sum_of(content) == sum).then_some(Cow::Borrowed(content))
    }
}

/// The content of the record at a place of a file that counts as far as `end`.
fn content_in(file: &File, at: u64, end: u64) -> Option<Vec<u8>> {
    let mut before = [0; 16];
    file.read_exact_at(&mut before, at).ok()?;
    let mut reader = Reader(&before);
    let (length, sum) = (fixed(&mut reader)?, fixed(&mut reader)?);
    let begin = at + BEFORE_RECORD;
    // A damaged length must not reserve more memory than the file has.
    if length > end.checked_sub(begin)? {
        return None;
    }
    let length = usize::try_from(length).ok()?;
    let mut content = Vec::with_capacity(length);
    while content.len() < length {
        let next = begin + content.len() as u64;
        if pread(file, spare_capacity(&mut content), next).ok()? == 0 {
            return None;
        }
    }
    content.truncate(length);
    (sum_of(&content) == sum).then_some(content)
}

/// A checksum that detects bytes torn by a loss of power. It is made for speed and not against an attacker: only this program writes the
/// file.
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    const ODD: [u64; 4] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0xD6E8_FEB8_6659_FD93];
    // There are four sums side by side: a multiplication waits only for the one before it in its own sum.
    let mut sums = ODD;
    let mix = |sum: &mut u64, word: [u8; 8], odd: u64| {
        *sum = (*sum ^ u64::from_le_bytes(word)).wrapping_mul(odd);
        *sum ^= *sum >> 29;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let (four, left) = words.as_chunks::<4>();
    for words in four {
        for (sum, (word, odd)) in sums.iter_mut().zip(words.iter().zip(ODD)) {
            mix(sum, *word, odd);
        }
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // The sum includes the length, so zeros at the end of the last word change it.
    let mut whole = bytes.len() as u64;
    let words = left.iter().copied().chain([last]).chain(sums.map(u64::to_le_bytes));
    words.for_each(|word| mix(&mut whole, word, ODD[0]));
    whole
}
