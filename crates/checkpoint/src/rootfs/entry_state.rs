//! What stands at a path.

use std::io;

use ic_sys::stat::{content_changed, device, inode_changed, mode, names};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, readlinkat, statat};
use rustix::io::Errno;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The number of the device that it lies on.
    pub dev: u64,
    /// The number of its inode on that device.
    pub ino: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Its permission bits (07777).
    pub mode: u32,
    /// How many names it has.
    pub names: u64,
    /// When its content changed: seconds and nanoseconds.
    pub mtime: (i64, u64),
    /// When its inode changed.
    pub ctime: (i64, u64),
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// Nothing, or a directory above it is none.
    Absent,
    /// A regular file, which may have other names.
    File(Stat),
    /// A symbolic link, and where it points.
    Symlink(Stat, Vec<u8>),
    /// A directory, whatever is in it.
    Directory(Stat),
    /// A socket, fifo or device.
    Special,
}

pub(super) fn found(directory: &OwnedFd, name: &[u8]) -> io::Result<EntryState> {
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(EntryState::Absent),
        Err(e) => return Err(e.into()),
    };
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryState::File(stat_of(&stat)),
        FileType::Directory => EntryState::Directory(stat_of(&stat)),
        FileType::Symlink => {
            let target = readlinkat(directory, name, Vec::new())?;
            EntryState::Symlink(stat_of(&stat), target.into_bytes())
        }
        _ => EntryState::Special,
    })
}

pub(super) fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        dev: device(stat),
        ino: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: mode(stat) & 0o7777,
        names: names(stat),
        mtime: content_changed(stat),
        ctime: inode_changed(stat),
    }
}
