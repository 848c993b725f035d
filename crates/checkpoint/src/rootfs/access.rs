//! What lasts only as long as an operation: a directory that is opened up, and a temporary file.
//!
//! Both are undone when they go out of scope, also when a reader of content panics.

use ic_sys::handle::set_directory_mode;
use ic_sys::stat::{mode, permissions};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, fstat, unlinkat};
use rustix::io::Result;

/// A directory that its owner may use as it must be used.
pub(super) struct OpenedUp<'d> {
    directory: &'d OwnedFd,
    /// What it gets back.
    closed: Option<u32>,
}

impl<'d> OpenedUp<'d> {
    /// Gives the owner of a directory these bits, if they are missing.
    pub(super) fn new(directory: &'d OwnedFd, needed: u32) -> Result<Self> {
        let mode = mode(&fstat(directory)?) & 0o7777;
        // In another user's directory this fails, and the work itself then says what is not allowed.
        let is_opened = mode & needed != needed && set_directory_mode(directory, permissions(mode | needed)).is_ok();
        Ok(Self { directory, closed: is_opened.then_some(mode) })
    }

    /// Closes it again, and says if that failed.
    pub(super) fn close(mut self) -> Result<()> {
        // It is taken out, so that the drop at the end of this function does not close it a second time.
        self.closed.take().map_or(Ok(()), |mode| set_directory_mode(self.directory, permissions(mode)))
    }
}

impl Drop for OpenedUp<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.closed {
            // Only a panic leads here without `close`: there is no caller to tell.
            let _ = set_directory_mode(self.directory, permissions(mode));
        }
    }
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
