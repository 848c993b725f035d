//! The locks, and the one order in which they are taken.
//!
//! ```text
//!   schema      ic.db.lock               alone: makes or migrates the ledger
//!     |
//!   cursor      cursors/HASH             alone: reads events with a cursor, while a command handles each
//!     |
//!   owner       owners/RUN               alone: executes or compensates a run; looked at, hardly waited for
//!     |         owners/adoption          alone: adopts a fork
//!     |
//!   database    rewinds/HASH.lock        alone: rewinds a state database
//!     |
//!   root        objects.cache/ROOT.lock  alone: restores a tree, or records a capture of it; shared: only looks at it
//!     |
//!   store       objects.db.lock          alone: sweeps; shared: keeps content until the row is committed that names it
//!     |
//!   cache       objects.cache/ROOT       alone: continues a stat cache; shared: reads it
//!     |
//!   content     objects.db               a write transaction, SQLite's own lock
//!     |
//!   ledger      ic.db                    a write transaction, SQLite's own lock
//! ```
//!
//! A thread that holds one of them waits only for those below it, so no two processes wait for each other. Every wait ends
//! with the busy timeout; what is done along the way (retention) does not wait at all. The widest come first: a restore
//! holds the root until it ends, and a sweep must never wait for it. So a process that holds the store alone opens no root's lock
//! file, and needs no cache's lock: every user of a cache holds the store shared. The ledger comes last, because every process
//! needs it: under its write lock no other lock is waited for.
//!
//! Debug builds stop a thread that waits in another order ([`ic_ledger::lock::HeldLock`]).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::lock::{FileLock, HeldLock, Rank, open, wait};
use ic_ledger::sibling;

pub use ic_ledger::lock::{FileLock as Lock, LockMode};

use crate::caches::{cache_directory, root_key};

/// For how long a sweep keeps others from the store while it waits for it, at first; twice as long each time.
const FIRST_TURN: Duration = Duration::from_millis(50);

/// The longest such turn. A restore may hold the store for minutes: others must not wait that long only because a sweep waits too.
const LONGEST_TURN: Duration = Duration::from_secs(1);

/// The lock of a root, beside the object store `objects`. Errors: `busy` past the timeout.
pub fn root(objects: &Path, root: &Path, mode: LockMode, timeout: Duration) -> Result<Lock> {
    let name = format!("{}.lock", root_key(root));
    let directory = cache_directory(objects)?;
    take(&directory.join(name), Rank::Root, mode, timeout, timeout, || {
        format!("Another process restores or captures {}", root.display())
    })
}

/// The lock of the object store in `objects`. Errors: `busy` past the timeout.
pub fn store(objects: &Path, mode: LockMode, timeout: Duration) -> Result<Lock> {
    // A process that wants the lock alone blocks others that could share it at once, so its turns are short.
    // One that shares it waits for a holder that keeps all others out as well.
    let turn = if mode == LockMode::Exclusive { FIRST_TURN } else { timeout };
    take(&store_path(objects), Rank::Store, mode, timeout, turn, || "Another process prunes or captures".to_owned())
}

/// The file of the store's lock.
pub(crate) fn store_path(objects: &Path) -> PathBuf {
    sibling(objects, ".lock")
}

/// Takes a lock. A process that waits holds the turnstile, so that others which share the lock cannot overtake it for ever. After each
/// `turn` it lets them pass for as long.
fn take(
    path: &Path,
    rank: Rank,
    mode: LockMode,
    timeout: Duration,
    mut turn: Duration,
    who: impl Fn() -> String,
) -> Result<Lock> {
    let started = Instant::now();
    let left = || timeout.saturating_sub(started.elapsed());
    let doing = || format!("locking {}", path.display());
    // The rank is noted before the wait: debug builds must see a wrong order even where the lock is free.
    let held = HeldLock::new(rank);
    // The turnstile is a file of its own (`objects.db.lock.turn`): one process waits at the lock, all others wait behind it.
    let file = open(path).while_doing(doing)?;
    let turnstile = open(&sibling(path, ".turn")).while_doing(doing)?;
    loop {
        // It takes a place in the queue first, then the lock. The turnstile is free again before the work begins, so the next
        // process can queue up while this one works.
        if wait(&turnstile, LockMode::Exclusive, left()).while_doing(doing)? {
            let taken = wait(&file, mode, turn.min(left())).while_doing(doing)?;
            turnstile.unlock().while_doing(doing)?;
            if taken {
                return Ok(FileLock::of(file, held));
            }
        }
        if left().is_zero() {
            return Err(Diagnosis::new(Code::Busy, format!("{}, and did not end in time.", who()))
                .hint("try again, or give --busy-timeout more time"));
        }
        // In this pause others pass: a process that wants the lock alone must not block them for the whole of a long restore.
        std::thread::sleep(turn.min(left()));
        turn = (turn * 2).min(LONGEST_TURN);
    }
}
