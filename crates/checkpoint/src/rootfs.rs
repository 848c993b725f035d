//! The only way in which a restore writes into a working tree: nothing outside of the root is ever touched.
//!
//! Every operation starts at a handle of the root and walks each directory on the way without following links (`way`), so no
//! link in the tree and no path in a database leads elsewhere. Nothing is kept open between operations: a directory
//! that somebody moves away meanwhile is not written into where it lies now. What is written may take long, so the way
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
    AtFlags, Dir, Mode, OFlags, fchmod, fstat, mkdirat, open, openat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use self::access::{OpenedUp, Temporary, is_same};
use self::found::{found, stat_of};
use crate::names::is_like_git;

mod access;
#[cfg(test)]
pub(crate) mod death;
mod found;
#[cfg(test)]
mod tests;
mod way;

pub use self::found::{Found, Stat};

/// Whether a path is still as it must be, just before it changes.
pub type Still<'s> = &'s dyn Fn(&Found) -> bool;

/// An open root.
#[derive(Debug)]
pub struct RootDir {
    fd: OwnedFd,
    path: PathBuf,
}

const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What the owner of a directory must be allowed to do there: to find a name, to make one, to read them all.
const FIND: u32 = 0o100;
const MAKE: u32 = 0o300;
const LIST: u32 = 0o700;

/// Refuses paths that no checkpoint can have: they would lead out of the tree, or into git's own files.
///
/// Errors: `corrupt`.
pub fn check_path(path: &[u8]) -> Result<()> {
    let is_possible =
        |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !is_like_git(part) && part.len() <= 255;
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
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(io::Error::from);
        let fd = fd.while_doing(|| format!("opening {}", path.display()))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Waits until everything that was written is on the disk.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&self.fd)
            .map_err(io::Error::from)
            .while_doing(|| format!("flushing {}", self.path.display()))
    }

    /// What stands at a path; the empty path is the root itself.
    pub fn state(&self, path: &[u8]) -> io::Result<Found> {
        if path.is_empty() {
            return Ok(Found::Directory(stat_of(&fstat(&self.fd)?)));
        }
        check_path(path).map_err(io::Error::other)?;
        let (parent, name) = split(path);
        match self.directory(parent) {
            Ok(directory) => found(&directory, name),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Found::Absent),
            Err(e) => Err(e.into()),
        }
    }

    /// Where it is.
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
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.directory(parent)?, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
    }

    /// Writes a file: whoever looks sees the old one or the new one, whole, and with its mode; in another user's directory,
    /// without setuid and setgid bits.
    ///
    /// `temporary` is a free name in the same directory; what has it already stays, and is an error. Errors: `conflict` if
    /// `still` says no just before, or the directory is no longer at its path; `corrupt` for an impossible path or
    /// temporary name. The path is as it was after any error, and the temporary file is gone.
    pub fn write_file(
        &self,
        path: &[u8],
        mode: u32,
        temporary: &[u8],
        still: Still<'_>,
        content: &mut dyn FnMut(&mut File) -> Result<()>,
    ) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_foreign = Cell::new(false);
        let create = |directory: &OwnedFd| {
            is_foreign.set(fstat(directory)?.st_uid != geteuid().as_raw());
            openat(directory, temporary, flags, Mode::from_raw_mode(0o600))
        };
        self.put(path, temporary, still, create, &mut |file| {
            let mut file = File::from(file);
            content(&mut file)?;
            // The file is its writer's: with setuid and setgid bits it would lend the writer's rights to the tree's owner.
            let mode = if is_foreign.get() { mode & 0o1777 } else { mode };
            // Last: writing takes the setuid and setgid bits away.
            fchmod(&file, Mode::from_raw_mode(mode)).at(path)
        })
    }

    /// Makes a symbolic link, as [`RootDir::write_file`] does a file.
    pub fn make_symlink(&self, path: &[u8], target: &[u8], temporary: &[u8], still: Still<'_>) -> Result<()> {
        let create = |directory: &OwnedFd| symlinkat(target, directory, temporary);
        self.put(path, temporary, still, create, &mut |()| Ok(()))
    }

    /// Makes a directory that only its owner can use; [`RootDir::set_mode`] opens it up.
    pub fn make_directory(&self, path: &[u8]) -> Result<()> {
        self.inside(path, MAKE, &mut |directory, name| {
            mkdirat(directory, name, Mode::from_raw_mode(0o700)).at(path)
        })?;
        // An umask can take its owner's bits away, and nothing could be written into it.
        let is_own = |found: &Found| matches!(found, Found::Directory(_));
        self.set_mode(path, 0o700, &is_own)
    }

    /// Gives a file or directory these permission bits; the empty path is the root itself.
    ///
    /// Errors: `conflict` if `still` says no, or something else takes its place at this moment; links have no bits.
    pub fn set_mode(&self, path: &[u8], mode: u32, still: Still<'_>) -> Result<()> {
        let mode = Mode::from_raw_mode(mode);
        if path.is_empty() {
            return fchmod(&self.fd, mode).at(path);
        }
        self.inside(path, FIND, &mut |directory, name| {
            let now = found(directory, name).while_doing(|| at(path))?;
            require(still, &now, path)?;
            let expected = match now {
                Found::File(stat) | Found::Directory(stat) => stat,
                Found::Absent => return Err(Errno::NOENT).at(path),
                Found::Symlink(..) => return Err(Errno::LOOP).at(path),
                Found::Special => return Err(Errno::INVAL).at(path),
            };
            let handle = openat(directory, name, HANDLE, Mode::empty()).at(path)?;
            let stat = stat_of(&fstat(&handle).at(path)?);
            if (stat.dev, stat.ino) != (expected.dev, expected.ino) {
                return Err(changed(path));
            }
            access::set_mode(&handle, directory, name, mode).at(path)
        })
    }

    /// Removes a file or link. Errors: `conflict` if `still` says no.
    pub fn remove_file(&self, path: &[u8], still: Still<'_>) -> Result<()> {
        self.inside(path, MAKE, &mut |directory, name| {
            require(still, &found(directory, name).while_doing(|| at(path))?, path)?;
            unlinkat(directory, name, AtFlags::empty()).at(path)
        })
    }

    /// Removes a directory, if it is empty.
    ///
    /// Errors: `io_error`, whose source is an [`io::Error`] of the kind `DirectoryNotEmpty`, if it is not.
    pub fn remove_directory(&self, path: &[u8]) -> Result<()> {
        self.inside(path, MAKE, &mut |directory, name| unlinkat(directory, name, AtFlags::REMOVEDIR).at(path))
    }

    /// Removes the files and links in a directory whose names begin so; returns how many there were.
    ///
    /// Errors: `InvalidInput` for an empty prefix, with which every name begins.
    pub fn remove_temporary(&self, directory: &[u8], prefix: &[u8]) -> io::Result<usize> {
        if !directory.is_empty() {
            check_path(directory).map_err(io::Error::other)?;
        }
        if prefix.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let directory = self.directory(directory)?;
        let opened = OpenedUp::new(&directory, LIST)?;
        let removed = remove_below(&directory, prefix);
        opened.close()?;
        removed
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
        if temporary.contains(&b'/') || temporary == name {
            return Err(impossible(temporary));
        }
        self.inside(path, MAKE, &mut |directory, name| {
            let made = create(directory).at(path)?;
            let unplaced = Temporary::new(directory, temporary);
            fill(made)?;
            self.require_place(parent, directory, path)?;
            require(still, &found(directory, name).while_doing(|| at(path))?, path)?;
            renameat(directory, temporary, directory, name).at(path)?;
            unplaced.keep();
            Ok(())
        })
    }

    /// Errors: `conflict` if `parent` does not lead to this directory any more.
    fn require_place(&self, parent: &[u8], directory: &OwnedFd, path: &[u8]) -> Result<()> {
        match self.directory(parent) {
            Ok(now) if is_same(&now, directory).at(path)? => Ok(()),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(changed(path)),
            Err(e) => Err(e).at(path),
        }
    }

    /// Works in the directory that holds `path`; one whose owner may not do what is `needed` is opened up meanwhile.
    fn inside(
        &self,
        path: &[u8],
        needed: u32,
        work: &mut dyn FnMut(&OwnedFd, &[u8]) -> Result<()>,
    ) -> Result<()> {
        check_path(path)?;
        let (parent, name) = split(path);
        let directory = self.directory(parent).at(path)?;
        let opened = OpenedUp::new(&directory, needed).at(parent)?;
        #[cfg(test)]
        death::may_come();
        let worked = work(&directory, name);
        #[cfg(test)]
        death::may_come();
        let closed = opened.close().at(parent);
        // The first thing that went wrong is what the person must know.
        worked.and(closed)
    }

    /// Opens a directory without following links.
    fn directory(&self, path: &[u8]) -> std::result::Result<OwnedFd, Errno> {
        way::walk(&self.fd, path)
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.iter().rposition(|b| *b == b'/').map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]))
}

fn remove_below(directory: &OwnedFd, prefix: &[u8]) -> io::Result<usize> {
    let mut names = Vec::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(directory, ".", flags, Mode::empty())?)? {
        let entry = entry?;
        if entry.file_name().to_bytes().starts_with(prefix) {
            names.push(entry.file_name().to_owned());
        }
    }
    let mut removed = 0;
    for name in names {
        if !matches!(found(directory, name.to_bytes())?, Found::File(_) | Found::Symlink(..)) {
            continue;
        }
        match unlinkat(directory, &name, AtFlags::empty()) {
            Ok(()) => removed += 1,
            Err(Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(removed)
}

fn require(still: Still<'_>, found: &Found, path: &[u8]) -> Result<()> {
    if still(found) {
        return Ok(());
    }
    Err(changed(path))
}

fn changed(path: &[u8]) -> Diagnosis {
    Diagnosis::new(Code::Conflict, format!("{} was changed meanwhile.", String::from_utf8_lossy(path)))
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
