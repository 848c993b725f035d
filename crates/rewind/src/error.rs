//! Errors of SQLite about the application's database or an archive, with the words and codes of this program.

use std::path::Path;

use ic_base::{Code, Diagnosis};
use rusqlite::ErrorCode;
use thiserror::Error;

use crate::value::SqlScalar;

/// The anchor table has no task with this key. Nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("There is no task {task_id} in the table {table}.")]
pub struct UnknownTaskError {
    /// The key that was asked for.
    pub task_id: String,
    /// The table that was searched.
    pub table: String,
}

impl From<UnknownTaskError> for Diagnosis {
    fn from(error: UnknownTaskError) -> Self {
        Diagnosis::new(Code::UnknownTask, error.to_string())
            .hint("give a task that the table holds")
            .detail("task_id", error.task_id.as_str())
            .detail("table", error.table.as_str())
            .caused_by(error)
    }
}

/// Why an undo restored nothing, for callers that resume differently where nothing was left to do.
#[derive(Debug, Error)]
pub enum UndoError {
    /// All rows are in the tables already.
    #[error("The rows that the rewind {rewind_id} took away are all there.")]
    AllThere {
        /// The rewind whose archive it is.
        rewind_id: String,
    },
    /// It could not be done; the database is unchanged.
    #[error(transparent)]
    Failed(#[from] Diagnosis),
}

impl From<UndoError> for Diagnosis {
    fn from(error: UndoError) -> Self {
        let message = error.to_string();
        match error {
            UndoError::AllThere { .. } => Self::new(Code::NothingToUndo, message),
            UndoError::Failed(diagnosis) => diagnosis,
        }
    }
}

/// The diagnosis for an SQLite error; `doing` completes "while ...".
pub(crate) fn diagnose(error: rusqlite::Error, doing: &str) -> Diagnosis {
    let code = match error.sqlite_error_code() {
        // The last code: other processes set the log up or closed it for as long as SQLite tries.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => Code::Busy,
        Some(ErrorCode::DiskFull) => Code::DiskFull,
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Code::PermissionDenied,
        // It may also be a newer format of SQLite: `session::refused_format` looks into the header for that.
        Some(ErrorCode::NotADatabase) => Code::ForeignDatabase,
        Some(ErrorCode::DatabaseCorrupt) => Code::Corrupt,
        Some(ErrorCode::SystemIoFailure) if ic_ledger::is_out_of_space(&error) => Code::DiskFull,
        Some(ErrorCode::SystemIoFailure) => Code::Io,
        Some(ErrorCode::ConstraintViolation) => Code::RowConflict,
        // The application's schema needs a function, collation or module that does not exist here.
        Some(ErrorCode::Unknown) => Code::InvalidConfig,
        _ if matches!(error, rusqlite::Error::SqlInputError { .. }) => Code::InvalidConfig,
        None if is_unreadable(&error) => Code::Corrupt,
        _ => Code::Internal,
    };
    // Our statement is of no use to the person who must act.
    let message = match &error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    let diagnosis = Diagnosis::new(code, format!("{doing}: {message}."));
    let diagnosis = match hint_for(code) {
        Some(hint) => diagnosis.hint(hint),
        None => diagnosis,
    };
    diagnosis.caused_by(error)
}

/// True for a value that is not what its column must hold.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    matches!(error, E::FromSqlConversionFailure(..) | E::InvalidColumnType(..) | E::IntegralValueOutOfRange(..))
}

fn hint_for(code: Code) -> Option<&'static str> {
    match code {
        Code::Busy => Some("the application is using its database; try again, or give --busy-timeout more time"),
        Code::DiskFull => Some("free some space; nothing was changed"),
        Code::PermissionDenied => Some("the database, its -wal and -shm, and its directory must be writable by you"),
        Code::Corrupt => Some("check the file with `PRAGMA integrity_check`; keep a copy before anything else"),
        Code::ForeignDatabase => Some("name an SQLite database under rewind: database"),
        Code::Io => Some("check the disk and its free space"),
        Code::RowConflict => Some("a constraint or a trigger of the application refuses it; nothing was changed"),
        Code::InvalidConfig => Some("the schema needs a feature that is not built in here"),
        _ => None,
    }
}

/// The configuration does not fit the database.
pub(crate) fn misfit(message: impl Into<String>) -> Diagnosis {
    Diagnosis::new(Code::InvalidConfig, message).hint("see what the database has with: ic rewind inspect DB")
}

/// The error for a database that does not exist at `path`, or cannot be used because it `why`.
pub(crate) fn no_database(path: &Path, why: &str) -> Diagnosis {
    Diagnosis::new(Code::InvalidConfig, format!("The state database {} {why}.", path.display()))
        .hint("name it under rewind: database")
        .detail("database", path.to_string_lossy().into_owned())
}

/// Rows that refuse something; at most [`RowNames::LIMIT`] of them are named.
#[derive(Debug, Default)]
pub(crate) struct RowNames {
    names: Vec<String>,
    more: bool,
}

impl RowNames {
    /// The number of rows of one table that are named.
    pub(crate) const LIMIT: usize = 5;

    pub(crate) fn push(&mut self, name: String) {
        if self.names.len() < Self::LIMIT {
            self.names.push(name);
        } else {
            self.more = true;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// A refusal that says `what` and names the rows.
    pub(crate) fn refuse(&self, what: &str) -> Diagnosis {
        let more = if self.more { ", …" } else { "" };
        Diagnosis::new(Code::RowConflict, format!("{what}: {}{more}.", self.names.join(", ")))
            .detail("rows", self.names.clone())
    }
}

/// `tasks 'T-1'`, or `writes ('a', 3)` for a key of several columns.
pub(crate) fn row_name(table: &str, key: &[SqlScalar]) -> String {
    let shown: Vec<String> = key
        .iter()
        .map(|value| match value {
            SqlScalar::Text(text) => format!("'{text}'"),
            other => other.to_string(),
        })
        .collect();
    match shown.as_slice() {
        [one] => format!("{table} {one}"),
        several => format!("{table} ({})", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use ic_base::Code;
    use rusqlite::{Error, ffi};

    use super::diagnose;

    #[test]
    fn codes_say_what_is_wrong() {
        let code = |extended| diagnose(Error::SqliteFailure(ffi::Error::new(extended), None), "x").code();
        assert_eq!(code(ffi::SQLITE_IOERR_SHMSIZE), Code::DiskFull);
        assert_eq!(code(ffi::SQLITE_IOERR_READ), Code::Io);
        assert_eq!(code(ffi::SQLITE_LOCKED), Code::Busy);
        assert_eq!(code(ffi::SQLITE_PROTOCOL), Code::Busy);
        assert_eq!(code(ffi::SQLITE_CANTOPEN), Code::PermissionDenied);
        assert_eq!(code(ffi::SQLITE_MISUSE), Code::Internal);
        assert_eq!(diagnose(Error::QueryReturnedNoRows, "x").code(), Code::Internal);
    }
}
