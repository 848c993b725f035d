//! What lasts only as long as an operation: a directory that is opened up, and a temporary file.
//!
//! Both are undone when they go out of scope, also when a reader of content panics.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, chmod, fchmod, fstat, openat, unlinkat};
use rustix::io::{Errno, Result};

/// A directory that its owner may use as it must be used.
pub(super) struct OpenedUp<'d> {
    directory: &'d OwnedFd,
    /// What it gets back.
    closed: Option<u32>,
}

impl<'d> OpenedUp<'d> {
    /// Gives the owner of a directory these bits, if they are missing.
    pub(super) fn new(directory: &'d OwnedFd, needed: u32) -> Result<Self> {
        let mode = fstat(directory)?.st_mode & 0o7777;
        // In another user's directory this fails, and the work itself then says what is not allowed.
        let is_opened = mode & needed != needed && set_directory_mode(directory, mode | needed).is_ok();
        Ok(Self { directory, closed: is_opened.then_some(mode) })
    }

    /// Closes it again, and says if that failed.
    pub(super) fn close(mut self) -> Result<()> {
        // It is taken out, so that the drop at the end of this function does not close it a second time.
        self.closed.take().map_or(Ok(()), |mode| set_directory_mode(self.directory, mode))
    }
}

impl Drop for OpenedUp<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.closed {
            // Only a panic leads here without `close`: there is no caller to tell.
            let _ = set_directory_mode(self.directory, mode);
        }
    }
}

fn set_directory_mode(directory: &OwnedFd, mode: u32) -> Result<()> {
    set_mode(directory, directory, b".", Mode::from_raw_mode(mode))
}

/// Gives what `handle` stands for these permission bits. A handle is not enough to change them, but the kernel's own link
/// to it is, which leads nowhere else and needs no right to read. Without `/proc` it is opened again by its name.
pub(super) fn set_mode(handle: &OwnedFd, directory: &OwnedFd, name: &[u8], mode: Mode) -> Result<()> {
    match chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode) {
        Err(Errno::NOENT) => {}
        result => return result,
    }
    // A pipe that took the name must not be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    // The name may stand for another file by now.
    if is_same(&file, handle)? { fchmod(&file, mode) } else { Err(Errno::STALE) }
}

/// Whether two handles stand for the same file.
pub(super) fn is_same(one: impl AsFd, other: impl AsFd) -> Result<bool> {
    let (one, other) = (fstat(one)?, fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// A file under a temporary name, removed unless it is kept.
pub(super) struct Temporary<'d> {
    directory: &'d OwnedFd,
    name: &'d [u8],
    is_kept: bool,
}

impl<'d> Temporary<'d> {
    /// Takes charge of a file that was just made.
    pub(super) fn new(directory: &'d OwnedFd, name: &'d [u8]) -> Self {
        Self { directory, name, is_kept: false }
    }

    /// It has its own name now.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = unlinkat(self.directory, self.name, AtFlags::empty());
        }
    }
}
