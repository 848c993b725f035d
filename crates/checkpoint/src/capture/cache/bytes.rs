//! How the numbers and records of a stat cache lie in its file.

use crate::tree::Reader;

/// A record's length and checksum.
pub(super) const BEFORE_RECORD: u64 = 16;

/// A number of eight bytes.
pub(super) fn fixed(reader: &mut Reader<'_>) -> Option<u64> {
    Some(u64::from_le_bytes(reader.take(8)?.try_into().ok()?))
}
