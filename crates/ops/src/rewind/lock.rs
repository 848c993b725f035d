//! The lock of a state database, and the directory of what rewinds keep.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_store::path_bytes;
use sha2::{Digest, Sha256};

/// A lock that is held until it is dropped, or its process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// The directory beside the ledger that has archives, logs and locks. It is made if it is not there.
pub(crate) fn directory(store: &Path) -> Result<PathBuf> {
    let directory = store.join("rewinds");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .while_doing(|| format!("making {}", directory.display()))?;
    Ok(directory)
}

/// Keeps every other rewind of this database waiting. Errors: `busy` past the timeout.
pub(crate) fn database(store: &Path, database: &Path, timeout: Duration) -> Result<Lock> {
    let path = directory(store)?.join(name_of(database));
    let doing = || format!("locking {}", path.display());
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .while_doing(doing)?;
    wait(|| file.try_lock(), (&path, database), timeout)?;
    Ok(Lock { _file: file })
}

/// Whether the lock of a database could be taken, waiting as [`database`] does; nothing is made or kept. Errors: `busy`.
pub(crate) fn require_free(store: &Path, database: &Path, timeout: Duration) -> Result<()> {
    let path = store.join("rewinds").join(name_of(database));
    let file = match File::open(&path) {
        // Nobody ever locked it.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file.while_doing(|| format!("looking at {}", path.display()))?,
    };
    // Shared: two looks are no hindrance to each other.
    wait(|| file.try_lock_shared(), (&path, database), timeout)
}

fn name_of(database: &Path) -> String {
    let name = ic_events::hex(&Sha256::digest(path_bytes(database)).into());
    format!("{}.lock", &name[..16])
}

fn wait(
    lock: impl Fn() -> std::result::Result<(), TryLockError>,
    (path, database): (&Path, &Path),
    timeout: Duration,
) -> Result<()> {
    let started = Instant::now();
    loop {
        match lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Diagnosis::new(
                    Code::Busy,
                    format!(
                        "Another rewind of {} is under way, and did not end in time.",
                        database.display()
                    ),
                )
                .hint("see: ic rewind status; or give --busy-timeout more time"));
            }
            Err(TryLockError::Error(e)) => {
                return Err(e).while_doing(|| format!("locking {}", path.display()));
            }
        }
    }
}
