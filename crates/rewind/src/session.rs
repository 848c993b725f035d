//! A connection to the application's database.
//!
//! Foreign keys are never enforced on it, so that no delete cascades unseen: queries check what they demand. The file itself is only opened
//! through SQLite, because closing it would release the locks that SQLite holds for this process.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, ToSql, params_from_iter};

use crate::error::{diagnose, no_database};
use crate::faults;
use crate::value::SqlScalar;

pub(crate) struct DatabaseSession {
    connection: Connection,
    path: PathBuf,
    patience: Duration,
    /// What the connection is used for, for the reader of an error.
    doing: String,
}

impl DatabaseSession {
    /// Opens an existing database of another program. Nothing is written.
    pub(crate) fn open(path: &Path, busy_timeout: Duration) -> Result<Self> {
        let path = std::path::absolute(path).while_doing(|| format!("resolving {}", path.display()))?;
        // For a missing file and for a directory, SQLite says the same: that it cannot open it.
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(no_database(&path, "is not a file")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(no_database(&path, "does not exist"));
            }
            Err(e) => return Err(e).while_doing(|| format!("looking for {}", path.display())),
        }
        // CREATE is left out: a database of another program is not made here.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let doing = format!("opening {}", path.display());
        let connection = Connection::open_with_flags(&path, flags).map_err(|e| diagnose(e, &doing))?;
        let doing_later = format!("using {}", path.display());
        let session = Self { connection, doing: doing_later, path, patience: busy_timeout };
        // SQLite opens a file without a look at it. Its format is read here for the first time, so these errors may be about that.
        match session.configure() {
            Ok(ic_ledger::APPLICATION_ID) => Err(Diagnosis::new(
                Code::ForeignDatabase,
                format!("{} is a ledger of ic, which is never rewound.", session.path.display()),
            )
            .hint("name the application's own database under rewind: database")),
            Ok(_) => Ok(session),
            Err(error) => Err(refused_format(&session.path, diagnose(error, &doing))),
        }
    }

    /// Returns the application id of the file.
    fn configure(&self) -> rusqlite::Result<i32> {
        // This comes first, because the statements below read the file, and another process may have locked it.
        self.connection.busy_timeout(self.patience)?;
        ic_sys::vec0::register(&self.connection)?;
        // Keys are checked by query instead, see `references`. Enforced, an ON DELETE CASCADE would remove rows that are in no archive.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        // Keeps a configuration from writing to the shadow tables of a virtual table.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // Set for each connection: a rewind that is reported as done is on the disk, whatever the application chose for itself.
        self.connection.execute_batch("PRAGMA synchronous=FULL")?;
        self.connection.query_row("PRAGMA application_id", [], |row| row.get(0))
    }

    /// The same connection for another purpose, which completes "while ...".
    pub(crate) fn doing(mut self, what: String) -> Self {
        self.doing = what;
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How long it waits for other connections.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Attaches the database at `path` as `name`. The file must exist.
    pub(crate) fn attach(&self, path: &Path, name: &str) -> Result<()> {
        let sql = format!("ATTACH ?1 AS {name}");
        faults::statement(&sql)?;
        self.connection
            .execute(&sql, [PathText(path)])
            .map(|_| ())
            .map_err(|e| diagnose(e, &format!("opening {}", path.display())))
    }

    /// Detaches what is attached as `name`, if anything is. It must not be called within a transaction.
    pub(crate) fn detach(&self, name: &str) {
        // SQLite refuses it where nothing is attached, which is what is wanted.
        let _ = self.connection.execute_batch(&format!("DETACH {name}"));
    }

    /// Runs one statement; returns the number of rows that it changed, without those that triggers changed.
    pub(crate) fn execute(&self, sql: &str, params: &[SqlScalar]) -> Result<u64> {
        faults::statement(sql)?;
        let run = || self.connection.prepare(sql)?.execute(params_from_iter(params));
        run().map(|n| n as u64).map_err(|e| self.diagnose(e))
    }

    /// Checks that SQLite could run a statement: that every function, collation and trigger which it needs exists here.
    pub(crate) fn can_run(&self, sql: &str) -> Result<()> {
        self.connection.prepare(sql).map(|_| ()).map_err(|e| self.diagnose(e))
    }

    /// Runs statements that return nothing and change no row.
    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        faults::statement(sql)?;
        self.connection.execute_batch(sql).map_err(|e| self.diagnose(e))
    }

    /// The results of `read` for every row.
    pub(crate) fn query_all<T>(
        &self,
        sql: &str,
        params: &[SqlScalar],
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        faults::statement(sql)?;
        let mut run = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare(sql)?.query_map(params_from_iter(params), |row| read(row))?.collect()
        };
        run().map_err(|e| self.diagnose(e))
    }

    /// The result of `read` for the only row of a query that always has one.
    pub(crate) fn query_one<T>(
        &self,
        sql: &str,
        params: &[SqlScalar],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        faults::statement(sql)?;
        self.connection.query_row(sql, params_from_iter(params), read).map_err(|e| self.diagnose(e))
    }

    /// Runs `read` over one consistent view.
    pub(crate) fn reading<T, E: From<Diagnosis>>(
        &self,
        read: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.batch("BEGIN DEFERRED")?;
        let result = read();
        // A failure to end a read loses nothing, and must not replace the result.
        let _ = self.connection.execute_batch("ROLLBACK");
        result
    }

    /// Runs `write` in one transaction that excludes other writers from its first statement. Commits it if `write` returns `Ok`; otherwise
    /// nothing is changed.
    pub(crate) fn writing<T, E: From<Diagnosis>>(
        &self,
        write: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        // Immediate: a transaction that reads first and writes later fails when the application wrote in between.
        self.batch("BEGIN IMMEDIATE")?;
        let result = write().and_then(|value| {
            self.batch("COMMIT")?;
            Ok(value)
        });
        if result.is_err() {
            // SQLite may have rolled it back already; when this fails otherwise, closing the connection rolls it back.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        result
    }

    fn diagnose(&self, error: rusqlite::Error) -> Diagnosis {
        diagnose(error, &self.doing)
    }
}

/// The error for a file that SQLite does not accept: its format may be too new for this SQLite.
fn refused_format(path: &Path, diagnosis: Diagnosis) -> Diagnosis {
    if diagnosis.code() != Code::ForeignDatabase || !is_newer_format(path) {
        return diagnosis;
    }
    Diagnosis::new(Code::NewerSchema, format!("{} has a file format that this SQLite does not know.", path.display()))
        .hint("use a newer version of this program")
}

/// Whether the header says that only a newer SQLite can read the file: <https://sqlite.org/fileformat.html#file_format_version_numbers>.
fn is_newer_format(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 20];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"SQLite format 3\0") && head[19] > 2
}

/// A path in SQLite's form: bytes, not necessarily UTF-8.
struct PathText<'a>(&'a Path);

impl ToSql for PathText<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_os_str().as_bytes())))
    }
}

/// An identifier in double quotes, for SQL.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
