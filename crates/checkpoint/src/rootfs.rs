//! The only way in which a restore writes into a working tree: nothing outside of the root is ever touched.
//!
//! Every operation starts at a handle of the root and opens each directory on the way by itself, without following links,
//! so no link in the tree and no path in a database leads elsewhere. Nothing is kept open between operations: a directory
//! that somebody moves away meanwhile is not written into where it lies now. That costs a few microseconds a level.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, mkdirat, open, openat, readlinkat, renameat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Its permission bits (07777).
    pub mode: u32,
    /// When its content changed: seconds and nanoseconds.
    pub mtime: (i64, u64),
    /// When its inode changed.
    pub ctime: (i64, u64),
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or a directory above it is none.
    Absent,
    /// A regular file.
    File(Stat),
    /// A symbolic link, and where it points.
    Symlink(Stat, Vec<u8>),
    /// A directory.
    Directory(Stat),
    /// A socket, fifo or device.
    Special,
}

/// Whether a path is still as it must be, just before it changes.
pub type Still<'s> = &'s dyn Fn(&Found) -> bool;

/// An open root.
#[derive(Debug)]
pub struct RootDir {
    fd: OwnedFd,
    path: PathBuf,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Refuses paths that no checkpoint can have: they would lead out of the tree, or into git's own files.
///
/// Errors: `corrupt`.
pub fn check_path(path: &[u8]) -> Result<()> {
    let is_possible = |part: &[u8]| {
        !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git") && part.len() <= 255
    };
    if !path.contains(&0) && path.split(|b| *b == b'/').all(is_possible) {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::Corrupt,
        format!("The checkpoint names an impossible path: {:?}.", String::from_utf8_lossy(path)),
    )
    .hint("see: ic checkpoint verify --read-data"))
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

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &[u8]) -> io::Result<File> {
        check_path(path).map_err(io::Error::other)?;
        let (parent, name) = split(path);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.directory(parent)?, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
    }

    /// Writes a file: whoever looks sees the old one or the new one, whole, and with its mode.
    ///
    /// `temporary` is a name in the same directory. Errors: `conflict` if `still` says no just before; the path is as it
    /// was after any error, and the temporary file is gone.
    pub fn write_file(
        &self,
        path: &[u8],
        mode: u32,
        temporary: &[u8],
        still: Still<'_>,
        content: &mut dyn FnMut(&mut File) -> Result<()>,
    ) -> Result<()> {
        let make = |directory: &OwnedFd| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file =
                File::from(openat(directory, temporary, flags, Mode::from_raw_mode(0o600)).at(path)?);
            content(&mut file)?;
            // Last: writing takes the setuid and setgid bits away.
            fchmod(&file, Mode::from_raw_mode(mode)).at(path)
        };
        self.put(path, temporary, still, &mut { make })
    }

    /// Makes a symbolic link, as [`RootDir::write_file`] does a file.
    pub fn make_symlink(&self, path: &[u8], target: &[u8], temporary: &[u8], still: Still<'_>) -> Result<()> {
        let make = |directory: &OwnedFd| symlinkat(target, directory, temporary).at(path);
        self.put(path, temporary, still, &mut { make })
    }

    /// Makes a directory that only its owner can use; [`RootDir::set_mode`] opens it up.
    pub fn make_directory(&self, path: &[u8]) -> Result<()> {
        self.inside(path, &mut |directory, name| {
            mkdirat(directory, name, Mode::from_raw_mode(0o700)).at(path)
        })
    }

    /// Gives a file or directory these permission bits. Errors: `conflict` if `still` says no.
    pub fn set_mode(&self, path: &[u8], mode: u32, still: Still<'_>) -> Result<()> {
        let mode = Mode::from_raw_mode(mode);
        if path.is_empty() {
            return fchmod(&self.fd, mode).at(path);
        }
        self.inside(path, &mut |directory, name| {
            require(still, &found(directory, name).while_doing(|| at(path))?, path)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(directory, name, flags, Mode::empty()) {
                Ok(fd) => fchmod(&fd, mode).at(path),
                Err(Errno::ACCESS) => {
                    // What may not be read is named through the kernel's own link to it, which leads nowhere else.
                    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let fd = openat(directory, name, flags, Mode::empty()).at(path)?;
                    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode).at(path)
                }
                Err(e) => Err(e).at(path),
            }
        })
    }

    /// Removes a file or link. Errors: `conflict` if `still` says no.
    pub fn remove_file(&self, path: &[u8], still: Still<'_>) -> Result<()> {
        self.inside(path, &mut |directory, name| {
            require(still, &found(directory, name).while_doing(|| at(path))?, path)?;
            unlinkat(directory, name, AtFlags::empty()).at(path)
        })
    }

    /// Removes a directory, if it is empty.
    pub fn remove_directory(&self, path: &[u8]) -> Result<()> {
        self.inside(path, &mut |directory, name| unlinkat(directory, name, AtFlags::REMOVEDIR).at(path))
    }

    /// Removes the files and links in a directory whose names begin so; returns how many there were.
    pub fn remove_temporary(&self, directory: &[u8], prefix: &[u8]) -> io::Result<usize> {
        if !directory.is_empty() {
            check_path(directory).map_err(io::Error::other)?;
        }
        let directory = self.directory(directory)?;
        let mut removed = 0;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes().starts_with(prefix) {
                unlinkat(&directory, name, AtFlags::empty())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Makes something under a temporary name and moves it to its place.
    fn put(
        &self,
        path: &[u8],
        temporary: &[u8],
        still: Still<'_>,
        make: &mut dyn FnMut(&OwnedFd) -> Result<()>,
    ) -> Result<()> {
        self.inside(path, &mut |directory, name| {
            let placed = make(directory).and_then(|()| {
                require(still, &found(directory, name).while_doing(|| at(path))?, path)?;
                renameat(directory, temporary, directory, name).at(path)
            });
            if placed.is_err() {
                // It may never have been made.
                let _ = unlinkat(directory, temporary, AtFlags::empty());
            }
            placed
        })
    }

    /// Works in the directory that holds `path`; one that its owner may not write into is opened up meanwhile.
    fn inside(&self, path: &[u8], work: &mut dyn FnMut(&OwnedFd, &[u8]) -> Result<()>) -> Result<()> {
        check_path(path)?;
        let (parent, name) = split(path);
        let directory = self.directory(parent).at(path)?;
        let mode = fstat(&directory).at(path)?.st_mode & 0o7777;
        if mode & 0o300 == 0o300 {
            return work(&directory, name);
        }
        // Where it is somebody else's directory, the work itself says what is not allowed.
        let opened = fchmod(&directory, Mode::from_raw_mode(mode | 0o300)).is_ok();
        let result = work(&directory, name);
        if opened {
            fchmod(&directory, Mode::from_raw_mode(mode)).at(parent)?;
        }
        result
    }

    /// Opens a directory, level by level, without following links.
    fn directory(&self, path: &[u8]) -> std::result::Result<OwnedFd, Errno> {
        let mut directory = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?;
        for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            directory = openat(&directory, name, DIRECTORY, Mode::empty())?;
        }
        Ok(directory)
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.iter().rposition(|b| *b == b'/').map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]))
}

fn found(directory: &OwnedFd, name: &[u8]) -> io::Result<Found> {
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Found::Absent),
        Err(e) => return Err(e.into()),
    };
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Found::File(stat_of(&stat)),
        FileType::Directory => Found::Directory(stat_of(&stat)),
        FileType::Symlink => {
            let target = readlinkat(directory, name, Vec::new())?;
            Found::Symlink(stat_of(&stat), target.into_bytes())
        }
        _ => Found::Special,
    })
}

#[allow(clippy::useless_conversion, reason = "the widths differ between systems")]
fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        mtime: (stat.st_mtime, stat.st_mtime_nsec.into()),
        ctime: (stat.st_ctime, stat.st_ctime_nsec.into()),
    }
}

fn require(still: Still<'_>, found: &Found, path: &[u8]) -> Result<()> {
    if still(found) {
        return Ok(());
    }
    Err(Diagnosis::new(Code::Conflict, format!("{} was changed meanwhile.", String::from_utf8_lossy(path))))
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
