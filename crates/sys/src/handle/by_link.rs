//! Handles that only name a file, and the kernel's own links to them: a link leads nowhere else, and needs no right to read.

use std::ffi::CStr;
use std::sync::OnceLock;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Stat, Uid, XattrFlags, chmod, chownat, fstat, getxattr, getxattr_query, listxattr,
    listxattr_query, open, openat, removexattr, setxattr,
};
use rustix::io::Result;

#[derive(Debug)]
pub(super) struct FileByLink(OwnedFd);

/// Whether there are such links: a container need not have `/proc`.
pub(super) fn are_there() -> bool {
    static ARE_THERE: OnceLock<bool> = OnceLock::new();
    *ARE_THERE.get_or_init(|| std::path::Path::new("/proc/self/fd").exists())
}

pub(super) fn set_mode(handle: &OwnedFd, mode: Mode) -> Result<()> {
    chmod(link_to(handle), mode)
}

fn link_to(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

impl FileByLink {
    pub(super) fn open(directory: impl AsFd, name: &[u8]) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(directory, name, flags, Mode::empty()).map(Self)
    }

    pub(super) fn of(file: OwnedFd) -> Self {
        Self(file)
    }

    pub(super) fn stat(&self) -> Result<Stat> {
        fstat(&self.0)
    }

    pub(super) fn set_mode(&self, mode: Mode) -> Result<()> {
        set_mode(&self.0, mode)
    }

    pub(super) fn set_owner(&self, user: Option<Uid>, group: Gid) -> Result<()> {
        chownat(&self.0, c"", user, Some(group), AtFlags::EMPTY_PATH)
    }

    pub(super) fn reopen(&self, flags: OFlags) -> Result<OwnedFd> {
        open(link_to(&self.0), flags, Mode::empty())
    }

    pub(super) fn attribute_names(&self, names: &mut [u8]) -> Result<usize> {
        let link = link_to(&self.0);
        if names.is_empty() { listxattr_query(link) } else { listxattr(link, names) }
    }

    pub(super) fn attribute(&self, name: &CStr, value: &mut [u8]) -> Result<usize> {
        let link = link_to(&self.0);
        if value.is_empty() { getxattr_query(link, name) } else { getxattr(link, name, value) }
    }

    pub(super) fn set_attribute(&self, name: &CStr, value: Option<&[u8]>) -> Result<()> {
        let link = link_to(&self.0);
        value.map_or_else(|| removexattr(&link, name), |value| setxattr(&link, name, value, XattrFlags::empty()))
    }
}
