//! A database beside the ledger, for content that must never hold up the ledger: what is large, and named by its hash.
//!
//! Locking and compatibility: a write-ahead log, as for the ledger; the file has its own application id and version.
//! Cost: content is appended in short transactions that do not wait for the disk; [`Durability::Synced`] on the last one
//! makes them all durable, because the log is one file that is written in order.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rusqlite::{Connection, OpenFlags};

use crate::connection::{OpenOptions, configure, use_wal, wait_politely};
use crate::error::diagnose;
use crate::faults;
use crate::lock::{Held, Rank};
use crate::transaction::{Snapshot, Transaction};

/// What a side database is made of.
#[derive(Debug, Clone, Copy)]
pub struct SideSchema {
    /// Marks the file as ours.
    pub application_id: i32,
    /// The version of `sql`.
    pub version: i32,
    /// Bytes a page, a power of two from 512 to 65536.
    pub page_size: u32,
    /// Its tables.
    pub sql: &'static str,
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
pub struct Side {
    connection: Connection,
    path: PathBuf,
}

impl Side {
    /// Opens the database at `path`, and makes it (mode 0600) if there is none.
    ///
    /// Errors: `foreign_database`, `newer_schema`, `busy`, `corrupt`, `disk_full`, `permission_denied`.
    pub fn open(path: &Path, schema: &SideSchema, options: OpenOptions) -> Result<Self> {
        let doing = || format!("opening {}", path.display());
        let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path);
        match file {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(e).while_doing(doing),
            _ => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(|e| diagnose(e, &doing()))?;
        wait_politely(&mut connection, options.busy_timeout)?;
        let side = Self { connection, path: path.to_owned() };
        let found = side.pragma("user_version")?;
        if found == 0 {
            side.create(schema, options)?;
        }
        configure(&side.connection)?;
        side.check(schema)?;
        Ok(side)
    }

    /// Whether there is a database at `path`, perhaps unfinished.
    pub fn exists(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0)
    }

    /// The database's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `read` over one consistent view.
    pub fn read<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        self.execute("BEGIN DEFERRED")?;
        let result = read(&Snapshot::new(&self.connection));
        // A failure to end a read loses nothing, and must not hide what was read.
        let _ = self.connection.execute_batch("ROLLBACK");
        result
    }

    /// Runs `write` in one transaction and commits it if it returns `Ok`; else nothing is changed.
    pub fn write<T>(
        &self,
        durability: Durability,
        write: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let synchronous = match durability {
            Durability::Buffered => "NORMAL",
            Durability::Synced => "FULL",
        };
        self.connection
            .execute_batch(&format!("PRAGMA synchronous={synchronous}"))
            .map_err(|e| diagnose(e, "configuring the object store"))?;
        let _held = Held::new(Rank::Content);
        self.execute("BEGIN IMMEDIATE")?;
        let result = write(&Transaction::new(&self.connection)).and_then(|value| {
            self.execute("COMMIT")?;
            Ok(value)
        });
        if result.is_err() && !self.connection.is_autocommit() {
            // When this fails too, closing the connection takes the transaction back.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        result
    }

    /// Gives free pages back to the operating system and empties the log, so that the file is as small as its content.
    pub fn shrink(&self) -> Result<()> {
        faults::statement("PRAGMA incremental_vacuum");
        self.connection
            .prepare("PRAGMA incremental_vacuum")
            .and_then(|mut statement| {
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            })
            .and_then(|()| {
                self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            })
            .map(|_| ())
            .map_err(|e| diagnose(e, "shrinking the object store"))
    }

    /// Rebuilds the file, so that nothing of what was deleted is left in it. Returns whether that is so: while another process reads
    /// the file, its log keeps what that process sees.
    pub fn rebuild(&self) -> Result<bool> {
        faults::statement("VACUUM");
        self.connection
            .execute_batch("VACUUM")
            .and_then(|()| {
                self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            })
            .map(|busy| busy == 0)
            .map_err(|e| diagnose(e, "rebuilding the object store"))
    }

    /// What SQLite finds wrong with the file; empty when nothing is.
    pub fn damage(&self) -> Result<Vec<String>> {
        let mut statement = self
            .connection
            .prepare("PRAGMA quick_check(20)")
            .map_err(|e| diagnose(e, "checking the object store"))?;
        let lines = statement
            .query_map([], |row| row.get::<_, String>(0))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|e| diagnose(e, "checking the object store"))?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    fn create(&self, schema: &SideSchema, options: OpenOptions) -> Result<()> {
        // Both only take effect on a file without pages.
        self.connection
            .execute_batch(&format!("PRAGMA page_size={}; PRAGMA auto_vacuum=INCREMENTAL;", schema.page_size))
            .map_err(|e| diagnose(e, "making the object store"))?;
        use_wal(&self.connection, options.busy_timeout)?;
        self.write(Durability::Synced, |_| {
            // Another process may have been here meanwhile.
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

    fn check(&self, schema: &SideSchema) -> Result<()> {
        let (application_id, version) = (self.pragma("application_id")?, self.pragma("user_version")?);
        let path = self.path.display();
        if application_id != schema.application_id {
            return Err(Diagnosis::new(
                Code::ForeignDatabase,
                format!("{path} is a database of another program."),
            )
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
            .map_err(|e| diagnose(e, &format!("reading {}", self.path.display())))
    }

    fn execute(&self, sql: &str) -> Result<()> {
        faults::statement(sql);
        self.connection.execute_batch(sql).map_err(|e| diagnose(e, "using the object store"))
    }
}
