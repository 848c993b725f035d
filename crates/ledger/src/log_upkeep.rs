//! What an open ledger does about its log and about what the store remembers of it ([`crate::note`]).
//!
//! A call that finds both as they were left asks nothing more: it has read two small files. The note is updated when the ledger is closed,
//! and within a call by the commit that begins a log. So a process that is killed later leaves no log that the note does not know.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnosis, Result};
use rusqlite::Connection;

use crate::connection::{OpenOptions, connect};
use crate::error::diagnose;
use crate::faults;
use crate::log::{self, Salts};
use crate::log_match::{alone, confirm, failed, fits, foreign_log, id_of, is_sound, require_together, set_aside};
use crate::note::{self, HeadNote, LogNote, Stamp, StoreNote};

/// How often a note that does not fit is read again: the process that begins a log writes the note a moment later.
const LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// What to do about a ledger that is behind what its store remembers.
pub const WHEN_BEHIND: &str = "restore what is missing, or accept this ledger: ic health --accept-older";

/// A ledger whose events end before what its store remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The newest event that the ledger has.
    pub seq: i64,
    /// The newest event that the store remembers.
    pub remembered: i64,
}

/// What is known of the log while a ledger is open.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// The ledger's file, which is no link.
    path: PathBuf,
    /// What stands in the note.
    note: Option<StoreNote>,
    /// The note says what is so.
    is_told: bool,
    /// The newest event of the file alone, while it has no log.
    bare: Option<i64>,
    /// Whether this connection committed anything, so that the note must be updated at the end.
    has_written: bool,
    /// The log may hold the file's mark, its schema or its id, which other processes read from the file alone: it must be folded in.
    must_fold: bool,
    /// How long the log was when it was folded in last.
    folded_at: u64,
    behind: Option<Behind>,
}

impl Remembered {
    /// What to do about a ledger before it is opened. Errors: `foreign_log`; nothing was opened to stay.
    pub(crate) fn before_opening(path: &Path, options: OpenOptions) -> Result<Self> {
        Self::compared(path, options).or_else(|error| confirm(error, || Self::compared(path, options)))
    }

    fn compared(path: &Path, options: OpenOptions) -> Result<Self> {
        let path = log::real(path);
        let Some(mut note) = StoreNote::read(&path) else { return Ok(Self::of(path, None, false)) };
        // What is beside the file, and what follows:
        //   no log                       nothing can be played in; `compare` looks at the events once the file is open
        //   the noted log and file       both are as the last call left them
        //   the noted log, no stamp      a process was writing the file, or died: compared by age and newest event
        //   anything else                looked at again, and then compared as a log that may be another file's
        for look in 0..LOOKS {
            let Ok(meta) = std::fs::metadata(&path) else { return Ok(Self::of(path, None, false)) };
            let salts = log::salts(&path);
            match salts {
                Ok(None) => return Ok(Self::of(path, Some(note), false)),
                Ok(Some(salts)) if fits(&note, salts, &meta) => return Ok(Self::of(path, Some(note), true)),
                // The file is being written, or its writer died. So a newer state than the noted one belongs to the log, an older one does
                // not.
                Ok(Some(salts)) if is_being_written(&note, salts) => {
                    if is_older(&path, &note) {
                        return Err(foreign_log(&path));
                    }
                    require_together(&path, options, extends)?;
                    return Ok(Self::of(path, Some(note), false));
                }
                _ if look + 1 < LOOKS => {
                    std::thread::sleep(BETWEEN_LOOKS);
                    if let Some(newer) = StoreNote::read(&path) {
                        note = newer;
                    }
                }
                _ => {}
            }
        }
        require_own_log(&path, &note, options)?;
        Ok(Self::of(path, Some(note), false))
    }

    /// Of a ledger in memory.
    pub(crate) fn nothing() -> Self {
        Self::of(PathBuf::new(), None, true)
    }

    fn of(path: PathBuf, note: Option<StoreNote>, is_told: bool) -> Self {
        Self { path, note, is_told, bare: None, has_written: false, must_fold: false, folded_at: 0, behind: None }
    }

    /// Compares the ledger with what is remembered of it: also where file and log seem to be as they were left, because their times can be
    /// set, and of a damaged log SQLite plays in only what comes before the damage.
    pub(crate) fn compare(&mut self, connection: &Connection) -> Result<()> {
        let is_nothing = self.path.as_os_str().is_empty();
        if is_nothing || (self.is_told && head_of(connection) == self.note.as_ref().map(|note| note.head.clone())) {
            return Ok(());
        }
        let Some(now) = newest(connection, self.note.as_ref().map_or(0, |note| note.head.seq))? else {
            return Ok(());
        };
        // Asked after the event was read: if a log began in between, it is not known where the file alone ends.
        if !self.is_told && matches!(log::salts(&self.path), Ok(None)) {
            self.bare = Some(now.head.seq);
        }
        // The note may be of another ledger that was here before. Event 0, which a note of a new ledger names, is in none.
        if let Some(note) = &self.note
            && note.ledger == now.ledger
            && now.at_noted.as_ref() != Some(&note.head.hash)
            && note.head.seq > 0
        {
            self.behind = Some(Behind { seq: now.head.seq, remembered: note.head.seq });
        }
        Ok(())
    }

    /// The log is folded in when the ledger is closed, however small it is.
    pub(crate) fn keep_in_file(&mut self) {
        self.must_fold = true;
    }

    pub(crate) fn behind(&self) -> Option<&Behind> {
        self.behind.as_ref()
    }

    /// Errors: `ledger_behind` if the store remembers a newer event than the ledger has.
    pub(crate) fn require_newest(&self) -> Result<()> {
        self.behind.as_ref().map_or(Ok(()), |behind| Err(refusal(&self.path, behind)))
    }

    /// After a commit: a log that was begun with it is made known at once.
    pub(crate) fn committed(&mut self, connection: &Connection) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        let noted = self.note.as_ref().and_then(|note| note.log.as_ref()).map(|log| log.salts);
        let begun = log::salts(&self.path).ok().flatten();
        self.is_told = false;
        self.has_written = true;
        if begun != noted {
            self.tell(connection, true);
        }
        let length = log::length(&self.path);
        // The log was begun again since: how far the one before it was folded in says nothing of this one.
        if length < self.folded_at {
            self.folded_at = 0;
        }
        if length > log::IN_USE && length >= self.folded_at + log::FURTHER {
            self.fold(connection);
            // The log keeps its length when its pages are folded in, so the next growth counts from here.
            self.folded_at = length;
        }
    }

    /// Writes the log into the file as far as no reader needs it: a process that lives long would let it grow for ever.
    fn fold(&mut self, connection: &Connection) {
        log::limit(connection);
        // First of all: a process that looks while the file is written must not take it for another one.
        self.tell(connection, false);
        faults::statement("PRAGMA wal_checkpoint(PASSIVE)");
        // Pages that a reader still needs are folded in another time.
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        self.tell(connection, true);
    }

    /// To be called before the file itself is written: a process that looks during the write must not take it for another file.
    pub(crate) fn file_changes(&mut self, connection: &Connection) {
        if self.note.as_ref().is_some_and(|note| note.log.is_some()) {
            self.tell(connection, false);
        }
        self.is_told = false;
    }

    /// Brings the note up to date and decides what becomes of the log, before `connection` is closed.
    pub(crate) fn close(&mut self, connection: &Connection) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        let stays = log::stays(&self.path) && !self.must_fold;
        // SQLite folds such a log in as it closes, and writes the file. The note is told before that, without a stamp.
        let is_folded = !stays && log::length(&self.path) > log::HEADER;
        // A call that only read a ledger without a log leaves no note beside it.
        if (!self.is_told && (self.has_written || stays)) || is_folded {
            self.tell(connection, stays);
        }
        if stays {
            log::leave(connection);
        }
    }

    /// Remembers the newest event, and the log that is there. `is_still`: no process is about to write the file.
    fn tell(&mut self, connection: &Connection, is_still: bool) {
        if self.behind.is_some() {
            // The missing events stay remembered until the user accepts the older ledger.
            return;
        }
        // The note helps and is not needed, so no error of it fails the call.
        let Ok(Some(now)) = newest(connection, 0) else { return };
        let salts = log::salts(&self.path).ok().flatten();
        let before = self.note.as_ref().and_then(|note| note.log.as_ref());
        let log = salts.map(|salts| LogNote {
            salts,
            base: match before {
                Some(log) if log.salts == salts => log.base,
                // A new log begins where the file alone ended.
                _ => self.bare.take(),
            },
            file: std::fs::metadata(&self.path).ok().filter(|_| is_still).map(|meta| Stamp::of(&meta)),
        });
        let note = StoreNote { ledger: now.ledger, head: now.head, log };
        if self.note.as_ref() != Some(&note) && note.write(&self.path).is_ok() {
            self.note = Some(note);
        }
        self.is_told = true;
    }
}

/// Whether a log is that of the note, and its file was being written then.
fn is_being_written(note: &StoreNote, salts: Salts) -> bool {
    note.log.as_ref().is_some_and(|log| log.salts == salts && log.file.is_none())
}

/// Whether the file ends before the noted log begins.
fn is_older(path: &Path, note: &StoreNote) -> bool {
    let seq = alone(path).and_then(|file| seq_of(&file));
    let base = note.log.as_ref().and_then(|log| log.base);
    base.is_some_and(|base| seq.is_some_and(|seq| seq < base))
}

/// Accepts the content of the ledger at `path`: the store remembers it from now on, and a log that is not its own is set aside, under
/// its own name with `.aside-` and the time. Returns that log's new name.
///
/// The ledger may be one that cannot be opened because of its log. No other process may use it during the call. Errors: those of opening
/// it without that log; then nothing is changed.
pub fn accept(path: &Path, options: OpenOptions, now: ic_base::Timestamp) -> Result<Option<PathBuf>> {
    let path = log::real(path);
    let aside = set_aside(&path, Remembered::before_opening(&path, options).map(drop), now)?;
    let opened = match connect(&path, options) {
        Ok(opened) => opened,
        Err(error) => {
            if let Some(aside) = aside {
                // Without its log it cannot be opened either: the log goes back to its place.
                let _ = std::fs::rename(aside, log::path_of(&path));
            }
            return Err(error);
        }
    };
    // Only now: of a ledger that cannot be opened, everything stays remembered.
    note::forget(&path).map_err(|e| failed(&note::path_of(&path), &e))?;
    let mut remembered = Remembered::of(path, None, false);
    remembered.compare(&opened.connection)?;
    remembered.tell(&opened.connection, true);
    remembered.close(&opened.connection);
    Ok(aside)
}

/// The newest event of a ledger, which is asked for at each call.
fn head_of(connection: &Connection) -> Option<HeadNote> {
    let head = |row: &rusqlite::Row<'_>| Ok(HeadNote { seq: row.get(0)?, hash: row.get(1)? });
    connection.query_row("SELECT seq, lower(hex(hash)) FROM event_head", [], head).ok()
}

/// What a ledger says of its events.
pub(crate) struct NewestEvent {
    ledger: String,
    pub(crate) head: HeadNote,
    /// The hash of the event that was asked for, if it is there.
    at_noted: Option<String>,
}

/// `None` for a ledger without an id or a head.
pub(crate) fn newest(connection: &Connection, noted: i64) -> Result<Option<NewestEvent>> {
    const SQL: &str = "SELECT l.id, h.seq, lower(hex(h.hash)), (SELECT lower(hex(hash)) FROM events WHERE seq = $1) \
                       FROM event_head AS h, ledger AS l";
    // Both tables have one row at most: without an id or a head, the join has none.
    let mut statement = connection.prepare_cached(SQL).map_err(|e| diagnose(e, "reading the newest event"))?;
    let mut rows = statement.query([noted]).map_err(|e| diagnose(e, "reading the newest event"))?;
    let row = rows.next().map_err(|e| diagnose(e, "reading the newest event"))?;
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<NewestEvent> {
        let head = HeadNote { seq: row.get(1)?, hash: row.get(2)? };
        Ok(NewestEvent { ledger: row.get(0)?, head, at_noted: row.get(3)? })
    };
    row.map(read).transpose().map_err(|e| diagnose(e, "reading the newest event"))
}

/// Errors: `foreign_log` if the log was written for another file than the one that stands beside it. The log is not played in.
///
/// SQLite does not know: it plays a log into any file of its name. A file that is older than the log's beginning is told by its newest
/// event; any other by what the two make together, which is seldom a sound database.
fn require_own_log(path: &Path, note: &StoreNote, options: OpenOptions) -> Result<()> {
    let is_noted = log::salts(path).ok().flatten() == note.log.as_ref().map(|log| log.salts);
    let is_another = alone(path).and_then(|file| id_of(&file)).is_some_and(|id| id != note.ledger);
    if is_noted && (is_older(path, note) || is_another) {
        return Err(foreign_log(path));
    }
    require_together(path, options, |file, both| is_sound(both) && extends(file, both))
}

/// Whether a ledger with its log has the newest event that its file alone has: a log only adds.
fn extends(file: &Connection, both: &Connection) -> bool {
    const HEAD: &str = "SELECT seq, hash FROM event_head";
    let head = file.query_row(HEAD, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)));
    // A file whose head cannot be read is no proof against the log.
    let Ok((seq, hash)) = head else { return true };
    let has = both.query_row("SELECT hash FROM events WHERE seq = ?1", [seq], |row| row.get::<_, Vec<u8>>(0));
    // The head of a ledger without events names event 0, which is in no table.
    seq == 0 || has.is_ok_and(|its| its == hash)
}

fn seq_of(connection: &Connection) -> Option<i64> {
    connection.query_row("SELECT seq FROM event_head", [], |row| row.get(0)).ok()
}

fn refusal(path: &Path, behind: &Behind) -> Diagnosis {
    Diagnosis::new(Code::LedgerBehind, said(path, behind))
        .hint(format!("reading works; {WHEN_BEHIND}"))
        .detail("db", path.to_string_lossy().into_owned())
        .detail("seq", behind.seq)
        .detail("remembered_seq", behind.remembered)
}

/// What is so, in words.
pub(crate) fn said(path: &Path, behind: &Behind) -> String {
    let Behind { seq, remembered } = behind;
    let path = path.display();
    if seq < remembered {
        format!(
            "The ledger {path} ends at event {seq}, and this store has held event {remembered}: the file is an older copy, or its \
             log {path}-wal was lost or damaged."
        )
    } else {
        format!(
            "The ledger {path} has another event {remembered} than this store has held: the file is a copy that was changed elsewhere."
        )
    }
}
