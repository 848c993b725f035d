//! Files and directories that their owner has closed to himself (`chmod 000`): opened for a moment, to be read.
//!
//! Only the owner's own bits are added, and they go again as soon as the file is open; those of a directory, when all in it was looked at.
//! A process that is killed in that time leaves it open to its owner. For others nothing opens.

use ic_sys::handle::Handle;
use ic_sys::stat::permissions;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, Result};
use rustix::process::geteuid;

const READ: u32 = 0o400;
/// To list the names in a directory, and to look at what they name.
const LOOK: u32 = 0o500;
const BITS: u32 = 0o7777;

/// A file or directory that was closed, and is open while this lives.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    handle: Handle,
    mode: u32,
}

impl OpenedFile {
    /// Its own permission bits, which it gets again.
    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }

    /// Opens what `name` stands for in a directory, if the caller owns it and lacks these bits; `None`: the bits do not close it.
    fn new(directory: impl AsFd, name: &[u8], kind: FileType, needed: u32) -> Result<Option<Self>> {
        let handle = Handle::open(directory, name)?;
        let stat = handle.stat()?;
        let mode = ic_sys::stat::mode(&stat) & BITS;
        // Only the owner may change the bits.
        let is_own = stat.st_uid == geteuid().as_raw() && FileType::from_raw_mode(stat.st_mode) == kind;
        if !is_own || mode & needed == needed {
            return Ok(None);
        }
        let opened = Self { handle, mode };
        // `opened` exists before the bits change: whatever fails from here on, they are set to what they were.
        opened.set(mode | needed)?;
        Ok(Some(opened))
    }

    fn set(&self, mode: u32) -> Result<()> {
        self.handle.set_mode(permissions(mode))
    }
}

impl Drop for OpenedFile {
    fn drop(&mut self) {
        // A failure leaves it open to its owner alone, and there is no caller here to tell it to.
        let _ = self.set(self.mode);
    }
}

/// Opens a file to read it though its owner, the caller, may not. Errors: `EACCES` where that does not help.
pub(crate) fn open_file(directory: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    let opened = OpenedFile::new(directory, name, FileType::RegularFile, READ)?.ok_or(Errno::ACCESS)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // The bits are set back when `opened` is dropped, at the end of this function. The file stays readable: it is open by then.
    opened.handle.reopen(flags)
}

/// Opens a directory to look into it, though its owner, the caller, may not; `None` where its bits do not close it.
pub(crate) fn open_directory(directory: impl AsFd, name: &[u8]) -> Result<Option<(OwnedFd, OpenedFile)>> {
    // Everything is open to root.
    if geteuid().is_root() {
        return Ok(None);
    }
    // The caller keeps the guard: unlike a file, a directory is asked for the right again with each name in it.
    let Some(opened) = OpenedFile::new(directory, name, FileType::Directory, LOOK)? else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = opened.handle.reopen(flags)?;
    Ok(Some((fd, opened)))
}
