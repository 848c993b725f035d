//! Reading one file: what was read is what it was at one moment, or it is read again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::events::Hash;
use ic_ledger::sibling;
use ic_ledger::{
    copy_database, has_usual_side_files, has_write_ahead_log, is_database, is_ledger_head, private, recover_copy,
    while_nobody_writes,
};
use rustix::fs::{Mode, OFlags, fstat, openat};

use super::cache::Key;
use super::comparison::is_ours;
use super::memory_maps::Maps;
use crate::attributes::{Attributes, FileOwner};
use crate::objects::Writer;
use crate::scratch::LazyScratch;
use crate::unreadable_files;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 4;

/// A file's content as it was kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptFile {
    pub(crate) hash: Hash,
    pub(crate) size: u64,
    /// The file's state when it was read; `None` if it never stood still.
    pub(crate) key: Option<Key>,
    pub(crate) mode: u32,
    /// It changed whenever it was read: this may be a state that it never had.
    pub(crate) is_unsettled: bool,
    /// A process may store to it without a trace.
    pub(crate) is_mapped: bool,
    pub(crate) attributes: Attributes,
}

/// What became of reading a file.
#[derive(Debug, Clone)]
pub(crate) enum ReadOutcome {
    Kept(KeptFile),
    /// It is no regular file any more, or gone.
    Gone,
    /// It may not be read.
    Unreadable,
    /// Its content was purged.
    Purged,
    /// It is another ledger: to restore an old state of it would undo what it recorded since.
    Ledger,
}

/// A file to be read, and what is known about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'s> {
    pub(crate) directory: BorrowedFd<'s>,
    pub(crate) name: &'s [u8],
    /// For SQLite, which takes no handles.
    pub(crate) path: &'s Path,
    /// When the capture began, by the file system's clock.
    pub(crate) now: i64,
    /// What processes have mapped, if the file can be trusted at all: what was touched lately is read again anyway.
    pub(crate) maps: Option<&'s Maps>,
    /// Where copies are made.
    pub(crate) scratch: &'s LazyScratch,
    pub(crate) way: ReadingWay,
    /// Who the root belongs to.
    pub(crate) owner: FileOwner,
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingWay {
    /// Between transactions, if it is a database.
    Usual,
    /// There is a log or journal beside it.
    InUse,
    /// Byte by byte: what lies beside it is kept, too, and no program uses it.
    Raw,
}

/// Reads a regular file and keeps its content; of an SQLite database, the content at one moment between transactions.
pub(crate) fn keep(writer: &Writer<'_>, subject: &Subject<'_>) -> Result<ReadOutcome> {
    let mut last = ReadOutcome::Gone;
    // The file is opened anew each time: a writer may have replaced it by a rename.
    for _ in 0..ATTEMPTS {
        let file = match open(subject)? {
            Ok(file) => file,
            Err(outcome) => return Ok(outcome),
        };
        // Since the look, the name may have become that of another kind of file.
        let Ok(meta) = file.metadata() else { return Ok(ReadOutcome::Unreadable) };
        if !meta.is_file() {
            return Ok(ReadOutcome::Gone);
        }
        let Some(before) = state(&file) else { return Ok(ReadOutcome::Unreadable) };
        // Asked before the file is read: a map that is made later moves the file's times with its first store.
        let is_mapped = subject.maps.is_some_and(|maps| maps.may_be_stored_to(&file, &before));
        // 72 bytes reach as far as a ledger's mark; every database is longer.
        let mut head = [0; 72];
        let in_use = subject.way == ReadingWay::InUse;
        let has_head = file.read_exact_at(&mut head, 0).is_ok();
        if has_head && is_ledger_head(&head) {
            return Ok(ReadOutcome::Ledger);
        }
        let is_one = subject.way != ReadingWay::Raw && has_head && is_database(&head);
        // SQLite opens them by name, and would wait for a pipe.
        if is_one && !has_usual_side_files(subject.path) {
            return Ok(ReadOutcome::Unreadable);
        }
        // With an empty log the file is the whole database. A copy by SQLite would have other bytes, and count as a change.
        let is_log_empty = is_one && in_use && has_write_ahead_log(&head) && !has_content_beside(subject.path);
        if is_one && in_use && has_write_ahead_log(&head) && !is_log_empty {
            return keep_copy(writer, subject, &before, attributes_of(&file, subject));
        }
        // A writer's transactions can fall into one tick of the file system's clock: only SQLite's own lock tells.
        let may_be_written = is_log_empty && is_live(subject.path)
            || is_one && !has_write_ahead_log(&head) && (in_use || !before.is_settled(subject.now));
        let mut source = Source { file: &file, failed: None };
        // A writer may have begun before the lock was had: what it commits is in the log.
        let read = || (!is_log_empty || !has_content_beside(subject.path)).then(|| writer.put_file(&mut source));
        let kept = if may_be_written {
            match while_nobody_writes(subject.path, writer.patience(), read).flatten() {
                Some(kept) => kept,
                // The lock could not be taken, or the log is not empty any more: SQLite makes a copy.
                None => return keep_copy(writer, subject, &before, attributes_of(&file, subject)),
            }
        } else {
            writer.put_file(&mut source)
        };
        // This is checked before `kept`: the writer returns the same failure as its own, which would end the capture.
        if source.failed.take().is_some() {
            // A bad block, or a file system that is gone: the file is left out and reported, and the capture continues.
            return Ok(ReadOutcome::Unreadable);
        }
        let Some((hash, size)) = kept? else { return Ok(ReadOutcome::Purged) };
        // Read between the two looks at the stat, as the content is: an attribute that is set during the read changes the second one.
        let attributes = attributes_of(&file, subject);
        let Some(after) = state(&file) else { return Ok(ReadOutcome::Unreadable) };
        let stood_still = before == after;
        // The stat of a database in use says nothing of its log, so the next capture looks again.
        let key = (stood_still && !in_use).then_some(after);
        // A lock on a database keeps its writers out; nothing keeps those of other files out.
        let is_unsettled = !stood_still && !may_be_written;
        let mode = after.permissions();
        last = ReadOutcome::Kept(KeptFile { hash, size, key, mode, is_unsettled, is_mapped, attributes });
        // A database was read under its lock: it is whole, though its times may have moved since.
        if stood_still || may_be_written {
            break;
        }
    }
    Ok(last)
}

/// Opens a file for reading, also where its owner closed it to himself; else what became of it.
fn open(subject: &Subject<'_>) -> Result<std::result::Result<File, ReadOutcome>> {
    // Without NONBLOCK, a pipe in the place of the file would make this wait for a writer. NXIO is the answer of a socket.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(match openat(subject.directory, subject.name, flags, Mode::empty()) {
        Ok(fd) => Ok(File::from(fd)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => Err(ReadOutcome::Gone),
        Err(rustix::io::Errno::ACCESS) => unreadable_files::open_file(subject.directory, subject.name)
            .map(File::from)
            .map_err(|_| ReadOutcome::Unreadable),
        Err(e) if !is_ours(e) => Err(ReadOutcome::Unreadable),
        Err(e) => return Err(io::Error::from(e)).while_doing(|| reading(subject.name)),
    })
}

/// Keeps an SQLite database through a copy: by SQLite's backup while its log is in use, else by recovering what a
/// dead writer left. One that cannot be had whole is named as unreadable.
fn keep_copy(writer: &Writer<'_>, subject: &Subject<'_>, key: &Key, attributes: Attributes) -> Result<ReadOutcome> {
    let doing = || format!("copying {}", subject.path.display());
    let space = tempfile::tempdir_in(subject.scratch.path()?).while_doing(doing)?;
    private::mend(space.path()).while_doing(doing)?;
    let copy = space.path().join("copy.db");
    let copied = if is_live(subject.path) {
        copy_database(subject.path, &copy, writer.patience())
    } else {
        // A copy is recovered, because SQLite writes into a database to recover it.
        recover_copy(subject.path, &copy)
    };
    if copied.is_err() {
        return Ok(ReadOutcome::Unreadable);
    }
    let mut file = File::open(&copy).while_doing(doing)?;
    let mut head = [0; 72];
    // The mark of a young ledger may stand in its log alone, and the copy has what the log has.
    if file.read_exact_at(&mut head, 0).is_ok() && is_ledger_head(&head) {
        return Ok(ReadOutcome::Ledger);
    }
    let Some((hash, size)) = writer.put_file(&mut file)? else { return Ok(ReadOutcome::Purged) };
    Ok(ReadOutcome::Kept(KeptFile {
        hash,
        size,
        // The file's own stat does not tell whether its log changes, so the stat cache must not rely on it.
        key: None,
        mode: key.permissions(),
        is_unsettled: false,
        is_mapped: false,
        attributes,
    }))
}

/// Whether a database with a write-ahead log is in use, or its last user died: there is an index of the log.
fn is_live(path: &Path) -> bool {
    sibling(path, "-shm").exists()
}

/// Whether something is beside a database that it is not whole without. One that is only read has an empty log.
fn has_content_beside(path: &Path) -> bool {
    let has_log = std::fs::metadata(sibling(path, "-wal")).is_ok_and(|log| log.len() > 0);
    has_log || sibling(path, "-journal").exists()
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
            // An interrupted read is made again: it says nothing of the file.
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

impl Seek for Source<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut file = self.file;
        file.seek(to)
    }
}

fn attributes_of(file: &File, subject: &Subject<'_>) -> Attributes {
    fstat(file.as_fd()).map(|stat| Attributes::of(file, &stat, subject.owner)).unwrap_or_default()
}

/// What tells this state of the file from another; `None` where its file system does not tell any more.
fn state(file: &File) -> Option<Key> {
    fstat(file.as_fd()).map(|stat| Key::of(&stat)).ok()
}

fn reading(name: &[u8]) -> String {
    format!("reading {}", String::from_utf8_lossy(name))
}

/// The tree has more in it than a checkpoint may have.
pub(crate) fn too_large(max_files: u64) -> Diagnosis {
    Diagnosis::new(Code::TreeTooLarge, format!("The tree has more than {max_files} files."))
        .hint("ignore generated files, or raise rollback.checkpointing.max-files in .ic.yaml")
        .detail("max_files", max_files)
}
