//! The write-ahead log between two calls.
//!
//! A process that closes leaves a small log where it is: the next one appends to it, and the commit is the only flush of its call
//! (docs/adr/0036). A process that closes last and finds the log longer than [`AT_REST`] folds it into the database: four flushes, with
//! those of the process that begins the next log. Every process recovers the log when it opens the database, so it must stay short.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::fs::OFlags;

/// The length of a log without frames: <https://sqlite.org/fileformat.html#walformat>.
pub(crate) const HEADER: u64 = 32;

/// A page of 4096 bytes in the log, with its head.
const FRAME: u64 = 24 + 4096;

/// A longer log is folded in by the process that closes last. Recovery costs a microsecond a page, so at most 0.13 ms a call; an advance
/// writes seven pages.
pub(crate) const AT_REST: u64 = HEADER + 128 * FRAME;

/// A longer log is folded in by a commit, as far as no reader needs it: SQLite's own bound. A log that is begun again is cut to this
/// length, and no shorter: to write over a file in place costs less than to make it longer.
pub(crate) const IN_USE: u64 = HEADER + 1000 * FRAME;

/// A log that could not be begun again, because a process read it, is folded in further when it has grown by this much.
pub(crate) const FURTHER: u64 = 125 * FRAME;

/// Which log it is: SQLite gives each two random numbers, and new ones whenever it begins it again.
pub(crate) type Salts = u64;

/// The log of the database at `path`, which is no link.
pub(crate) fn path_of(path: &Path) -> PathBuf {
    sibling(path, "-wal")
}

/// The path with something after its name.
pub fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The file that a database's path leads to: SQLite names its log after that one.
pub(crate) fn real(path: &Path) -> PathBuf {
    // A link among the directories above changes nothing: by either path, the log is in the same directory.
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let real = if is_link { std::fs::canonicalize(path).ok() } else { None };
    real.unwrap_or_else(|| path.to_owned())
}

/// How long the log of a database is, in bytes; 0: there is none.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path_of(path)).map_or(0, |meta| meta.len())
}

/// Which log a database has; `None` if it has none, or one without a frame.
///
/// The log may be opened and closed beside SQLite: its locks are on other files.
pub(crate) fn salts(path: &Path) -> std::io::Result<Option<Salts>> {
    // One byte more than the header: the salts of a log without a frame belong to no content.
    let mut head = [0; 33];
    // A pipe in its place is not waited for.
    let options = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).to_owned();
    let read = options.open(path_of(path)).and_then(|file| file.read_exact_at(&mut head, 0));
    match read {
        Ok(()) => {
            // Both salts of the header, four bytes each: <https://sqlite.org/fileformat.html#walformat>.
            let mut salts = [0; 8];
            salts.copy_from_slice(&head[16..24]);
            Ok(Some(Salts::from_be_bytes(salts)))
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a process that closes the database now leaves its log: it is begun and small.
pub(crate) fn stays(path: &Path) -> bool {
    (HEADER + 1..=AT_REST).contains(&length(path))
}

/// Makes the log stay when `connection` is closed, even if it is the last one.
pub(crate) fn leave(connection: &Connection) {
    // When this fails, the log is folded in: nothing but time is lost.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
}

/// Makes this connection cut the log to [`IN_USE`] when it begins it again: its length then tells how much there is to fold in.
pub(crate) fn limit(connection: &Connection) {
    // When this fails, the log is folded in more often: nothing but time is lost.
    let _ = connection.pragma_update(None, "journal_size_limit", IN_USE.cast_signed());
}

/// Makes SQLite fold the log in when `connection` is closed, if it is the last one.
pub(crate) fn fold_at_end(connection: &Connection) {
    // When this fails, the log stays: nothing is lost.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{AT_REST, HEADER, path_of, real, salts, stays};

    #[test]
    fn a_log_is_left_that_is_begun_and_small() {
        let place = tempfile::tempdir().unwrap();
        let db = place.path().join("ic.db");
        assert!(!stays(&db), "there is none");
        for (length, left) in [(0, false), (HEADER, false), (HEADER + 1, true), (AT_REST, true), (AT_REST + 1, false)] {
            std::fs::File::create(path_of(&db)).unwrap().set_len(length).unwrap();
            assert_eq!(stays(&db), left, "{length}");
            assert_eq!(salts(&db).unwrap(), (length > HEADER).then_some(0), "{length}");
        }
    }

    #[test]
    fn the_log_of_a_link_is_that_of_its_file() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (db, link) = (place.join("ic.db"), place.join("link"));
        std::fs::write(&db, "").unwrap();
        symlink("ic.db", &link).unwrap();
        assert_eq!((real(&link), real(&db)), (db.clone(), db));
        assert_eq!(real(&place.join("none")), place.join("none"));
    }
}
