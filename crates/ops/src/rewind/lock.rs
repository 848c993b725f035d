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
    let started = Instant::now();
    let name = ic_events::hex(&Sha256::digest(path_bytes(database)).into());
    let path = directory(store)?.join(format!("{}.lock", &name[..16]));
    let doing = || format!("locking {}", path.display());
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .while_doing(doing)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _file: file }),
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
            Err(TryLockError::Error(e)) => return Err(e).while_doing(doing),
        }
    }
}
