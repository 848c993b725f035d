//! Copies of a ledger and of its object store, each one file that is whole or is not there.
//!
//! A copy is made by SQLite's backup, which reads file and log as one, under a name beside the one it is to have; it is synced, renamed,
//! and its directory is synced. A process that is killed leaves the unfinished file under its own name, which the next copy writes over.

use std::fs::{File, Metadata, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use rustix::fs::OFlags;

use crate::error::{busy, diagnose};
use crate::identity::{APPLICATION_ID, is_ledger};
use crate::ledger::Ledger;
use crate::log::{self, sibling};
use crate::log_match::{alone, id_of};
use crate::log_upkeep::newest;
use crate::side::SideDatabase;
use crate::{faults, private};

/// A copy that is written and does not have its name yet. Dropped without it, it is removed.
#[derive(Debug)]
pub struct Unnamed {
    partial: PathBuf,
    to: PathBuf,
    /// Locked: two copies to one name do not write into each other.
    file: File,
    is_named: bool,
}

/// The newest event of a copied ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedHead {
    /// Its number; 0 for a ledger without events.
    pub seq: i64,
    /// Its hash, in hex.
    pub hash: String,
}

impl Ledger {
    /// Copies the ledger at one moment, to become `to`, and returns its newest event at that moment. Others may write during the copy.
    ///
    /// Errors: `busy`, `disk_full`, `permission_denied`; nothing is there then.
    pub fn copy_for(&self, to: &Path, patience: Duration) -> Result<(Unnamed, CopiedHead)> {
        let file = self.file("A copy")?;
        let unnamed = Unnamed::begin(to)?;
        let copied = unnamed.write(file.connection(), patience)?;
        // Asked of the copy: since it was made, others may have appended events to the ledger.
        let head = newest(&copied, 0)?.map(|newest| newest.head);
        let head = head.ok_or_else(|| Diagnosis::new(Code::Corrupt, "The ledger has no id."))?;
        close(copied)?;
        Ok((unnamed, CopiedHead { seq: head.seq, hash: head.hash }))
    }
}

impl SideDatabase {
    /// Copies the database at one moment, to become `to`. Errors: as of [`Ledger::copy_for`].
    pub fn copy_for(&self, to: &Path, patience: Duration) -> Result<Unnamed> {
        let unnamed = Unnamed::begin(to)?;
        close(unnamed.write(self.connection(), patience)?)?;
        Ok(unnamed)
    }
}

impl Unnamed {
    fn begin(to: &Path) -> Result<Self> {
        let partial = partial_of(to);
        let doing = || format!("making {}", partial.display());
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        // NOFOLLOW: a link in its place could lead to another user's file. NONBLOCK: opening a pipe would wait for its other end.
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        let file = private::open(&partial, &mut options).while_doing(doing)?;
        require_own(&partial, &file.metadata().while_doing(doing)?)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(&doing())),
            Err(TryLockError::Error(e)) => return Err(e).while_doing(doing),
        }
        // Under the lock, so that a living copy is never cut: what is in the file was left by a killed one.
        file.set_len(0).while_doing(doing)?;
        Ok(Self { partial, to: to.to_owned(), file, is_named: false })
    }

    fn write(&self, source: &Connection, patience: Duration) -> Result<Connection> {
        let doing = format!("copying to {}", self.to.display());
        faults::statement("-- copying");
        let copied = copy(source, &self.partial, patience).map_err(|e| no_room_there(diagnose(e, &doing)));
        copied?.ok_or_else(|| busy(&doing))
    }

    /// Makes it durable and gives it its name; what has that name is replaced.
    pub fn name(mut self) -> Result<u64> {
        let doing = || format!("making {}", self.to.display());
        // Content, then name, then directory: after a loss of power the name leads to a whole copy, or there is none.
        self.file.sync_all().while_doing(doing)?;
        let bytes = self.file.metadata().while_doing(doing)?.len();
        faults::statement("-- naming the copy");
        std::fs::rename(&self.partial, &self.to).while_doing(doing)?;
        // Set at once: if syncing the directory fails, the old name may be another copy's by now, and `drop` must leave it.
        self.is_named = true;
        let directory = self.to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        File::open(directory).and_then(|directory| directory.sync_all()).while_doing(doing)?;
        Ok(bytes)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.is_named {
            // A failure is no harm: the next copy to this name writes over what is left.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// Errors: `file_exists` if what has the name of an unfinished copy is none of this user's alone: others could read the ledger in it.
fn require_own(partial: &Path, meta: &Metadata) -> Result<()> {
    let is_own = meta.is_file()
        && meta.uid() == rustix::process::geteuid().as_raw()
        && meta.mode() & 0o777 == 0o600
        && meta.nlink() == 1;
    if is_own {
        return Ok(());
    }
    let shown = partial.display();
    Err(Diagnosis::new(
        Code::FileExists,
        format!("{shown} is in the way, and is no unfinished copy of yours. It was not changed."),
    )
    .hint("remove it, or choose a directory that is yours alone")
    .detail("file", partial.to_string_lossy().into_owned()))
}

/// Replaces the hint of a full disk: space has to be freed where the copy is written, not beside the ledger.
fn no_room_there(error: Diagnosis) -> Diagnosis {
    match error.code() {
        Code::DiskFull => error.hint("free space where the copy is to be, or choose another place"),
        _ => error,
    }
}

/// What the copy that is to become `to` is called until it is whole.
fn partial_of(to: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(to.file_name().unwrap_or_default());
    sibling(&to.with_file_name(name), ".ic-backup")
}

/// `None`: a writer held the source past the timeout.
fn copy(source: &Connection, to: &Path, patience: Duration) -> rusqlite::Result<Option<Connection>> {
    let mut target = Connection::open(to)?;
    // No reader relies on the copy before it has its name: it needs no journal, and is synced once at the end.
    target.query_row("PRAGMA journal_mode=OFF", [], |_| Ok(()))?;
    target.execute_batch("PRAGMA synchronous=OFF")?;
    let started = Instant::now();
    let is_done = {
        let backup = Backup::new(source, &mut target)?;
        loop {
            // All pages in one step, under one view: between two steps a writer would make the copy begin again.
            match backup.step(-1)? {
                StepResult::Done => break true,
                StepResult::More => {}
                _ if started.elapsed() < patience => std::thread::sleep(Duration::from_millis(2)),
                _ => break false,
            }
        }
    };
    Ok(is_done.then_some(target))
}

fn close(copied: Connection) -> Result<()> {
    copied.close().map_err(|(_, e)| diagnose(e, "closing the copy"))
}

/// Whether a copy of `ledger` may become `to`.
///
/// Errors: `file_exists` if something is there and is not to be replaced; `invalid_value` if it is the ledger, lies in its store or in
/// another one's, or is something that no copy may replace.
pub fn require_place(ledger: &Ledger, to: &Path, replaces: bool) -> Result<()> {
    let wrong = |what: String| Err(Diagnosis::new(Code::InvalidValue, what));
    let shown = to.display();
    let Some(directory) = to.parent().and_then(|parent| std::fs::canonicalize(parent).ok()) else {
        return wrong(format!("The directory of {shown} does not exist."));
    };
    let own = log::real(ledger.path());
    let store = own.parent().and_then(|store| std::fs::canonicalize(store).ok());
    if store.is_some_and(|store| directory.starts_with(&store)) {
        return wrong(format!("{shown} lies in the directory of the ledger itself: it would be lost with it."));
    }
    let neighbour = directory.join("ic.db");
    if sibling(&neighbour, ".lock").exists() && is_ledger(&neighbour).unwrap_or(false) {
        return wrong(format!("{shown} lies in the directory of another ledger."));
    }
    let meta = match std::fs::symlink_metadata(to) {
        Ok(meta) => meta,
        Err(_) if to.file_name().is_some() => return Ok(()),
        Err(_) => return wrong(format!("{shown} is not the name of a file.")),
    };
    if !meta.is_file() {
        return wrong(format!("{shown} is there and is not a regular file."));
    }
    // A rename would leave such a log beside the copy, and SQLite would play it into the copy.
    for suffix in ["-wal", "-journal"] {
        let log = sibling(to, suffix);
        if std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0) {
            return wrong(format!("{shown} is a database in use: it has the log {}.", log.display()));
        }
    }
    // The lock file tells a ledger that is used from a copy, which has none and may be replaced.
    if sibling(to, ".lock").exists() && is_ledger(to).unwrap_or(false) || is_of_another(ledger, to) {
        return wrong(format!("{shown} is another ledger."));
    }
    if replaces {
        return Ok(());
    }
    Err(Diagnosis::new(Code::FileExists, format!("{shown} is there already. It was not changed."))
        .hint("choose another name, or replace it: --replace")
        .detail("file", to.to_string_lossy().into_owned()))
}

/// Whether a file is a ledger with another id.
fn is_of_another(ledger: &Ledger, path: &Path) -> bool {
    let Ok(own) = ledger.identity() else { return false };
    is_ledger(path).unwrap_or(false)
        && alone(path).is_some_and(|other| {
            let mark = other.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0));
            mark.is_ok_and(|mark| mark == APPLICATION_ID) && id_of(&other).is_none_or(|id| id != own.id.as_str())
        })
}
