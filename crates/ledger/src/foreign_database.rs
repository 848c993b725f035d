//! SQLite databases of other programs: told apart from other files, and copied while they are in use.

use std::path::Path;
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::diagnose;
use crate::log::sibling;
use crate::private;
use crate::regular_file::open_regular_itself;
use crate::values::{path_bytes, path_from_bytes};

/// What the side files of a database are called, after its name: <https://sqlite.org/tempfiles.html>.
pub const DATABASE_SIDE_SUFFIXES: [&[u8]; 3] = [b"-wal", b"-shm", b"-journal"];

/// Whether a file that begins with these bytes is an SQLite database: <https://sqlite.org/fileformat.html>.
pub fn is_database(head: &[u8]) -> bool {
    head.starts_with(b"SQLite format 3\0")
}

/// Whether the database with this head keeps a write-ahead log; else it keeps a rollback journal.
pub fn has_write_ahead_log(head: &[u8]) -> bool {
    head.get(18) == Some(&2)
}

/// Runs `read` while no program can write the file of the database in `path`, which keeps a rollback journal, or a write-ahead log that is
/// empty: then a writer can add to the log alone.
///
/// `None` when that cannot be had: its writer died in the middle, it is damaged, or it was busy past the timeout. A file that
/// `read` has open must be closed after this returns: closing it would end the lock.
pub fn while_nobody_writes<T>(path: &Path, timeout: Duration, read: impl FnOnce() -> T) -> Option<T> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let lock = || {
        let connection = Connection::open_with_flags(path, flags).ok()?;
        connection.busy_timeout(timeout).ok()?;
        // Without this, closing would fold in and remove the log of a program that died.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok()?;
        // The transaction takes its read lock with the first read, and keeps it until the connection is closed.
        connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;").ok()?;
        Some(connection)
    };
    // A writer that begins just now looks like one that died and left a journal. The first state passes, the second does not: so it is
    // tried for a while.
    let started = Instant::now();
    let mut locked = lock();
    for _ in 0..LOOKS {
        if locked.is_some() || started.elapsed() > timeout {
            break;
        }
        std::thread::sleep(BETWEEN_LOOKS);
        locked = lock();
    }
    let connection = locked?;
    let done = read();
    drop(connection);
    Some(done)
}

/// How often a database that seems to have been left by a dead writer is looked at again.
const LOOKS: u32 = 20;

/// The pause between two of these looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Copies a database whose writer died, with what it left beside it, to `to`, and brings the copy to its last commit.
pub fn recover_copy(from: &Path, to: &Path) -> Result<()> {
    // Without `-shm`: SQLite makes that index anew from the log.
    for end in ["", "-wal", "-journal"] {
        match copy_file(&sibling(from, end), &sibling(to, end)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound || end.is_empty() => {
                return Err(e).while_doing(|| format!("copying the database {}", from.display()));
            }
            _ => {}
        }
    }
    let recover = || -> rusqlite::Result<()> {
        let copy = Connection::open(to)?;
        // The first read rolls the journal back, or plays the log in.
        copy.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        copy.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    };
    recover().map_err(|e| diagnose(e, &format!("recovering a copy of {}", from.display())))
}

/// Copies a regular file. A link is not followed: it may lead out of the tree.
fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut file = open_regular_itself(from)?;
    let mut copy = private::create_new(to)?;
    std::io::copy(&mut file, &mut copy).map(|_| ())
}

/// Whether what stands beside a database under the names of its side files, if anything does, can be opened without waiting
/// and without leaving the tree: regular files.
pub fn has_usual_side_files(path: &Path) -> bool {
    DATABASE_SIDE_SUFFIXES.iter().all(|end| {
        let beside = path_from_bytes(&[path_bytes(path), end].concat());
        std::fs::symlink_metadata(beside).map_or(true, |meta| meta.is_file())
    })
}

/// Copies a database at one moment into the new file `to`, while others may be writing it.
///
/// The original is opened for reading alone and is not changed. Errors: `busy` past the timeout, `corrupt`, `io_error`.
pub fn copy_database(from: &Path, to: &Path, timeout: Duration) -> Result<()> {
    let doing = format!("copying the database {}", from.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copy = || -> rusqlite::Result<bool> {
        let source = Connection::open_with_flags(from, flags)?;
        source.busy_timeout(timeout)?;
        // Without this, closing would write the log of a program that died into its database.
        source.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let mut target = Connection::open(to)?;
        // A copy that is cut off is thrown away, so it needs no journal.
        target.query_row("PRAGMA journal_mode=OFF", [], |_| Ok(()))?;
        let backup = Backup::new(&source, &mut target)?;
        let started = Instant::now();
        loop {
            use rusqlite::backup::StepResult as S;
            // All pages in one step: between two steps a writer would make the copy begin again.
            match backup.step(-1)? {
                S::Done => return Ok(true),
                S::Busy | S::Locked if started.elapsed() < timeout => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                S::More => {}
                _ => return Ok(false),
            }
        }
    };
    match copy() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Diagnosis::new(Code::Busy, format!("{doing}: another program is writing it."))),
        Err(error) => Err(diagnose(error, &doing)),
    }
}
