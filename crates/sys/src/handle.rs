//! A file or directory that is held without the right to read it, so that its permission bits, its owner and its attributes can be
//! changed, and nothing that takes its name in between is touched.
//!
//! Linux has handles that only name a file (`O_PATH`), and links to them in `/proc`. Without these the file is opened to be read, or if
//! that is not allowed, found again by its name and compared.

#[cfg(linux_ways)]
mod by_link;
pub(crate) mod by_name;

use std::ffi::CStr;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, chmodat, fchmod, fstat};
use rustix::io::{Errno, Result};

use by_name::FileByName;

/// What a name in a directory stands for.
#[derive(Debug)]
pub struct Handle(Way);

#[derive(Debug)]
enum Way {
    #[cfg(linux_ways)]
    Link(by_link::FileByLink),
    Name(FileByName),
}

/// Calls the same method of either way.
macro_rules! each_way {
    ($handle:expr, $file:ident => $call:expr) => {
        match &$handle.0 {
            #[cfg(linux_ways)]
            Way::Link($file) => $call,
            Way::Name($file) => $call,
        }
    };
}

impl Handle {
    /// Holds what `name` stands for in a directory. A link is not followed.
    pub fn open(directory: impl AsFd, name: &[u8]) -> Result<Self> {
        #[cfg(linux_ways)]
        if by_link::are_there() {
            return Ok(Self(Way::Link(by_link::FileByLink::open(directory, name)?)));
        }
        Ok(Self(Way::Name(FileByName::open(directory, name)?)))
    }

    /// Holds a file that is open already, and that may be written or read by that.
    pub fn of_file(file: impl AsFd) -> Result<Self> {
        let file = rustix::io::fcntl_dupfd_cloexec(file, 0)?;
        #[cfg(linux_ways)]
        if by_link::are_there() {
            return Ok(Self(Way::Link(by_link::FileByLink::of(file))));
        }
        Ok(Self(Way::Name(FileByName::Open(file))))
    }

    /// Its stat. Errors of this and of every other method: `ESTALE` if it can only be found by its name, and another file has that now.
    pub fn stat(&self) -> Result<Stat> {
        each_way!(self, file => file.stat())
    }

    /// Gives it these permission bits.
    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        each_way!(self, file => file.set_mode(mode))
    }

    /// Gives it an owner, or leaves that one, and a group.
    pub fn set_owner(&self, user: Option<Uid>, group: Gid) -> Result<()> {
        each_way!(self, file => file.set_owner(user, group))
    }

    /// Opens it by these flags. Errors: also `EINVAL` if it was opened before it was held.
    pub fn reopen(&self, flags: OFlags) -> Result<OwnedFd> {
        each_way!(self, file => file.reopen(flags))
    }

    /// The names of its extended attributes, each with a zero byte after it. Returns their length, and only that if `names` is empty.
    pub fn attribute_names(&self, names: &mut [u8]) -> Result<usize> {
        each_way!(self, file => file.attribute_names(names))
    }

    /// The value of an extended attribute. Returns its length, and only that if `value` is empty.
    pub fn attribute(&self, name: &CStr, value: &mut [u8]) -> Result<usize> {
        each_way!(self, file => file.attribute(name, value))
    }

    /// Gives it an extended attribute, or takes that away.
    pub fn set_attribute(&self, name: &CStr, value: Option<&[u8]>) -> Result<()> {
        each_way!(self, file => file.set_attribute(name, value))
    }
}

/// Gives a directory that is open, or held by [`crate::descent::open`], these permission bits.
pub fn set_directory_mode(directory: &OwnedFd, mode: Mode) -> Result<()> {
    #[cfg(linux_ways)]
    if by_link::are_there() {
        return by_link::set_mode(directory, mode);
    }
    // A handle that only names the directory cannot be used for this, but for a way to it.
    fchmod(directory, mode).or_else(|_| chmodat(directory, c".", mode, rustix::fs::AtFlags::empty()))
}

/// Whether two handles stand for the same file.
pub fn is_same(one: impl AsFd, other: impl AsFd) -> Result<bool> {
    Ok(identity(&fstat(one)?) == identity(&fstat(other)?))
}

fn identity(stat: &Stat) -> (u64, u64) {
    (crate::stat::device(stat), stat.st_ino)
}

/// As the system says that a file is another one by now.
fn require_same(expected: (u64, u64), found: &Stat) -> Result<()> {
    if identity(found) == expected { Ok(()) } else { Err(Errno::STALE) }
}

#[cfg(test)]
mod tests;
