//! Files of rules as bytes, and numbers that stand for bytes.

use std::fs::File;
use std::io::Read;

use ic_ledger::events::Hash;

use crate::objects::hash_of;

/// A number that is equal for equal bytes.
pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    number_in(&hash_of(bytes))
}

/// A number for what has this hash.
pub(crate) fn number_in(hash: &Hash) -> u64 {
    u64::from_le_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
}

/// The rules in an open file; none if it is no regular one, or longer than git reads.
pub(crate) fn rules_in(file: File) -> Option<Vec<u8>> {
    // As git does: it takes a longer file for a mistake, and ignores all its lines.
    const LONGEST: u64 = 100 << 20;
    let mut text = Vec::new();
    file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= LONGEST)?;
    // The file may grow after its length was asked for.
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text)
}
