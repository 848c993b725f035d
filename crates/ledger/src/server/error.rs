//! What the server and the way to it report, in the words and codes of the contract.

use ic_base::{Code, Diagnosis};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::server_url::ServerUrl;

/// What a failure means for the transaction in which it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// Another transaction was in the way: the same may go well at once.
    Conflict,
    /// The connection is lost, or leads to a server that cannot be written any more.
    Lost,
    /// It fails however often it is tried.
    Final,
}

pub(super) fn fault_of(error: &Error) -> ServerFault {
    let Some(code) = error.code() else {
        // An error of encoding or decoding in this program does not mean that the connection is lost.
        let is_own =
            std::error::Error::source(error).is_some_and(|source| source.downcast_ref::<std::io::Error>().is_none());
        return if error.is_closed() || !is_own { ServerFault::Lost } else { ServerFault::Final };
    };
    match *code {
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => ServerFault::Conflict,
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::READ_ONLY_SQL_TRANSACTION
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => ServerFault::Lost,
        // Class 08: the connection. PgBouncer says so, too, when its server went away.
        ref code if code.code().starts_with("08") => ServerFault::Lost,
        _ => ServerFault::Final,
    }
}

/// The diagnosis for an error of the server; `doing` completes "while ...".
pub(super) fn diagnose(error: Error, url: &ServerUrl, doing: &str) -> Diagnosis {
    let code = code_of(&error);
    let said = said(&error);
    let diagnosis = match code {
        Code::NoLedger => {
            Diagnosis::new(code, format!("There is no ledger {url}: {said}.")).detail("db", url.to_string())
        }
        Code::Unreachable => {
            let what = if error.as_db_error().is_some() { "turns away" } else { "cannot be reached" };
            Diagnosis::new(code, format!("{doing}: the server of {url} {what}: {said}.")).detail("db", url.to_string())
        }
        _ => Diagnosis::new(code, format!("{doing}: {said}.")),
    };
    let diagnosis = match hint_for(code, &error) {
        Some(hint) => diagnosis.hint(hint),
        None => diagnosis,
    };
    diagnosis.caused_by(error)
}

/// What an error says, with what caused it.
pub(super) fn said(error: &Error) -> String {
    error.as_db_error().map_or_else(|| sources(error), |db| db.message().to_owned())
}

fn code_of(error: &Error) -> Code {
    let Some(code) = error.code() else {
        return if fault_of(error) == ServerFault::Lost { Code::Unreachable } else { Code::Internal };
    };
    match *code {
        SqlState::LOCK_NOT_AVAILABLE
        | SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::QUERY_CANCELED => Code::Busy,
        SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME | SqlState::INVALID_CATALOG_NAME => Code::NoLedger,
        SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => Code::InvalidValue,
        SqlState::INSUFFICIENT_PRIVILEGE
        | SqlState::INVALID_PASSWORD
        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Code::PermissionDenied,
        SqlState::DISK_FULL => Code::DiskFull,
        // The version was compared before, so a column that is missing was removed from outside.
        SqlState::DATA_CORRUPTED
        | SqlState::INDEX_CORRUPTED
        | SqlState::UNDEFINED_COLUMN
        | SqlState::UNDEFINED_FUNCTION => Code::Corrupt,
        SqlState::IO_ERROR => Code::Io,
        _ if fault_of(error) == ServerFault::Lost => Code::Unreachable,
        _ => Code::Internal,
    }
}

fn hint_for(code: Code, error: &Error) -> Option<&'static str> {
    match code {
        Code::Busy if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            Some("all connections of the server, or of the role, are taken: try again, or put a pooler in front of it")
        }
        Code::Busy if error.code() == Some(&SqlState::QUERY_CANCELED) => {
            Some("it was cancelled on the server; try again")
        }
        Code::Busy => Some("another process is writing; try again, or give --busy-timeout more time"),
        Code::DiskFull => Some("the disk of the server is full"),
        Code::NoLedger if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {
            Some("make the database first, or name another: docs/FLEET.md, Setting it up")
        }
        Code::Unreachable if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
            Some("it can only be read: a standby, or a role or database that is read-only by default")
        }
        Code::Corrupt => Some("see what else is wrong: ic health; restore it from a backup"),
        Code::NoLedger => Some("create it with: ic init --db URL"),
        Code::Unreachable => Some("nothing was changed; see whether it answers: pg_isready -h HOST -p PORT"),
        Code::PermissionDenied if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            Some("the role of the connection lacks a right; which role needs which: docs/FLEET.md, Setting it up")
        }
        Code::PermissionDenied => Some(
            "is the user right (postgres://USER@HOST/..., PGUSER)? the password is that of PGPASSWORD, PGPASSFILE or ~/.pgpass",
        ),
        _ => None,
    }
}

fn sources(error: &Error) -> String {
    let mut said = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        let more = source.to_string();
        // Some errors have the text of their cause in their own.
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        next = source.source();
    }
    said
}

/// A commit without an event whose answer was lost, and cannot be had any more.
pub(super) fn in_doubt(url: &ServerUrl, error: &Diagnosis) -> Diagnosis {
    Diagnosis::new(
        Code::Unreachable,
        format!(
            "The connection to {url} was lost while a change was committed, and it is not known whether it happened: {}",
            error.message()
        ),
    )
    .hint("once the server is back, look before you try again; a cursor's position: ic events cursor list")
    .detail("db", url.to_string())
}

/// The same of a commit that appended event `seq`.
pub(super) fn unknown(url: &ServerUrl, error: &Diagnosis, seq: i64) -> Diagnosis {
    Diagnosis::new(
        Code::Unreachable,
        format!("The connection to {url} was lost while event {seq} was committed, and the server cannot be asked whether it is there: {}", error.message()),
    )
    .hint(format!("once the server is back, look before you try again: ic events tail --since {}", seq - 1))
    .detail("db", url.to_string())
    .detail("seq", seq)
}
