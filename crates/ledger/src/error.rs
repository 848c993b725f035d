//! What SQLite reports, in the words and codes of the contract.

use std::path::Path;

use ic_base::{Code, Diagnosis};
use rusqlite::ErrorCode;

/// The hint for a full disk. A prune works there, because it uses the space of the reserve.
pub(crate) const NO_ROOM: &str = "free some space, or remove old checkpoints: ic checkpoint prune; then see whether anything is unfinished: ic status";

/// The diagnosis for an SQLite error; `doing` completes "while ...".
pub(crate) fn diagnose(error: rusqlite::Error, doing: &str) -> Diagnosis {
    let code = match error.sqlite_error_code() {
        // FileLockingProtocolFailed: others were setting up or removing the log for as long as SQLite tries, which is ten seconds.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => Code::Busy,
        Some(ErrorCode::DiskFull) => Code::DiskFull,
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Code::PermissionDenied,
        Some(ErrorCode::NotADatabase) => Code::ForeignDatabase,
        Some(ErrorCode::DatabaseCorrupt) => Code::Corrupt,
        Some(ErrorCode::SystemIoFailure) if is_out_of_space(&error) => Code::DiskFull,
        Some(ErrorCode::SystemIoFailure) if is_cut_off(&error) => Code::Corrupt,
        Some(ErrorCode::SystemIoFailure) => Code::Io,
        None if is_unreadable(&error) => Code::Corrupt,
        _ => Code::Internal,
    };
    let diagnosis = Diagnosis::new(code, format!("{doing}: {error}."));
    let diagnosis = match hint_for(code) {
        Some(hint) => diagnosis.hint(hint),
        None => diagnosis,
    };
    diagnosis.caused_by(error)
}

/// True when the shared memory of the write-ahead log could not grow: the file system is full
/// (<https://sqlite.org/rescode.html#ioerr_shmsize>).
pub fn is_out_of_space(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

/// True when the file ends within a page: it was cut off (<https://sqlite.org/rescode.html#ioerr_short_read>).
fn is_cut_off(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}

/// True for a value that is not what its column must hold.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    matches!(
        error,
        E::FromSqlConversionFailure(..) | E::InvalidColumnType(..) | E::IntegralValueOutOfRange(..) | E::Utf8Error(..)
    )
}

fn hint_for(code: Code) -> Option<&'static str> {
    match code {
        Code::Busy => Some("another process is writing; try again, or give --busy-timeout more time"),
        Code::DiskFull => Some(NO_ROOM),
        Code::PermissionDenied => Some(
            "the ledger's directory and files (-wal and -shm too) must be readable and writable by you: ic where; \
             if they are, see: ic health",
        ),
        Code::Corrupt => Some("run `ic health`; copy the file before anything else"),
        Code::ForeignDatabase => Some("this file is not a ledger; see: ic where"),
        Code::Io => Some("check the disk and its free space; see: ic health"),
        _ => None,
    }
}

/// True when waiting a little may help.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Another process held the ledger past the timeout; `doing` completes "while ...".
pub(crate) fn busy(doing: &str) -> Diagnosis {
    let diagnosis = Diagnosis::new(Code::Busy, format!("{doing}: another process holds it."));
    match hint_for(Code::Busy) {
        Some(hint) => diagnosis.hint(hint),
        None => diagnosis,
    }
}

/// A statement that must change one row did not.
pub(crate) fn changed_other_than_one(rows: u64, sql: &str) -> Diagnosis {
    Diagnosis::new(
        Code::Internal,
        format!("A statement changed {rows} rows where it must change one; nothing was changed: {sql}"),
    )
}

/// There is no ledger at `path`, because it `why` ("does not exist").
pub(crate) fn no_ledger(path: &Path, why: &str) -> Diagnosis {
    Diagnosis::new(Code::NoLedger, format!("The ledger {} {why}.", path.display()))
        .hint(format!("create one with: ic init --db {}", ic_base::shell_word(&path.to_string_lossy())))
        .detail("db", path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use ic_base::Code;
    use rusqlite::{Error, ffi};

    use super::diagnose;

    #[test]
    fn no_space_for_shared_memory_is_a_full_disk() {
        let code = |extended| diagnose(Error::SqliteFailure(ffi::Error::new(extended), None), "x").code();
        assert_eq!(code(ffi::SQLITE_IOERR_SHMSIZE), Code::DiskFull);
        assert_eq!(code(ffi::SQLITE_IOERR_READ), Code::Io);
        assert_eq!(code(ffi::SQLITE_IOERR_SHORT_READ), Code::Corrupt);
    }

    #[test]
    fn a_log_that_others_set_up_for_too_long_is_busy() {
        let error = |extended| diagnose(Error::SqliteFailure(ffi::Error::new(extended), None), "x");
        assert_eq!(error(ffi::SQLITE_PROTOCOL).code(), Code::Busy);
        assert!(error(ffi::SQLITE_PROTOCOL).get_hint().is_some_and(|hint| hint.contains("try again")));
        assert_eq!(error(ffi::SQLITE_BUSY_RECOVERY).code(), Code::Busy);
    }
}
