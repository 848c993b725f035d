//! Whether a database's file and the log beside it are one: SQLite plays any log into any file of its name.
//!
//! Nothing is written here: file and log stay unchanged.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnosis, Result, Timestamp};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::connection::{OpenOptions, open};
use crate::log::{self, Salts};
use crate::note::{LogNote, Stamp, StoreNote};
use crate::values;

/// Whether a log and its file are those of the note.
pub(crate) fn fits(note: &StoreNote, salts: Salts, meta: &Metadata) -> bool {
    let is_one = |log: &LogNote| log.salts == salts && log.file == Some(Stamp::of(meta));
    note.log.as_ref().is_some_and(is_one)
}

/// The file alone is read without a lock. Another process may be folding its log into it at this moment, so one look proves nothing.
const LOOKS: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(25);

/// Errors: `foreign_log` if a database is sound alone, and with its log it cannot be opened, or they are not one by `is_one` of the file
/// alone and of both.
pub(crate) fn require_together(
    path: &Path,
    options: OpenOptions,
    is_one: impl Fn(&Connection, &Connection) -> bool,
) -> Result<()> {
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN);
        }
        if !are_apart(path, options, &is_one)? {
            return Ok(());
        }
    }
    Err(foreign_log(path))
}

fn are_apart(path: &Path, options: OpenOptions, is_one: impl Fn(&Connection, &Connection) -> bool) -> Result<bool> {
    let opened = open(path, options, &format!("opening {}", path.display()));
    // A log of another file makes a sound file look damaged, so damage is looked into. Any other error is returned.
    if let Err(error) = opened.as_ref().map(drop)
        && error.code() != Code::Corrupt
    {
        return opened.map(|_| false);
    }
    let together = opened.ok().map(|opened| opened.connection);
    if let Some(both) = &together {
        // A usual close would write the log into the file, which may not be its own.
        log::leave(both);
        // File and log may come from anywhere: their schema must not call functions.
        let _ = both.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false);
    }
    let Some(file) = alone(path) else { return Ok(false) };
    let is_own = together.is_some_and(|both| is_one(&file, &both));
    // A file that is damaged even without its log proves nothing against the log.
    Ok(!is_own && is_sound(&file))
}

/// A connection to the file without its log. `immutable=1` makes SQLite ignore the log and take no locks; `None` if it cannot be opened.
pub(crate) fn alone(path: &Path) -> Option<Connection> {
    let mut uri = b"file:".to_vec();
    for byte in values::path_bytes(path) {
        match byte {
            // In a URI these would end the path, or begin an escape.
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").into_bytes()),
            _ => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(values::path_from_bytes(&uri), flags).ok()
}

pub(crate) fn id_of(connection: &Connection) -> Option<String> {
    connection.query_row("SELECT id FROM ledger", [], |row| row.get(0)).ok()
}

pub(crate) fn is_sound(connection: &Connection) -> bool {
    connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))
        .is_ok_and(|found| found == "ok")
}

pub(crate) fn foreign_log(path: &Path) -> Diagnosis {
    let log = log::path_of(path);
    Diagnosis::new(
        Code::ForeignLog,
        format!(
            "The log {} was not written for the file {}: the file was replaced without its log.",
            log.display(),
            path.display()
        ),
    )
    .hint("restore the file that the log belongs to; or keep this one and set the log aside: ic health --accept-older")
    .detail("db", path.to_string_lossy().into_owned())
    .detail("log", log.to_string_lossy().into_owned())
}

/// Sets the log aside if `known` says that it is not the database's own. Errors: any other error in `known`.
pub(crate) fn set_aside(path: &Path, known: Result<()>, now: Timestamp) -> Result<Option<PathBuf>> {
    match known {
        Err(error) if error.code() == Code::ForeignLog => {
            let log = log::path_of(path);
            let to = log::sibling(&log, &format!(".aside-{}", now.millis()));
            std::fs::rename(&log, &to).map_err(|e| failed(&log, &e))?;
            Ok(Some(to))
        }
        known => known.map(|()| None),
    }
}

pub(crate) fn failed(what: &Path, e: &std::io::Error) -> Diagnosis {
    Diagnosis::new(Code::Io, format!("changing {}: {e}.", what.display()))
}
