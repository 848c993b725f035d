//! What a restore removes.

use std::io;

use ic_base::Diagnose;
use ic_base::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::access::OpenedUp;
use super::entry_state::{EntryState, found};
use super::{At, LIST, MAKE, RootDir, Still, at, check_path, require};

impl RootDir {
    /// Removes a file or link. Errors: `file_conflict` if `still` says no.
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
        // An error is returned after the directory was closed: it must not stay open.
        let removed = remove_below(&directory, prefix);
        opened.close()?;
        removed
    }
}

fn remove_below(directory: &OwnedFd, prefix: &[u8]) -> io::Result<usize> {
    // Listed first, because a listing need not be whole while its names are removed.
    let mut names = Vec::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The directory is opened again, because the handle only names it and lists nothing.
    for entry in Dir::new(openat(directory, ".", flags, Mode::empty())?)? {
        let entry = entry?;
        if entry.file_name().to_bytes().starts_with(prefix) {
            names.push(entry.file_name().to_owned());
        }
    }
    let mut removed = 0;
    for name in names {
        // A restore makes no temporary directory, so a directory with such a name belongs to others.
        if !matches!(found(directory, name.to_bytes())?, EntryState::File(_) | EntryState::Symlink(..)) {
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
