//! Which log belongs to a side database: one that was written for another state of the file is not played into this one.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};

use super::{Side, SideSchema};
use rusqlite::Connection;

use crate::connection::OpenOptions;
use crate::log;
use crate::note::{Head, Log, Note, Stamp};
use crate::remembered::{alone, fits, foreign_log, require_sound_together, set_aside};

impl Side {
    /// Remembers which log this database has: another one in its place must not be written over by it.
    pub(super) fn remember_log(&self) {
        let owner = self.connection.query_row(self.schema.owner, [], |row| row.get::<_, String>(0));
        let (Ok(ledger), Ok(Some(salts))) = (owner, log::salts(&self.path)) else { return };
        let file = std::fs::metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        let known = Note::read(&self.path);
        let before = known.as_ref().and_then(|note| note.log.as_ref());
        // As long as nobody writes the file, its age is what it was.
        let base = match before.filter(|log| log.salts == salts && log.file == file) {
            Some(log) => log.base,
            None => age_of(&self.path, &self.schema),
        };
        let note = Note {
            ledger,
            // It has no events; which file of its owner it is stands in their place.
            head: Head { seq: 0, hash: made_of(&self.connection, &self.schema) },
            log: Some(Log { salts, base, file }),
        };
        if known.as_ref() != Some(&note) {
            // It helps who replaces the file, and is needed for nothing else.
            let _ = note.write(&self.path);
        }
    }
}

/// Forgets which log a side database had, and sets one aside that is not its own, as [`crate::accept`] does for a ledger.
pub fn accept_side(
    path: &Path,
    schema: &SideSchema,
    options: OpenOptions,
    now: ic_base::Timestamp,
) -> Result<Option<PathBuf>> {
    if !Side::exists(path) {
        return Ok(None);
    }
    set_aside(path, require_own_log(path, schema, options).map(drop), now)
}

/// Whether the file is an older state than the one at which the noted log was begun.
fn is_older(path: &Path, schema: &SideSchema, note: &Note) -> bool {
    let base = note.log.as_ref().and_then(|log| log.base);
    base.is_some_and(|base| age_of(path, schema).is_some_and(|age| age < base))
}

/// The age of a file without its log.
fn age_of(path: &Path, schema: &SideSchema) -> Option<i64> {
    alone(path)?.query_row(schema.age, [], |row| row.get(0)).ok()
}

/// What stands in a note for a file without an id of its own.
const WITHOUT_ID: &str = "none";

/// Stands in the notes of earlier versions, which did not ask.
const NOT_ASKED: &str = "-";

/// Which file of its owner it is.
fn made_of(connection: &Connection, schema: &SideSchema) -> String {
    connection.query_row(schema.made, [], |row| row.get(0)).unwrap_or_else(|_| WITHOUT_ID.to_owned())
}

/// Whether the file is another one than the one whose log was noted, though it may have the same owner. A file without content, as one
/// that was not made whole, is none.
fn is_another(path: &Path, schema: &SideSchema, note: &Note) -> bool {
    let Some(file) = alone(path) else { return false };
    let is_whole = file.query_row(schema.age, [], |_| Ok(())).is_ok();
    is_whole && note.head.hash != NOT_ASKED && note.head.hash != made_of(&file, schema)
}

/// Whether it had to be found out that the log belongs to the file.
///
/// Errors: `foreign_store` if the log that another ledger's store left would be played into this one; `foreign_log` if the file was
/// replaced by an older state of it or by another store of the same ledger, or is no sound database together with the log.
pub(super) fn require_own_log(path: &Path, schema: &SideSchema, options: OpenOptions) -> Result<bool> {
    let (Some(note), Ok(Some(salts)), Ok(meta)) =
        (Note::read(path), log::salts(path), std::fs::metadata(path))
    else {
        return Ok(false);
    };
    let is_noted = note.log.as_ref().is_some_and(|log| log.salts == salts);
    if !is_noted || fits(&note, salts, &meta) {
        return Ok(false);
    }
    let owner = alone(path).map(|file| file.query_row(schema.owner, [], |row| row.get::<_, String>(0)));
    match owner {
        Some(Ok(owner)) if owner != note.ledger => Err(Diagnosis::new(
            Code::ForeignStore,
            format!(
                "{} holds the content of another ledger, and the log beside it is not its own.",
                path.display()
            ),
        )
        .hint("put this ledger's own objects.db back; to keep that one, move it and its -wal away")
        .detail("store", path.to_string_lossy().into_owned())
        .detail("belongs_to", owner)),
        _ if is_older(path, schema, &note) || is_another(path, schema, &note) => Err(foreign_log(path)),
        _ => require_sound_together(path, options, |_, _| true).map(|()| true),
    }
}
