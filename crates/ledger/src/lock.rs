//! Locks on files, which the operating system ends with their holder, and the order in which locks are waited for.
//!
//! The order is drawn, with its reasons, in `ic_checkpoint::lock`. Debug builds stop a thread that waits for a lock while it
//! holds one that comes after it, so every test of the workspace is a test of the order.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::private;

ic_base::words! {
    /// What a lock guards, in the order in which locks are taken.
    #[derive(PartialOrd, Ord)]
    pub enum Rank {
        /// One process makes or migrates a ledger.
        Schema = "schema",
        /// One consumer reads events with a cursor.
        Cursor = "cursor",
        /// One process executes or compensates a run.
        Owner = "owner",
        /// One process rewinds a state database.
        Database = "database",
        /// A working tree is restored, or captured.
        Root = "root",
        /// The object store is swept, or kept from being swept.
        Store = "store",
        /// A stat cache is read, or continued.
        Cache = "cache",
        /// A write transaction of the object store.
        Content = "content",
        /// A write transaction of the ledger.
        Ledger = "ledger",
    }
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Beside others that share it.
    Shared,
    /// Alone: others, shared or not, wait until it is released.
    Exclusive,
}

thread_local! {
    /// What this thread holds, or waits for.
    static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
}

/// Says that this thread holds a lock of this rank, or waits for it, until it is dropped.
///
/// It stays on its thread: what another thread drops would be remembered here for ever.
#[derive(Debug)]
pub struct HeldLock {
    rank: Rank,
    _here: PhantomData<*const ()>,
}

impl HeldLock {
    /// Call this before the wait begins: out of order, two processes wait for each other, however rarely they meet.
    ///
    /// # Panics
    /// In debug builds, if this thread holds a lock of the same rank (but for owners and cursors) or of a later one.
    #[must_use]
    pub fn new(rank: Rank) -> Self {
        if cfg!(debug_assertions) {
            HELD.with_borrow_mut(|held| {
                // The lock of an owner is refused at once and never waited for, so that of another run may be asked for.
                // Cursors of one name are taken together, in the order of their list.
                let may_repeat = matches!(rank, Rank::Owner | Rank::Cursor);
                let is_before = |other: &Rank| *other < rank || (*other == rank && may_repeat);
                debug_assert!(
                    held.iter().all(is_before),
                    "a thread waits for the lock of rank {}, and holds {}",
                    rank.as_str(),
                    held.iter().map(|held| held.as_str()).collect::<Vec<_>>().join(", ")
                );
                held.push(rank);
            });
        }
        Self { rank, _here: PhantomData }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.with_borrow_mut(|held| {
                // Owners and cursors may be held twice. Either entry will do, because the entries are equal.
                if let Some(at) = held.iter().rposition(|other| *other == self.rank) {
                    held.remove(at);
                }
            });
        }
    }
}

/// A lock on a file, held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
    _held: HeldLock,
}

impl FileLock {
    /// Takes the lock of the file at `path`, which is made if it is not there. `None` if others held it past the timeout.
    pub fn take(path: &Path, rank: Rank, mode: LockMode, timeout: Duration) -> io::Result<Option<Self>> {
        let held = HeldLock::new(rank);
        let file = open(path)?;
        Ok(wait(&file, mode, timeout)?.then(|| Self::of(file, held)))
    }

    /// The lock that was taken on an open file.
    pub fn of(file: File, held: HeldLock) -> Self {
        Self { _file: file, _held: held }
    }
}

/// Opens the file of a lock, and makes it (mode 0600) if it is not there. What is in it stays. A pipe in its place is not waited for, and a
/// link not followed.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    private::open(path, File::options().create(true).truncate(false).write(true).custom_flags(flags))
}

/// Waits for the lock on an open file; `false` if others held it past the timeout. With no timeout it looks once.
///
/// It polls: the operating system's own wait has no limit, and one stopped holder would stop everybody.
pub fn wait(file: &File, mode: LockMode, timeout: Duration) -> io::Result<bool> {
    let started = Instant::now();
    loop {
        let taken = match mode {
            LockMode::Shared => file.try_lock_shared(),
            LockMode::Exclusive => file.try_lock(),
        };
        match taken {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                // Short compared with the work under a lock, and long enough that waiting uses no core.
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const ALL: [Rank; 9] = [
        Rank::Schema,
        Rank::Cursor,
        Rank::Owner,
        Rank::Database,
        Rank::Root,
        Rank::Store,
        Rank::Cache,
        Rank::Content,
        Rank::Ledger,
    ];

    #[test]
    fn of_any_two_locks_only_one_order_is_taken() {
        for first in ALL {
            for second in ALL {
                let held = HeldLock::new(first);
                let took = catch_unwind(AssertUnwindSafe(|| drop(HeldLock::new(second))));
                let may = first < second || (first == second && matches!(first, Rank::Owner | Rank::Cursor));
                assert_eq!(took.is_ok(), may, "{second:?} after {first:?}");
                drop(held);
                // Whatever came of it, nothing is left on the thread.
                drop(HeldLock::new(first));
            }
        }
    }

    #[test]
    fn a_lock_is_waited_for_no_longer_than_its_timeout() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let other = open(&path).unwrap();
        other.lock().unwrap();
        for timeout in [Duration::ZERO, Duration::from_millis(30)] {
            let started = Instant::now();
            assert!(FileLock::take(&path, Rank::Root, LockMode::Shared, timeout).unwrap().is_none());
            assert!(started.elapsed() >= timeout);
        }
        drop(other);
        let lock = FileLock::take(&path, Rank::Root, LockMode::Shared, Duration::ZERO).unwrap();
        assert!(lock.is_some());
        let beside = open(&path).unwrap();
        assert!(wait(&beside, LockMode::Shared, Duration::ZERO).unwrap());
        assert!(!wait(&open(&path).unwrap(), LockMode::Exclusive, Duration::ZERO).unwrap());
    }
}
