//! Reading one file: what was read is what it was at one moment, or it is read again.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_events::Hash;
use ic_store::{copy_database, is_database};
use rustix::fs::{Mode, OFlags, fstat, openat};

use super::cache::Key;
use crate::objects::Writer;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 4;

/// How long a database's writer is waited for.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);

/// A file's content as it was kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) hash: Hash,
    pub(crate) size: u64,
    /// The file's state when it was read; `None` if it never stood still.
    pub(crate) key: Option<Key>,
    pub(crate) mode: u32,
}

/// What became of reading a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Kept(Kept),
    /// It is no regular file any more, or gone.
    Gone,
    /// It may not be read.
    Unreadable,
}

/// Reads the regular file `name` in a directory and keeps its content.
pub(crate) fn keep(writer: &Writer<'_>, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Outcome> {
    let mut last = Outcome::Gone;
    for _ in 0..ATTEMPTS {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(directory, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => {
                return Ok(Outcome::Gone);
            }
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => return Ok(Outcome::Unreadable),
            Err(e) => return Err(io::Error::from(e)).while_doing(|| reading(name)),
        };
        let before = state(&file, name)?;
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(Outcome::Gone);
        }
        let mut source = Source { file: &file, failed: None };
        let kept = writer.put_reader(&mut source);
        if let Some(error) = source.failed.take() {
            // A bad block, or a file system that ended: the tree goes on without it, and says so.
            let _ = error;
            return Ok(Outcome::Unreadable);
        }
        let (hash, size) = kept?;
        let after = state(&file, name)?;
        let stood_still = before == after;
        let key = stood_still.then_some(after);
        last = Outcome::Kept(Kept { hash, size, key, mode: after.permissions() });
        if stood_still {
            break;
        }
    }
    Ok(last)
}

/// Keeps an SQLite database in use as it is at one moment, through SQLite itself; `None` if `path` is no database.
///
/// `space` is a directory for the copy.
pub(crate) fn keep_database(
    writer: &Writer<'_>,
    path: &Path,
    key: &Key,
    space: &Path,
) -> Result<Option<Kept>> {
    let mut head = [0; 16];
    let is_one =
        File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && is_database(&head);
    if !is_one {
        return Ok(None);
    }
    let copy =
        tempfile::NamedTempFile::new_in(space).while_doing(|| format!("copying {}", path.display()))?;
    copy_database(path, copy.path(), DATABASE_TIMEOUT)?;
    let mut file =
        File::open(copy.path()).while_doing(|| format!("reading the copy of {}", path.display()))?;
    let (hash, size) = writer.put_reader(&mut file)?;
    Ok(Some(Kept { hash, size, key: None, mode: key.permissions() }))
}

/// A file whose read errors are told apart from the store's.
struct Source<'f> {
    file: &'f File,
    failed: Option<io::Error>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&mut self.file).read(buffer).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

fn state(file: &File, name: &[u8]) -> Result<Key> {
    fstat(file.as_fd()).map(|stat| Key::of(&stat)).map_err(io::Error::from).while_doing(|| reading(name))
}

fn reading(name: &[u8]) -> String {
    format!("reading {}", String::from_utf8_lossy(name))
}

/// The tree has more in it than a checkpoint may have.
pub(crate) fn too_large(max_files: u64) -> Diagnosis {
    Diagnosis::new(Code::TreeTooLarge, format!("The tree has more than {max_files} files."))
        .hint("ignore what is generated, or raise rollback.checkpointing.max-files in .ic.yaml")
        .detail("max_files", max_files)
}
