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

/// How often a log must be found to be another file's, with [`BETWEEN_ANSWERS`] in between.
const ANSWERS: u32 = 4;
const BETWEEN_ANSWERS: Duration = Duration::from_millis(25);

/// Asks again if the first answer is that a log is another file's. Errors: those of the answer; `foreign_log` if every answer has it.
///
/// The file alone is read without a lock. A process that begins to write at this moment folds its log into it, and one look finds neither
/// what was nor what will be.
pub(crate) fn confirm<T>(first: Diagnosis, again: impl Fn() -> Result<T>) -> Result<T> {
    let mut answer = Err(first);
    for _ in 1..ANSWERS {
        match answer {
            Err(error) if error.code() == Code::ForeignLog => std::thread::sleep(BETWEEN_ANSWERS),
            answered => return answered,
        }
        answer = again();
    }
    answer
}

/// Errors: `foreign_log` if a database is sound alone, and with its log it cannot be opened, or they are not one by `is_one` of the file
/// alone and of both.
pub(crate) fn require_together(
    path: &Path,
    options: OpenOptions,
    is_one: impl FnOnce(&Connection, &Connection) -> bool,
) -> Result<()> {
    let opened = open(path, options, &format!("opening {}", path.display()));
    // A log of another file makes a sound file look damaged, so damage is looked into. Any other error is returned.
    if let Err(error) = opened.as_ref().map(drop)
        && error.code() != Code::Corrupt
    {
        return opened.map(drop);
    }
    let together = opened.ok().map(|opened| opened.connection);
    if let Some(both) = &together {
        // A usual close would write the log into the file, which may not be its own.
        log::leave(both);
        // File and log may come from anywhere: their schema must not call functions.
        let _ = both.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false);
    }
    let Some(file) = alone(path) else { return Ok(()) };
    let is_own = together.is_some_and(|both| is_one(&file, &both));
    // A file that is damaged even without its log proves nothing against the log.
    if !is_own && is_sound(&file) { Err(foreign_log(path)) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;

    use ic_base::{Code, Diagnosis};

    use super::{ANSWERS, confirm, foreign_log};

    #[test]
    fn a_log_is_another_files_only_if_it_stays_so() {
        let foreign = || Err(foreign_log(Path::new("ic.db")));
        let asked = Cell::new(0);
        let ask = |answers: &dyn Fn(u32) -> Result<u32, Diagnosis>| {
            asked.set(0);
            let look = || {
                asked.set(asked.get() + 1);
                answers(asked.get())
            };
            let answer = look().or_else(|error| confirm(error, look));
            (answer.map_err(|error| error.code()), asked.get())
        };
        assert_eq!(ask(&|_| foreign()), (Err(Code::ForeignLog), ANSWERS));
        // As where another process folded its log into the file during the first look.
        assert_eq!(ask(&|at| if at == 1 { foreign() } else { Ok(at) }), (Ok(2), 2));
        assert_eq!(ask(&|at| if at < ANSWERS { foreign() } else { Ok(at) }), (Ok(ANSWERS), ANSWERS));
        // Any other answer is final.
        assert_eq!(ask(&|_| Err(Diagnosis::new(Code::Busy, "busy"))), (Err(Code::Busy), 1));
    }
}
