//! The file of an archive, and the manifest in it.

use crate::error::diagnose;
use crate::faults;
use crate::value::SqlScalar;
use ic_base::{Code, Diagnose, Diagnosis, Result};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

// `icRw`: tells an archive from every other database.
pub(super) const APPLICATION_ID: i32 = 0x6963_5277;

// Raised when an older program could not read an archive any more: it then refuses it (`newer_schema`).
pub(super) const VERSION: i32 = 1;

/// The name under which an archive is attached.
pub(crate) const SCHEMA: &str = "ic_archive";

/// The path of an archive, which may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    path: PathBuf,
}

/// Whether the rows of an archive are gone from the application's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveState {
    /// They are there, as far as the application kept them: the rewind did not commit, or was undone without an audit row.
    Unused,
    /// They are gone: the rewind committed.
    Applied,
    /// They were restored by an undo.
    Undone,
}

/// The description of an archive that is stored in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveManifest {
    /// The rewind that made it.
    pub rewind_id: String,
    /// The task to which the rewind went; `None` for a mark without one.
    pub task_id: Option<String>,
    /// The order above which rows were removed; NULL: all rows.
    pub order: SqlScalar,
    /// The values of the anchor's scope columns.
    pub scope: Vec<(String, SqlScalar)>,
    /// When it was made, in Unix milliseconds.
    pub created_at: i64,
    /// The tables, in the order in which they were cut.
    pub tables: Vec<ArchivedTable>,
}

/// The rows of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedTable {
    /// The table's name, as it was declared.
    pub name: String,
    /// The columns that were copied.
    pub columns: Vec<String>,
    /// Whether the rowids were copied beside them.
    pub rowid: bool,
    /// The number of its rows in the archive.
    pub rows: u64,
    /// The SHA-256 of the text that made the table, and of its triggers', in hex.
    pub schema: String,
    /// For each foreign key of the table, at its place: the number of rows that already had no parent at that time.
    pub orphans: Vec<u64>,
}

impl Archive {
    /// The archive at `path`. The file is not opened.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a complete archive.
    pub fn exists(&self) -> Result<bool> {
        self.path.try_exists().while_doing(|| format!("looking for {}", self.path.display()))
    }

    /// Reads the description of the archive.
    ///
    /// Errors: `path_not_found` when there is none, `foreign_database`, `newer_schema`, `corrupt`.
    pub fn manifest(&self) -> Result<ArchiveManifest> {
        if !self.exists()? {
            return Err(Diagnosis::new(Code::PathNotFound, format!("There is no archive at {}.", self.path.display()))
                .hint("without it a rewind cannot be undone"));
        }
        let doing = || format!("reading the archive {}", self.path.display());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let read = || -> rusqlite::Result<(i32, i32, Option<String>)> {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(Duration::from_secs(1))?;
            let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
            let (id, version) = (pragma("application_id")?, pragma("user_version")?);
            // This is checked before the manifest is read: another file need not have such a table.
            if (id, version) != (APPLICATION_ID, VERSION) {
                return Ok((id, version, None));
            }
            // `max` gives a row even if the table is empty.
            let json = connection.query_row("SELECT max(json) FROM manifest", [], |row| row.get(0))?;
            // A NULL in its place is not JSON either.
            Ok((id, version, Some(json)))
        };
        let damaged = |why: String| Diagnosis::new(Code::Corrupt, format!("{}: {why}.", doing()));
        match read().map_err(|e| diagnose(e, &doing()))? {
            (_, _, Some(json)) => serde_json::from_str(&json).map_err(|e| damaged(e.to_string()).caused_by(e)),
            (APPLICATION_ID, version, None) => Err(Diagnosis::new(
                Code::NewerSchema,
                format!("{} was written by a newer version of this program (format {version}).", self.path.display()),
            )
            .hint("use that version")),
            _ => Err(Diagnosis::new(
                Code::ForeignDatabase,
                format!("{} is not an archive of a rewind.", self.path.display()),
            )),
        }
    }

    /// Deletes the archive, so that its rewind cannot be undone any longer. A missing file is no error.
    pub fn remove(&self) -> Result<()> {
        faults::statement("-- removing the archive")?;
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(e).while_doing(|| format!("removing {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// The `n`-th path, from 1, for an archive that was replaced by another one.
    pub fn aside(&self, n: usize) -> PathBuf {
        ic_ledger::sibling(&self.path, &format!(".{n}"))
    }

    /// Renames the archive, so that another one can be written and this one is kept.
    pub(crate) fn set_aside(&self) -> Result<()> {
        let doing = || format!("keeping {}", self.path.display());
        let mut n = 1;
        // `ID.db.1`, `ID.db.2`, ...: each may be the only copy of its rows, so none is replaced.
        while self.aside(n).try_exists().while_doing(doing)? {
            n += 1;
        }
        std::fs::rename(&self.path, self.aside(n)).while_doing(doing)
    }

    /// The path under which it is built.
    pub(super) fn partial(&self) -> PathBuf {
        ic_ledger::sibling(&self.path, ".partial")
    }
}

/// The table of an archive that has the rows of the `n`-th table.
pub(crate) fn rows_table(n: usize) -> String {
    //   manifest (json)               one row, the `ArchiveManifest`
    //   rows_0   (r, c0, c1, ...)     the first table that was cut: its hidden rowid, if it has one, and its stored columns
    format!("{SCHEMA}.rows_{n}")
}

/// The SHA-256 in hex of a table's own text and that of its triggers.
pub(crate) fn fingerprint(info: &crate::schema::TableInfo) -> String {
    use sha2::Digest;
    let mut hash = sha2::Sha256::new();
    hash.update(&info.sql);
    for trigger in &info.triggers {
        hash.update([0]);
        hash.update(&trigger.sql);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
