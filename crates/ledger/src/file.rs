//! A ledger in a file of SQLite.
//!
//! Locking: SQLite's write-ahead log. Any number of readers see a snapshot each; writers take turns, and every
//! write transaction begins IMMEDIATE, because a deferred one that upgrades fails at once with BUSY_SNAPSHOT.
//! A waiting process polls with short random pauses (with SQLite's own back-off, one of dozens of processes starves).
//! Durability: `synchronous=FULL`, so that what was acknowledged survives a loss of power. The commit is the one flush of a call: the
//! log stays for the next call while it is small ([`crate::log`]).

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use ic_base::{Code, Context, Diagnosis, Result};
use rusqlite::Connection;

use crate::connection::{Alone, InAHurry, OpenOptions, OpenedLedger, configure, connect, no_room, run_kept};
use crate::error::{diagnose, no_ledger};
use crate::lock::{HeldLock, Rank};
use crate::log_upkeep::{Behind, Remembered};
use crate::transaction::{Snapshot, Transaction};
use crate::{faults, log, migrate};

/// An open ledger of the newest schema.
pub(crate) struct FileLedger {
    connection: Connection,
    in_a_hurry: InAHurry,
    alone: Option<Alone>,
    path: PathBuf,
    remembered: RefCell<Remembered>,
    /// Opened for reading alone: nothing is written, to the ledger or beside it.
    is_look: bool,
}

impl FileLedger {
    /// Opens the ledger at `path`, and migrates it first if it is of an older schema (after a backup).
    ///
    /// Errors: `no_ledger`, `newer_schema`, `foreign_database`, `busy`, `corrupt`, `permission_denied`, `migration_failed`,
    /// `foreign_log`.
    pub(crate) fn open(path: &Path, options: OpenOptions, context: &Context) -> Result<Self> {
        require_file(path)?;
        // Before SQLite opens the file: its first read plays the log in, whichever file the log was written for.
        let mut remembered = Remembered::before_opening(path, options)?;
        let mut opened = connect(path, options)?;
        if migrate::version_of(&opened.connection, path)? != migrate::LATEST {
            // A migration writes, and a ledger on a full disk can only be read.
            if opened.alone.is_some() {
                return Err(no_room(path));
            }
            migrate::bring_up_to_date(&mut opened.connection, path, options, context)?;
            // The new schema may be in the log alone, and other processes read it from the file.
            remembered.keep_in_file();
        }
        Self::new(opened, path, remembered, false)
    }

    /// Opens the ledger at `path` for reading alone: it is never migrated, and refuses writes.
    ///
    /// `None` if it is of an older schema. Errors: as of [`FileLedger::open`].
    pub(crate) fn open_to_look(path: &Path, options: OpenOptions) -> Result<Option<Self>> {
        require_file(path)?;
        let remembered = Remembered::before_opening(path, options)?;
        let opened = connect(path, options)?;
        opened.connection.execute_batch("PRAGMA query_only=ON").map_err(|e| diagnose(e, "configuring the ledger"))?;
        if migrate::version_of(&opened.connection, path)? != migrate::LATEST {
            return Ok(None);
        }
        Self::new(opened, path, remembered, true).map(Some)
    }

    fn new(opened: OpenedLedger, path: &Path, mut remembered: Remembered, is_look: bool) -> Result<Self> {
        let OpenedLedger { connection, in_a_hurry, alone } = opened;
        remembered.compare(&connection)?;
        // The log is folded in where the store is told of it.
        connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(|e| diagnose(e, "configuring the ledger"))?;
        let remembered = RefCell::new(remembered);
        Ok(Self { connection, in_a_hurry, alone, path: path.to_owned(), remembered, is_look })
    }

    /// A ledger in memory, for tests of the crates above.
    pub(crate) fn in_memory() -> Result<Self> {
        let mut connection = Connection::open_in_memory().map_err(|e| diagnose(e, "opening a ledger in memory"))?;
        configure(&connection)?;
        migrate::create_schema(&mut connection, &Context::system())?;
        let opened = OpenedLedger { connection, in_a_hurry: InAHurry::default(), alone: None };
        Self::new(opened, Path::new(":memory:"), Remembered::nothing(), false)
    }

    /// Runs `read` over one consistent view of the ledger.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        // Deferred: the view is taken with the first read, and no writer waits for it.
        self.statement("BEGIN DEFERRED", "reading the ledger")?;
        let result = read(&Snapshot::of_file(&self.connection));
        // A failure to end a read loses nothing, and must not hide what was read.
        let _ = run_kept(&self.connection, "ROLLBACK");
        result
    }

    /// Runs `write` in one transaction and commits it, durably, if it returns `Ok`; else nothing is changed.
    ///
    /// The closure may be run again by other back ends, so it has no effects outside the transaction.
    /// Errors: `busy` when other writers held the ledger past the timeout; `disk_full`; `ledger_behind`.
    pub(crate) fn write<T>(&self, mut write: impl FnMut(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.require_room()?;
        self.require_newest()?;
        // The last rank: every process needs the ledger, so no process waits for another lock while it holds this one.
        let _held = HeldLock::new(Rank::Ledger);
        self.statement("BEGIN IMMEDIATE", "waiting for the ledger")?;
        // IMMEDIATE above: the closure never meets BUSY, so it runs once here.
        match write(&Transaction::of_file(&self.connection)) {
            Ok(value) => match self.statement("COMMIT", "committing to the ledger") {
                Ok(()) => {
                    faults::statement("-- committed");
                    // After the commit: the note may tell less than what is durable, and never more (`note.rs`).
                    self.remembered.borrow_mut().committed(&self.connection);
                    Ok(value)
                }
                Err(error) => {
                    self.abandon();
                    Err(error)
                }
            },
            Err(error) => {
                self.abandon();
                Err(error)
            }
        }
    }

    /// Runs `work` without waiting for other writers: a write that would have to wait is `busy` at once.
    pub(crate) fn at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        // The value of before is restored at the end, because calls may be nested.
        let before = self.in_a_hurry.swap(true, Relaxed);
        let result = work();
        self.in_a_hurry.store(before, Relaxed);
        result
    }

    /// Rebuilds the file and empties its log, so that nothing of what was overwritten is left in them.
    ///
    /// Errors: `busy` if a process reads the ledger past the timeout; what was committed stays committed.
    pub(crate) fn wipe(&self) -> Result<()> {
        self.require_room()?;
        // Zeroing what is freed (secure_delete) is not enough: pages that split as the file grew keep copies of rows in
        // their unused parts.
        self.remembered.borrow_mut().file_changes(&self.connection);
        // The log still has the pages of before. TRUNCATE empties it, which works only while no process reads from it.
        faults::statement("VACUUM");
        self.connection
            .execute_batch("VACUUM")
            .and_then(|()| self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)))
            .and_then(|blocked: bool| if blocked { Err(still_read()) } else { Ok(()) })
            .map_err(|e| {
                diagnose(e, "the event is redacted, but its text may still be in the file's free space")
                    .hint("once no other process uses the ledger: sqlite3 \"$(ic where)\" 'VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'")
            })
    }

    /// A number that changes whenever another process has committed; cheap enough to poll.
    ///
    /// Errors: `disk_full` where the disk has no room to share the ledger: a process that waited there would lock all others out.
    pub(crate) fn data_version(&self) -> Result<i64> {
        self.require_room()?;
        self.connection
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .map_err(|e| diagnose(e, "watching the ledger"))
    }

    /// The newest event of the ledger and of what its store remembers, if the store has held a newer one or another.
    pub(crate) fn behind(&self) -> Option<Behind> {
        self.remembered.borrow().behind().cloned()
    }

    /// Errors: `ledger_behind` if the store remembers a newer event than the ledger has.
    pub(crate) fn require_newest(&self) -> Result<()> {
        self.remembered.borrow().require_newest()
    }

    /// What was just written is read by others from the file alone.
    pub(crate) fn keep_in_file(&self) {
        self.remembered.borrow_mut().keep_in_file();
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn require_room(&self) -> Result<()> {
        if self.alone.is_some() { Err(no_room(&self.path)) } else { Ok(()) }
    }

    fn statement(&self, sql: &str, doing: &str) -> Result<()> {
        faults::statement(sql);
        run_kept(&self.connection, sql).map_err(|e| diagnose(e, doing))
    }

    /// Rolls back an unfinished transaction; if that fails too, closing the connection does it.
    fn abandon(&self) {
        // After some errors, as on a full disk, SQLite has rolled back by itself. A second ROLLBACK would be an error.
        if !self.connection.is_autocommit() {
            let _ = run_kept(&self.connection, "ROLLBACK");
        }
    }
}

impl Drop for FileLedger {
    fn drop(&mut self) {
        // Without room nothing can be written, and a ledger opened for reading is not changed.
        if !self.is_look && self.alone.is_none() {
            self.remembered.get_mut().close(&self.connection);
        // At the last close SQLite would play the log into the file.
        } else if log::length(&log::real(&self.path)) > 0 {
            log::leave(&self.connection);
        }
    }
}

/// Errors: `no_ledger` if nothing, or nothing yet, is there; `permission_denied`.
fn require_file(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        // A crash while a ledger is made may leave an empty file, and SQLite would take that for a new database.
        Ok(meta) if meta.is_file() && meta.len() > 0 => Ok(()),
        Ok(meta) if meta.is_file() => Err(no_ledger(path, "is empty")),
        Ok(_) => Err(no_ledger(path, "is not a file")),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Diagnosis::new(Code::PermissionDenied, format!("The ledger {} cannot be read: {e}.", path.display())))
        }
        Err(_) => Err(no_ledger(path, "does not exist")),
    }
}

/// The error if a process still reads the log past the timeout: a checkpoint reports that as a value.
fn still_read() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
}

#[cfg(test)]
mod tests {
    use super::FileLedger;

    #[test]
    fn a_failed_write_leaves_nothing() {
        let ledger = FileLedger::in_memory().unwrap();
        let before = ledger.read(count).unwrap();
        let failed: ic_base::Result<()> = ledger.write(|tx| {
            tx.execute("INSERT INTO event_cursors(name, scope, seq, updated_at) VALUES ('a', '', 1, 1)", &[])?;
            Err(ic_base::Diagnosis::new(ic_base::Code::Conflict, "no"))
        });
        assert!(failed.is_err());
        assert_eq!(ledger.read(count).unwrap(), before);
    }

    #[test]
    fn a_look_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ic.db");
        let options = crate::connection::OpenOptions::default();
        assert!(FileLedger::open_to_look(&path, options).is_err());
        assert!(!path.exists());
        crate::migrate::create(&path, options, &ic_base::Context::system()).unwrap();
        let ledger = FileLedger::open_to_look(&path, options).unwrap().expect("of the newest schema");
        let write = ledger.write(|tx| {
            tx.execute("INSERT INTO event_cursors(name, scope, seq, updated_at) VALUES ('a', '', 1, 1)", &[])
        });
        assert!(write.is_err());
        assert_eq!(ledger.read(count).unwrap(), Some(0));
        drop(ledger);
        // An older one stays what it is.
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA user_version = 1").unwrap();
        drop(connection);
        assert!(FileLedger::open_to_look(&path, options).unwrap().is_none());
        let connection = rusqlite::Connection::open(&path).unwrap();
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, 1);
    }

    fn count(snapshot: &crate::transaction::Snapshot<'_>) -> ic_base::Result<Option<i64>> {
        snapshot.query_opt("SELECT count(*) FROM event_cursors", &[], |row| row.get(0))
    }

    /// Earlier versions can corrupt a write-ahead log on reset: <https://sqlite.org/wal.html#walresetbug>.
    #[test]
    fn sqlite_is_new_enough() {
        assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
    }

    #[test]
    fn the_connection_is_strict() {
        let ledger = FileLedger::in_memory().unwrap();
        for (pragma, value) in
            [("foreign_keys", 1), ("recursive_triggers", 1), ("trusted_schema", 0), ("synchronous", 2)]
        {
            let found: i64 = ledger.connection().query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap();
            assert_eq!(found, value, "{pragma}");
        }
    }
}
