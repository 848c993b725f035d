//! Which log belongs to a side database: one that was written for another state of the file is not played into this one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnosis, Result};

use super::{SideDatabase, SideSchema};
use rusqlite::Connection;

use crate::connection::OpenOptions;
use crate::log_match::{alone, confirm, fits, foreign_log, is_sound, require_together, set_aside};
use crate::note::{HeadNote, LogNote, Stamp, StoreNote};
use crate::{lock, log};

impl SideDatabase {
    /// Remembers a log that began with this commit: a process that is killed later leaves none that is strange.
    pub(super) fn note_new_log(&self) {
        let salts = log::salts(&self.path).ok().flatten();
        if !self.is_new && salts.is_some() && self.noted.replace(salts) != salts {
            self.remember_log();
        }
    }

    /// Remembers which log this database has: another one in its place must not be written over by it.
    pub(super) fn remember_log(&self) {
        let owner = self.connection.query_row(self.schema.owner, [], |row| row.get::<_, String>(0));
        let (Ok(ledger), Ok(Some(salts))) = (owner, log::salts(&self.path)) else { return };
        let file = std::fs::metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        let known = StoreNote::read(&self.path);
        let before = known.as_ref().and_then(|note| note.log.as_ref());
        // While no process writes the file, its age is still the noted one.
        let base = match before.filter(|log| log.salts == salts && log.file == file) {
            Some(log) => log.base,
            None => age_of(&self.path, &self.schema),
        };
        let note = StoreNote {
            ledger,
            // It has no events; which file of its owner it is stands in their place.
            head: HeadNote { seq: 0, hash: made_of(&self.connection, &self.schema) },
            log: Some(LogNote { salts, base, file }),
        };
        if known.as_ref() != Some(&note) {
            // Needed only to detect that the file was replaced: a failure is no reason to fail the call.
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
    if !SideDatabase::exists(path) {
        return Ok(None);
    }
    // Without a log there is nothing to remember; if the log is its own, the note stays valid.
    set_aside(path, require_own_log(path, schema, options).map(drop), now)
}

/// Whether the file is an older state than the one at which the noted log was begun.
fn is_older(path: &Path, schema: &SideSchema, note: &StoreNote) -> bool {
    let base = note.log.as_ref().and_then(|log| log.base);
    base.is_some_and(|base| age_of(path, schema).is_some_and(|age| age < base))
}

/// The age of a file without its log.
fn age_of(path: &Path, schema: &SideSchema) -> Option<i64> {
    alone(path)?.query_row(schema.age, [], |row| row.get(0)).ok()
}

/// What stands in a note for a file without an id of its own.
const WITHOUT_ID: &str = "none";

/// The id that the file got when it was made.
fn made_of(connection: &Connection, schema: &SideSchema) -> String {
    connection.query_row(schema.made, [], |row| row.get(0)).unwrap_or_else(|_| WITHOUT_ID.to_owned())
}

/// Whether the file is another one than the one whose log was noted, though it may have the same owner. A file without content, as one
/// that was not made whole, is none.
fn is_another(path: &Path, schema: &SideSchema, note: &StoreNote) -> bool {
    let Some(file) = alone(path) else { return false };
    let is_whole = file.query_row(schema.age, [], |_| Ok(())).is_ok();
    is_whole && note.head.hash != made_of(&file, schema)
}

/// Checks that the log belongs to the file. Returns whether file and log had to be compared, because the note did not fit.
///
/// Errors: `foreign_store` if the log that another ledger's store left would be played into this one; `foreign_log` if the file was
/// replaced by an older state of it or by another store of the same ledger, if another log was put beside it, or if the two are no sound
/// database together.
pub(super) fn require_own_log(path: &Path, schema: &SideSchema, options: OpenOptions) -> Result<bool> {
    compare_log(path, schema, options).or_else(|error| confirm(error, || compare_log(path, schema, options)))
}

fn compare_log(path: &Path, schema: &SideSchema, options: OpenOptions) -> Result<bool> {
    let mut found = None;
    for look in 0..LOOKS {
        // Without a file or a log, nothing can be played in.
        let (note, Ok(Some(salts)), Ok(meta)) = (StoreNote::read(path), log::salts(path), std::fs::metadata(path))
        else {
            return Ok(false);
        };
        if note.as_ref().is_some_and(|note| fits(note, salts, &meta)) {
            return Ok(false);
        }
        let noted = note.filter(|note| note.log.as_ref().is_some_and(|log| log.salts == salts));
        let is_noted = noted.is_some();
        found = noted;
        if is_noted {
            break;
        }
        // A process that begins a log notes it right after its first commit: it may be about to do so.
        if look + 1 < LOOKS {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
    if is_in_use(path, schema) {
        return Ok(false);
    }
    let Some(note) = found else {
        return require_together(path, options, |file, both| is_sound(both) && extends(schema, file, both))
            .map(|()| true);
    };
    // The owner comes first: the store of another ledger has another remedy than an older state of this one.
    let owner = alone(path).map(|file| file.query_row(schema.owner, [], |row| row.get::<_, String>(0)));
    match owner {
        Some(Ok(owner)) if owner != note.ledger => Err(Diagnosis::new(
            Code::ForeignStore,
            format!("{} holds the content of another ledger, and the log beside it is not its own.", path.display()),
        )
        .hint("put this ledger's own objects.db back; to keep that one, move it and its -wal away")
        .detail("store", path.to_string_lossy().into_owned())
        .detail("belongs_to", owner)),
        _ if is_older(path, schema, &note) || is_another(path, schema, &note) => Err(foreign_log(path)),
        _ => require_together(path, options, |_, both| is_sound(both)).map(|()| true),
    }
}

/// Whether another process writes it. Then file and log change under our eyes, and that process compared them when it opened the database.
fn is_in_use(path: &Path, schema: &SideSchema) -> bool {
    let lock = log::sibling(path, schema.lock);
    // Only asked for: the lock ends at once, with its file. Nothing is waited for, so it needs no rank.
    // A lock that cannot be asked for counts as free, because the comparison that follows writes nothing.
    let taken = || lock::wait(&lock::open(&lock)?, lock::LockMode::Exclusive, Duration::ZERO);
    lock.exists() && !taken().unwrap_or(true)
}

/// How often the note of a new log is looked for, with [`BETWEEN_LOOKS`] in between.
const LOOKS: usize = 25;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Whether file and log together still have the newest object of the file alone. A log without a note may only have added.
fn extends(schema: &SideSchema, file: &Connection, both: &Connection) -> bool {
    let newest = |of: &Connection| of.query_row(schema.age, [], |row| row.get::<_, i64>(0));
    let at = |of: &Connection, age: i64| of.query_row(schema.at_age, [age], |row| row.get::<_, String>(0)).ok();
    // A file whose age cannot be read is no proof against the log.
    let Ok(age) = newest(file) else { return true };
    // A file of age 0 has no object that could be compared.
    age == 0 || at(file, age) == at(both, age)
}
