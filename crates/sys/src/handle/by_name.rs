//! A file that is opened to be read, or if that is not allowed, found again by its name.
//!
//! In the second case another file can take the name between the comparison and the change. That file is in the same directory, and
//! no link is followed.

use std::ffi::{CStr, CString};

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, XattrFlags, chownat, fchmod, fchown, fgetxattr, fgetxattr_query,
    flistxattr, flistxattr_query, fremovexattr, fsetxattr, fstat, openat, statat,
};
use rustix::io::{Errno, Result};

use super::{identity, require_same};

/// The owner's right to read.
const READ: u32 = 0o400;

#[derive(Debug)]
pub(super) enum FileByName {
    Open(OwnedFd),
    Closed(Place),
}

/// Where a file was found that may not be read.
#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    name: CString,
    identity: (u64, u64),
}

impl FileByName {
    pub(super) fn open(directory: impl AsFd, name: &[u8]) -> Result<Self> {
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let stat = statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
        let directory = rustix::io::fcntl_dupfd_cloexec(directory, 0)?;
        let place = Place { directory, name, identity: identity(&stat) };
        // To open a pipe or a device would do something to it.
        if !matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory) {
            return Ok(Self::Closed(place));
        }
        match place.open(OFlags::RDONLY | OFlags::CLOEXEC) {
            Err(Errno::ACCESS) => Ok(Self::Closed(place)),
            opened => opened.map(Self::Open),
        }
    }

    pub(super) fn stat(&self) -> Result<Stat> {
        match self {
            Self::Open(file) => fstat(file),
            Self::Closed(place) => place.stat(),
        }
    }

    pub(super) fn set_mode(&self, mode: Mode) -> Result<()> {
        match self {
            Self::Open(file) => fchmod(file, mode),
            Self::Closed(place) => place.set_mode(mode),
        }
    }

    pub(super) fn set_owner(&self, user: Option<Uid>, group: Gid) -> Result<()> {
        match self {
            Self::Open(file) => fchown(file, user, Some(group)),
            Self::Closed(place) => {
                place.stat()?;
                chownat(&place.directory, &*place.name, user, Some(group), AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }

    pub(super) fn reopen(&self, flags: OFlags) -> Result<OwnedFd> {
        match self {
            Self::Open(_) => Err(Errno::INVAL),
            Self::Closed(place) => place.open(flags),
        }
    }

    pub(super) fn attribute_names(&self, names: &mut [u8]) -> Result<usize> {
        self.readable(|file| if names.is_empty() { flistxattr_query(file) } else { flistxattr(file, names) })
    }

    pub(super) fn attribute(&self, name: &CStr, value: &mut [u8]) -> Result<usize> {
        self.readable(|file| if value.is_empty() { fgetxattr_query(file, name) } else { fgetxattr(file, name, value) })
    }

    pub(super) fn set_attribute(&self, name: &CStr, value: Option<&[u8]>) -> Result<()> {
        self.readable(|file| match value {
            None => fremovexattr(file, name),
            Some(value) => fsetxattr(file, name, value, XattrFlags::empty()),
        })
    }

    /// Works with the open file. If it may not be read, its owner gets that right for the moment of its opening.
    fn readable<T>(&self, work: impl FnOnce(&OwnedFd) -> Result<T>) -> Result<T> {
        match self {
            Self::Open(file) => work(file),
            Self::Closed(place) => work(&place.open_up(OFlags::RDONLY | OFlags::CLOEXEC)?),
        }
    }
}

impl Place {
    fn stat(&self) -> Result<Stat> {
        let stat = statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        require_same(self.identity, &stat).map(|()| stat)
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd> {
        // A pipe that took the name must not be waited for.
        let opened = openat(&self.directory, &*self.name, flags | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty())?;
        require_same(self.identity, &fstat(&opened)?).map(|()| opened)
    }

    /// Opens what its owner may not read, by giving him that right for this moment.
    fn open_up(&self, flags: OFlags) -> Result<OwnedFd> {
        let mode = crate::stat::mode(&self.stat()?);
        self.set_mode(crate::stat::permissions(mode | READ))?;
        let opened = self.open(flags);
        // Whatever the opening says, the bits go back.
        self.set_mode(crate::stat::permissions(mode))?;
        opened
    }

    fn set_mode(&self, mode: Mode) -> Result<()> {
        self.stat()?;
        #[allow(unsafe_code, reason = "rustix refuses the flag on Linux, where the C library has a way for it")]
        // SAFETY: the handle is open, and the name is a text that ends with zero and lives as long as the call.
        let changed = unsafe {
            let (directory, name) = (self.directory.as_raw_fd(), self.name.as_ptr());
            libc::fchmodat(directory, name, mode.as_raw_mode(), libc::AT_SYMLINK_NOFOLLOW)
        };
        if changed == 0 {
            return Ok(());
        }
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Opens a directory that its owner may not list, by giving him that right for this moment.
#[cfg(not(linux_ways))]
pub(crate) fn open_up(directory: impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
    match FileByName::open(directory, name)? {
        FileByName::Open(file) => Ok(file),
        // A user who may not change the bits may not open it either.
        FileByName::Closed(place) => place.open_up(flags).map_err(|_| Errno::ACCESS),
    }
}
