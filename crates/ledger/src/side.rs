//! A database beside the ledger, for content that must never hold up the ledger: what is large, and named by its hash.
//!
//! Locking and compatibility: a write-ahead log, as for the ledger; the file has its own application id and version.
//! Cost: content is appended in short transactions that do not wait for the disk; [`Durability::Synced`] on the last one
//! makes them all durable, because the log is one file that is written in order.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rusqlite::Connection;

use crate::connection::{
    Alone, InAHurry, OpenOptions, OpenedLedger, configure, marked_read_only, no_room, open, run_kept, use_wal,
};
use crate::error::diagnose;
use crate::lock::{HeldLock, Rank};
use crate::transaction::{Snapshot, Transaction};
use crate::{faults, log, private};

mod log_owner;
mod space;

pub use log_owner::accept_side;
use log_owner::require_own_log;

/// What a side database is made of.
#[derive(Debug, Clone, Copy)]
pub struct SideSchema {
    /// Marks the file as ours.
    pub application_id: i32,
    /// The version of `sql`.
    pub version: i32,
    /// Bytes a page, a power of two from 512 to 65536.
    pub page_size: u32,
    /// The statements that make its tables, run once in an empty file.
    pub sql: &'static str,
    /// A query for the id of the ledger that owns it.
    pub owner: &'static str,
    /// A query for a number that grows with what is kept: a file with a smaller one is an older state of it.
    pub age: &'static str,
    /// The suffix that makes its name the name of the lock that its writers hold.
    pub lock: &'static str,
    /// A query for a text that tells the object of the age `?1` from another object of that age.
    pub at_age: &'static str,
    /// A query for the id that the file got when it was made; no other file of the same owner has it.
    pub made: &'static str,
}

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives the death of the process, but perhaps not a loss of power.
    Buffered,
    /// It, and every commit before it, survives a loss of power.
    Synced,
}

/// An open side database.
pub struct SideDatabase {
    connection: Connection,
    in_a_hurry: InAHurry,
    alone: Option<Alone>,
    path: PathBuf,
    schema: SideSchema,
    options: OpenOptions,
    /// Its log held something before it was opened.
    had_log: bool,
    /// It was made by this process.
    is_new: bool,
    /// Whether this connection committed anything, so that its log is noted when it is closed.
    has_written: Cell<bool>,
    /// The log that was noted last by this process.
    noted: Cell<Option<log::Salts>>,
}

impl SideDatabase {
    /// Opens the database at `path`, and makes it (mode 0600) if there is none.
    ///
    /// Errors: `foreign_database`, `newer_schema`, `busy`, `corrupt`, `disk_full`, `permission_denied`.
    pub fn open(path: &Path, schema: &SideSchema, options: OpenOptions) -> Result<Self> {
        let doing = || format!("opening {}", path.display());
        // Made here and not by SQLite: content must have mode 0600 from its first byte on.
        match private::create_new(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                private::mend(path).while_doing(doing)?;
            }
            made => made.map(drop).while_doing(doing)?,
        }
        // Asked before SQLite opens the file, because an opening may make a log.
        let had_log = log::length(path) > 0;
        let is_strange = require_own_log(path, schema, options).map_err(|e| damaged(path, e))?;
        let OpenedLedger { connection, in_a_hurry, alone } =
            open(path, options, &doing()).map_err(|e| damaged(path, e))?;
        let path = path.to_owned();
        let mut side = Self {
            connection,
            in_a_hurry,
            alone,
            path,
            schema: *schema,
            options,
            had_log,
            is_new: false,
            // Counts as written, so that the note is updated at the end and the next call need not compare file and log again.
            has_written: Cell::new(is_strange),
            noted: Cell::new(None),
        };
        // It is new, or the process that made it died before its tables were there.
        if side.pragma("user_version")? == 0 {
            side.create()?;
            side.is_new = true;
        }
        configure(&side.connection)?;
        side.check()?;
        Ok(side)
    }

    /// Makes sure that it has a write-ahead log: a database that was moved into its place has none.
    pub fn use_log(&self) -> Result<()> {
        use_wal(&self.connection, self.options.busy_timeout)
    }

    /// Closes it without a trace: what is not ours stays as it was found, to the byte.
    pub fn leave(self) {
        if self.had_log {
            // The process that closes a database last writes its log into it. Only a log that this look made is removed by closing.
            log::leave(&self.connection);
        }
    }

    /// Closes it and gives its file another name in the same directory. No other process may have it open.
    ///
    /// Errors: `busy` if another process has: then it is whole where it is.
    pub fn rename(self, to: &Path) -> Result<()> {
        self.require_room()?;
        // A log belongs to the name of its file: without it the database is one file, and one rename moves it whole.
        faults::statement("PRAGMA journal_mode=DELETE");
        self.connection
            .query_row("PRAGMA journal_mode=DELETE", [], |row| row.get::<_, String>(0))
            .map_err(|e| diagnose(e, "moving the object store"))?;
        let from = self.path.clone();
        drop(self);
        faults::statement("-- renaming the object store");
        // First the content is made durable, then the name: after a loss of power the name leads to a whole
        // file.
        let doing = || format!("moving {} to {}", from.display(), to.display());
        std::fs::File::open(&from).and_then(|file| file.sync_all()).while_doing(doing)?;
        std::fs::rename(&from, to).while_doing(doing)?;
        sync_directory(to).while_doing(doing)?;
        faults::statement("-- renamed");
        Ok(())
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether there is a database at `path`, perhaps unfinished.
    pub fn exists(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0)
    }

    /// The path of the database's file, as it was given to [`SideDatabase::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a view that every [`SideDatabase::read`] shares until [`SideDatabase::close_view`]: many small reads pay for one. Nothing may be written
    /// until it is closed.
    pub fn open_view(&self) -> Result<()> {
        self.execute("BEGIN DEFERRED")
    }

    /// Ends what [`SideDatabase::open_view`] began.
    pub fn close_view(&self) {
        // A failure to end a read loses nothing, and must not hide what was read.
        let _ = run_kept(&self.connection, "ROLLBACK");
    }

    /// Runs `read` over one consistent view.
    pub fn read<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        // SQLite has no transaction within a transaction: while a view is open, the read is part of it.
        if !self.connection.is_autocommit() {
            return read(&Snapshot::of_file(&self.connection)).map_err(|error| damaged(&self.path, error));
        }
        self.open_view()?;
        let result = read(&Snapshot::of_file(&self.connection));
        self.close_view();
        result.map_err(|error| damaged(&self.path, error))
    }

    /// Runs `write` in one transaction and commits it if it returns `Ok`; else nothing is changed.
    pub fn write<T>(&self, durability: Durability, write: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.require_room()?;
        // Set before BEGIN: within a transaction SQLite refuses to change it.
        let synchronous = match durability {
            Durability::Buffered => "NORMAL",
            Durability::Synced => "FULL",
        };
        self.connection
            .execute_batch(&format!("PRAGMA synchronous={synchronous}"))
            .map_err(|e| diagnose(e, "configuring the object store"))?;
        let _held = HeldLock::new(Rank::Content);
        self.execute("BEGIN IMMEDIATE")?;
        let result = write(&Transaction::of_file(&self.connection)).and_then(|value| {
            self.execute("COMMIT")?;
            self.has_written.set(true);
            // A process that dies before this leaves a log without a note. The next opening compares it with the file.
            self.note_new_log();
            Ok(value)
        });
        // After some errors, as on a full disk, SQLite has rolled back by itself.
        if result.is_err() && !self.connection.is_autocommit() {
            // When this fails too, closing the connection rolls the transaction back.
            let _ = run_kept(&self.connection, "ROLLBACK");
        }
        result.map_err(|error| damaged(&self.path, error))
    }

    /// What SQLite finds wrong with the file; empty when nothing is.
    pub fn damage(&self) -> Result<Vec<String>> {
        let mut statement =
            self.connection.prepare("PRAGMA quick_check(20)").map_err(|e| diagnose(e, "checking the object store"))?;
        let lines = statement
            .query_map([], |row| row.get::<_, String>(0))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|e| diagnose(e, "checking the object store"))?;
        let marked = marked_read_only(&self.connection, &self.path).map(str::to_owned);
        Ok(lines.into_iter().filter(|line| line != "ok").chain(marked).collect())
    }

    fn create(&self) -> Result<()> {
        self.require_room()?;
        let schema = &self.schema;
        // Both only take effect on a file without pages.
        self.connection
            .execute_batch(&format!("PRAGMA page_size={}; PRAGMA auto_vacuum=INCREMENTAL;", schema.page_size))
            .map_err(|e| diagnose(e, "making the object store"))?;
        self.use_log()?;
        self.write(Durability::Synced, |_| {
            // Another process may have made it while this one waited for the lock.
            if self.pragma("user_version")? != 0 {
                return Ok(());
            }
            faults::statement("-- making the object store");
            self.connection
                .execute_batch(&format!(
                    "{}\nPRAGMA application_id={}; PRAGMA user_version={};",
                    schema.sql, schema.application_id, schema.version
                ))
                .map_err(|e| diagnose(e, "making the object store"))
        })
    }

    fn check(&self) -> Result<()> {
        let schema = &self.schema;
        let (application_id, version) = (self.pragma("application_id")?, self.pragma("user_version")?);
        let path = self.path.display();
        if application_id != schema.application_id {
            return Err(Diagnosis::new(Code::ForeignDatabase, format!("{path} is a database of another program."))
                .hint("move it away"));
        }
        if version > schema.version {
            return Err(Diagnosis::new(
                Code::NewerSchema,
                format!("{path} was written by a newer version of this program (schema {version})."),
            )
            .hint("use that version"));
        }
        Ok(())
    }

    fn pragma(&self, name: &str) -> Result<i32> {
        self.connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
            .map_err(|e| damaged(&self.path, diagnose(e, &format!("reading {}", self.path.display()))))
    }

    fn require_room(&self) -> Result<()> {
        if self.alone.is_some() { Err(no_room(&self.path)) } else { Ok(()) }
    }

    fn execute(&self, sql: &str) -> Result<()> {
        faults::statement(sql);
        run_kept(&self.connection, sql).map_err(|e| damaged(&self.path, diagnose(e, "using the object store")))
    }
}

impl Drop for SideDatabase {
    fn drop(&mut self) {
        // The log stays for the next process, which appends to it. The log of a new file is folded in: others read the file's kind
        // and owner without its log. Without room, nothing is changed.
        let stays = log::stays(&self.path) && !self.is_new;
        if stays && self.has_written.get() && self.alone.is_none() {
            self.remember_log();
        }
        if stays || (self.alone.is_some() && log::length(&self.path) > 0) {
            log::leave(&self.connection);
        }
    }
}

/// Turns SQLite's error about a file that it cannot read into one about the object store: a damaged ledger has another remedy.
fn damaged(path: &Path, error: Diagnosis) -> Diagnosis {
    // What SQLite reports has a source. The refusals of this module have none, and stay unchanged.
    let is_of_the_file = std::error::Error::source(&error).is_some();
    match error.code() {
        Code::Corrupt | Code::ForeignDatabase if is_of_the_file => Diagnosis::new(
            Code::Corrupt,
            format!("The object store {} is damaged: {}", path.display(), error.message()),
        )
        .hint("see what is lost, and remove it: ic checkpoint verify --repair")
        .caused_by(error),
        _ => error,
    }
}

/// Removes the database at `path` with its log; a missing one is no error. No process may have it open.
pub fn remove_side(path: &Path) -> Result<()> {
    // The database last: a log that outlived it would be played into the next database of that name.
    for suffix in ["-wal", "-shm", "-journal", ".head", ""] {
        faults::statement("-- removing a part of an object store");
        let part = log::sibling(path, suffix);
        match std::fs::remove_file(&part) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).while_doing(|| format!("removing {}", part.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn sync_directory(of: &Path) -> std::io::Result<()> {
    std::fs::File::open(of.parent().unwrap_or(Path::new("/")))?.sync_all()
}
