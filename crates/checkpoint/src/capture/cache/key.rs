//! What tells one state of a file from another without reading it.

use ic_sys::stat::{content_changed, device, inode_changed, mode, names};
use rustix::fs::{FileType, Stat};

use super::storage::fixed;
use crate::tree::Reader;

/// How long something must have been left alone to be trusted, in nanoseconds.
pub(crate) const SETTLED: i64 = 2_000_000_000;

/// Marks in a mode, where the system has no bits, that the file has more than one name. So the mark takes no space in the cache.
const LINKED: u32 = 1 << 31;

fn is_linked(stat: &Stat) -> bool {
    // The link count of a directory counts the directories in it. It has one name, whatever the count is.
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && names(stat) > 1
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) mode: u32,
}

impl Key {
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanos = |(seconds, nanos): (i64, u64)| {
            seconds.saturating_mul(1_000_000_000).saturating_add(i64::try_from(nanos).unwrap_or(0))
        };
        Self {
            dev: device(stat),
            ino: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: nanos(content_changed(stat)),
            ctime: nanos(inode_changed(stat)),
            mode: if is_linked(stat) { mode(stat) | LINKED } else { mode(stat) },
        }
    }

    /// Whether it was left alone for long enough at the moment `now`, in nanoseconds.
    pub(crate) fn is_settled(&self, now: i64) -> bool {
        !self.is_since(now.saturating_sub(SETTLED))
    }

    /// Whether it was touched at a moment, or later.
    pub(crate) fn is_since(&self, moment: i64) -> bool {
        // A program can set mtime to any moment, but cannot set ctime.
        self.mtime.max(self.ctime) >= moment
    }

    /// Whether it is a file that has more than one name.
    pub(crate) fn is_linked(&self) -> bool {
        self.mode & LINKED != 0
    }

    /// The permission bits, with setuid, setgid and sticky.
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        for number in [self.dev, self.ino, self.size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.mtime.to_le_bytes());
        out.extend_from_slice(&self.ctime.to_le_bytes());
        out.extend_from_slice(&self.mode.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
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
