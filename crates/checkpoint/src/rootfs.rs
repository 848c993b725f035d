//! The only way in which a restore writes into a working tree: nothing outside of the root is ever touched.
//!
//! Every operation starts at a handle of the root and walks each directory on the way without following links (`way`), so no
//! link in the tree and no path in a database leads elsewhere. Nothing is kept open between operations: a directory
//! that is moved away during a write is not written into at its new place. Writing may take long, so the way
//! is walked once more just before it gets its name. That costs some microseconds a level, little beside the write itself.
//!
//! A directory is held by a handle that only names it, which needs no right to read it.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Mode, OFlags, fchmod, fstat, linkat, mkdirat, open, openat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use ic_sys::handle::{Handle, is_same};
use ic_sys::stat::permissions;

use self::access::{OpenedUp, Temporary};
use self::entry_state::{found, stat_of};
use crate::attributes::{Attributes, FileOwner};
use crate::names::is_like_git;
use crate::unreadable_files;

mod access;
mod entry_state;
mod ownership;
mod remove;
#[cfg(test)]
pub(crate) mod tests;

pub use self::entry_state::{EntryState, Stat};
pub use self::ownership::FileAttributes;

/// Whether a path is still as it must be, just before it changes.
pub type Still<'s> = &'s dyn Fn(&EntryState) -> bool;

/// An open root, and the handle from which every path is walked.
#[derive(Debug)]
pub struct RootDir {
    fd: OwnedFd,
    path: PathBuf,
    /// Who the root belongs to.
    owner: FileOwner,
}

/// What the owner of a directory must be allowed to do there: to find a name, to make one, to read them all.
const FIND: u32 = 0o100;
pub(crate) const MAKE: u32 = 0o300;
const LIST: u32 = 0o700;

/// What the owner of a file must be allowed to do to set its attributes.
const WRITE: u32 = 0o200;

/// Refuses paths that no checkpoint can have: they would lead out of the tree, or into git's own files.
///
/// Errors: `corrupt`.
pub fn check_path(path: &[u8]) -> Result<()> {
    let is_possible = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !is_like_git(part) && part.len() <= 255;
    if !path.contains(&0) && path.split(|b| *b == b'/').all(is_possible) {
        return Ok(());
    }
    Err(impossible(path))
}

fn impossible(path: &[u8]) -> Diagnosis {
    Diagnosis::new(
        Code::Corrupt,
        format!("The checkpoint names an impossible path: {:?}.", String::from_utf8_lossy(path)),
    )
    .hint("see: ic checkpoint verify --read-data")
}

impl RootDir {
    /// Opens the directory `path`.
    pub fn open(path: &Path) -> Result<Self> {
        // The root itself may be named through a link. Below it, no link is followed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let doing = || format!("opening {}", path.display());
        let fd = open(path, flags, Mode::empty()).map_err(io::Error::from).while_doing(doing)?;
        let stat = fstat(&fd).map_err(io::Error::from).while_doing(doing)?;
        Ok(Self { fd, path: path.to_owned(), owner: FileOwner::of(&stat) })
    }

    /// Waits until everything that was written is on the disk.
    pub fn sync(&self) -> Result<()> {
        // One call for all: a flush of each file would be as many waits for the disk.
        ic_sys::file_systems::flush(&self.fd)
            .map_err(io::Error::from)
            .while_doing(|| format!("flushing {}", self.path.display()))
    }

    /// What stands at a path; the empty path is the root itself.
    pub fn state(&self, path: &[u8]) -> io::Result<EntryState> {
        if path.is_empty() {
            return Ok(EntryState::Directory(stat_of(&fstat(&self.fd)?)));
        }
        check_path(path).map_err(io::Error::other)?;
        let (parent, name) = split(path);
        match self.directory(parent) {
            Ok(directory) => found(&directory, name),
            // A file or a link where a directory should be: below the root there is no such path.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(EntryState::Absent),
            Err(e) => Err(e.into()),
        }
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &[u8]) -> io::Result<File> {
        self.open_regular(path, OFlags::RDONLY)
    }

    /// Opens a regular file to lock it: nothing is read or written. A lock against readers needs the right to write.
    pub fn open_to_lock(&self, path: &[u8], against_readers: bool) -> io::Result<File> {
        self.open_regular(path, if against_readers { OFlags::RDWR } else { OFlags::RDONLY })
    }

    fn open_regular(&self, path: &[u8], access: OFlags) -> io::Result<File> {
        check_path(path).map_err(io::Error::other)?;
        let (parent, name) = split(path);
        // Without NONBLOCK, a pipe in the place of the file would make this wait for a writer.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let directory = self.directory(parent)?;
        let fd = match openat(&directory, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) if access == OFlags::RDONLY => unreadable_files::open_file(&directory, name),
            opened => opened,
        };
        // NOFOLLOW refuses links, but a pipe or a device opens without an error.
        let file = File::from(fd?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
    }

    /// What a file or directory has beside content and permission bits; the empty path is the root itself.
    pub fn attributes(&self, path: &[u8]) -> io::Result<Attributes> {
        if path.is_empty() {
            return Ok(self.attributes_of(&Handle::of_file(&self.fd)?)?);
        }
        check_path(path).map_err(io::Error::other)?;
        let (parent, name) = split(path);
        Ok(self.attributes_of(&Handle::open(self.directory(parent)?, name)?)?)
    }

    /// Writes a file: every reader sees the old one or the new one, whole and with its looks. It gets setuid and setgid bits only where
    /// they lend nothing that the tree's owner does not have.
    ///
    /// `temporary` is a free name in the same directory; what has it already stays, and is an error. Errors: `file_conflict` if
    /// `still` says no just before, or the directory is no longer at its path; `corrupt` for an impossible path or
    /// temporary name. The path is as it was after any error, and the temporary file is gone.
    pub fn write_file<'l>(
        &self,
        path: &[u8],
        looks: impl Into<FileAttributes<'l>>,
        temporary: &[u8],
        still: Still<'_>,
        content: &mut dyn FnMut(&mut File) -> Result<()>,
    ) -> Result<()> {
        let FileAttributes { mode, attributes } = looks.into();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // The owner of the directory is known when it is open, and is needed for the bits at the end.
        let around = Cell::new(FileOwner::default());
        let create = |directory: &OwnedFd| {
            around.set(FileOwner::of(&fstat(directory)?));
            // Only its owner can read it before it has its content, its owner and its mode.
            openat(directory, temporary, flags, Mode::from_raw_mode(0o600))
        };
        self.put(path, temporary, still, create, &mut |file| {
            let mut file = File::from(file);
            content(&mut file)?;
            if let Some(attributes) = attributes {
                self.give(&Handle::of_file(&file).at(path)?, attributes);
            }
            let mode = self.lendable(mode, FileOwner::of(&fstat(&file).at(path)?), around.get());
            // Last: writing and another owner take the setuid and setgid bits away, and an ACL follows the bits that it came with.
            fchmod(&file, permissions(mode)).at(path)
        })
    }

    /// Makes a symbolic link, as [`RootDir::write_file`] does a file.
    pub fn make_symlink(&self, path: &[u8], target: &[u8], temporary: &[u8], still: Still<'_>) -> Result<()> {
        let create = |directory: &OwnedFd| {
            symlinkat(target, directory, temporary)?;
            self.give_link(directory, temporary);
            Ok(())
        };
        self.put(path, temporary, still, create, &mut |()| Ok(()))
    }

    /// Makes a path another name of the file at `of`, as [`RootDir::write_file`] writes one.
    ///
    /// Errors: also `file_conflict` if that is not the file that `is` stands for; `io_error` where a file cannot have more names.
    pub fn make_link(&self, path: &[u8], of: &[u8], is: Stat, temporary: &[u8], still: Still<'_>) -> Result<()> {
        check_path(of)?;
        let (parent, name) = split(of);
        let from = self.directory(parent).at(of)?;
        let create = |directory: &OwnedFd| {
            linkat(&from, name, directory, temporary, AtFlags::empty())?;
            // What is at the other path may be something else by now: only the file that was looked at gets a name.
            let made = stat_of(&statat(directory, temporary, AtFlags::SYMLINK_NOFOLLOW)?);
            if (made.dev, made.ino) == (is.dev, is.ino) {
                return Ok(());
            }
            unlinkat(directory, temporary, AtFlags::empty())?;
            Err(Errno::STALE)
        };
        self.put(path, temporary, still, create, &mut |()| Ok(()))
    }

    /// Makes a directory that only its owner can use; [`RootDir::set_mode`] opens it up.
    pub fn make_directory(&self, path: &[u8]) -> Result<()> {
        self.inside(path, MAKE, &mut |directory, name| mkdirat(directory, name, Mode::from_raw_mode(0o700)).at(path))?;
        // An umask can take its owner's bits away, and nothing could be written into it.
        let is_own = |found: &EntryState| matches!(found, EntryState::Directory(_));
        self.set_mode(path, 0o700, &is_own)
    }

    /// Gives a file or directory these looks; the empty path is the root itself, whose owner stays.
    ///
    /// Errors: `file_conflict` if `still` says no, or something else takes its place at this moment; links have no bits.
    pub fn set_mode<'l>(&self, path: &[u8], looks: impl Into<FileAttributes<'l>>, still: Still<'_>) -> Result<()> {
        let FileAttributes { mode, attributes } = looks.into();
        if path.is_empty() {
            if let Some(attributes) = attributes {
                // Every other owner is told apart from the root's: that one is no part of a checkpoint.
                self.give(&Handle::of_file(&self.fd).at(path)?, &Attributes { owner: None, ..attributes.clone() });
            }
            return fchmod(&self.fd, permissions(mode)).at(path);
        }
        self.inside(path, FIND, &mut |directory, name| {
            let now = found(directory, name).while_doing(|| at(path))?;
            require(still, &now, path)?;
            let (expected, is_file) = match now {
                EntryState::File(stat) => (stat, true),
                EntryState::Directory(stat) => (stat, false),
                EntryState::Absent => return Err(Errno::NOENT).at(path),
                EntryState::Symlink(..) => return Err(Errno::LOOP).at(path),
                EntryState::Special => return Err(Errno::INVAL).at(path),
            };
            let handle = Handle::open(directory, name).at(path)?;
            let stat = stat_of(&handle.stat().at(path)?);
            // Between the look and this handle, another file may have taken the name.
            if (stat.dev, stat.ino) != (expected.dev, expected.ino) {
                return Err(changed(path));
            }
            if let Some(attributes) = attributes {
                // Attributes of a file can only be set by who may write into it.
                if is_file && expected.mode & WRITE == 0 && mode & WRITE != 0 {
                    // Setuid and setgid are left out here: they come last, when the file has its final owner.
                    handle.set_mode(permissions(mode & 0o777)).at(path)?;
                }
                self.give(&handle, attributes);
            }
            let mode = if is_file {
                // This is asked after `give`, which may have changed the owner.
                let owners = (handle.stat().at(path)?, fstat(directory).at(path)?);
                self.lendable(mode, FileOwner::of(&owners.0), FileOwner::of(&owners.1))
            } else {
                mode
            };
            handle.set_mode(permissions(mode)).at(path)
        })
    }

    /// Makes something under a temporary name, fills it, and moves it to its place.
    fn put<T>(
        &self,
        path: &[u8],
        temporary: &[u8],
        still: Still<'_>,
        create: impl Fn(&OwnedFd) -> std::result::Result<T, Errno>,
        fill: &mut dyn FnMut(T) -> Result<()>,
    ) -> Result<()> {
        check_path(temporary)?;
        let (parent, name) = split(path);
        // Under its own name, a file would be seen before it is whole.
        if temporary.contains(&b'/') || temporary == name {
            return Err(impossible(temporary));
        }
        self.inside(path, MAKE, &mut |directory, name| {
            let made = create(directory).at(path)?;
            // This is made only now: a file that had the temporary name before is not ours to remove.
            let unplaced = Temporary::new(directory, temporary);
            fill(made)?;
            // Filling may take long. If the directory was moved by now, the new file would get its name somewhere else.
            self.require_place(parent, directory, path)?;
            // The last look before the rename, which replaces whatever has the name.
            require(still, &found(directory, name).while_doing(|| at(path))?, path)?;
            renameat(directory, temporary, directory, name).at(path)?;
            unplaced.keep();
            Ok(())
        })
    }

    /// Errors: `file_conflict` if `parent` does not lead to this directory any more.
    fn require_place(&self, parent: &[u8], directory: &OwnedFd, path: &[u8]) -> Result<()> {
        match self.directory(parent) {
            Ok(now) if is_same(&now, directory).at(path)? => Ok(()),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(changed(path)),
            Err(e) => Err(e).at(path),
        }
    }

    /// Works in the directory that holds `path`; if its owner may not do what is `needed`, it is opened up for that time.
    fn inside(&self, path: &[u8], needed: u32, work: &mut dyn FnMut(&OwnedFd, &[u8]) -> Result<()>) -> Result<()> {
        check_path(path)?;
        let (parent, name) = split(path);
        let directory = self.directory(parent).at(path)?;
        let opened = OpenedUp::new(&directory, needed).at(parent)?;
        #[cfg(test)]
        tests::crash_injection::may_come();
        // Closed again whatever the work says: an error must not leave the directory open.
        let worked = work(&directory, name);
        #[cfg(test)]
        tests::crash_injection::may_come();
        let closed = opened.close().at(parent);
        // The first thing that went wrong is what the person must know.
        worked.and(closed)
    }

    /// Opens a directory without following links.
    fn directory(&self, path: &[u8]) -> std::result::Result<OwnedFd, Errno> {
        ic_sys::descent::open(&self.fd, path)
    }
}

/// The directory above a path and the name in it; the directory of a name alone is empty.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.iter().rposition(|b| *b == b'/').map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]))
}

fn require(still: Still<'_>, found: &EntryState, path: &[u8]) -> Result<()> {
    if still(found) {
        return Ok(());
    }
    Err(changed(path))
}

fn changed(path: &[u8]) -> Diagnosis {
    Diagnosis::new(Code::FileConflict, format!("{} was changed by others.", String::from_utf8_lossy(path)))
}

fn at(path: &[u8]) -> String {
    format!("changing {}", String::from_utf8_lossy(path))
}

/// Says at which path a system call failed.
trait At<T> {
    fn at(self, path: &[u8]) -> Result<T>;
}

impl<T> At<T> for std::result::Result<T, Errno> {
    fn at(self, path: &[u8]) -> Result<T> {
        self.map_err(io::Error::from).while_doing(|| at(path))
    }
}
