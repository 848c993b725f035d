//! The lock of a state database, and the directory of what rewinds keep.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::lock::{FileLock, HeldLock, LockMode, Rank, wait};
use ic_ledger::{path_bytes, private};
use sha2::{Digest, Sha256};

/// The directory beside the ledger for archives, logs and locks. It is made if it is missing.
pub fn directory(store: &Path) -> Result<PathBuf> {
    let directory = store.join("rewinds");
    private::directories(&directory).while_doing(|| format!("making {}", directory.display()))?;
    Ok(directory)
}

/// Takes the lock that makes every other rewind of this database wait. Errors: `busy` past the timeout.
pub fn database(store: &Path, database: &Path, timeout: Duration) -> Result<FileLock> {
    let path = directory(store)?.join(name_of(database));
    FileLock::take(&path, Rank::Database, LockMode::Exclusive, timeout)
        .while_doing(|| format!("locking {}", path.display()))?
        .ok_or_else(|| under_way(database))
}

/// Whether the lock of a database could be taken, waiting as [`database`] does; nothing is made or kept. Errors: `busy`.
pub fn require_free(store: &Path, database: &Path, timeout: Duration) -> Result<()> {
    let path = store.join("rewinds").join(name_of(database));
    let doing = || format!("looking at {}", path.display());
    let _held = HeldLock::new(Rank::Database);
    let file = match File::open(&path) {
        // No process ever locked it.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file.while_doing(doing)?,
    };
    // A shared lock, so that two checks do not block each other.
    let is_free = wait(&file, LockMode::Shared, timeout).while_doing(doing)?;
    if is_free { Ok(()) } else { Err(under_way(database)) }
}

fn name_of(database: &Path) -> String {
    // A path has slashes, and may be longer than the name of a file.
    let name = ic_ledger::events::hex(&Sha256::digest(path_bytes(database)).into());
    format!("{}.lock", &name[..16])
}

fn under_way(database: &Path) -> Diagnosis {
    Diagnosis::new(
        Code::Busy,
        format!("Another rewind of {} is under way, and did not end in time.", database.display()),
    )
    .hint("see: ic rewind status; or give --busy-timeout more time")
}
