//! Locks that the operating system ends with their holder.
//!
//! Two of them, always taken in this order:
//! - of a root: exclusively by a restore, shared by a capture, so that no capture sees a tree half restored;
//! - of the store: shared by whoever keeps content until its ledger row is committed, exclusively by a sweep, so that no
//!   content goes that a row is about to name.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ic_base::{Code, Diagnose, Diagnosis, Result};

use crate::capture::root_key;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Beside others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The lock of a root, beside the object store `objects`. Errors: `busy` past the timeout.
pub fn root(objects: &Path, root: &Path, mode: Mode, timeout: Duration) -> Result<Lock> {
    let name = format!("{}.lock", root_key(root));
    let directory = crate::capture::cache_directory(objects)?;
    take(&directory.join(name), mode, timeout, || {
        format!("Somebody else restores or captures {}", root.display())
    })
}

/// The lock of the object store in `objects`. Errors: `busy` past the timeout.
pub fn store(objects: &Path, mode: Mode, timeout: Duration) -> Result<Lock> {
    let mut name = objects.as_os_str().to_owned();
    name.push(".lock");
    take(&PathBuf::from(name), mode, timeout, || "Somebody else prunes or captures".to_owned())
}

/// Takes a lock. Whoever waits for it holds the turnstile before it, so that one who wants it alone is not passed for ever
/// by others who share it.
fn take(path: &Path, mode: Mode, timeout: Duration, who: impl Fn() -> String) -> Result<Lock> {
    let started = Instant::now();
    let mut turnstile = path.as_os_str().to_owned();
    turnstile.push(".turn");
    let _turn = wait(&PathBuf::from(turnstile), Mode::Exclusive, started, timeout, &who)?;
    wait(path, mode, started, timeout, &who)
}

fn wait(
    path: &Path,
    mode: Mode,
    started: Instant,
    timeout: Duration,
    who: &impl Fn() -> String,
) -> Result<Lock> {
    let doing = || format!("locking {}", path.display());
    let file =
        File::options().create(true).truncate(false).write(true).mode(0o600).open(path).while_doing(doing)?;
    loop {
        let taken = match mode {
            Mode::Shared => file.try_lock_shared(),
            Mode::Exclusive => file.try_lock(),
        };
        match taken {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Diagnosis::new(Code::Busy, format!("{}, and did not end in time.", who()))
                    .hint("try again, or give --busy-timeout more time"));
            }
            Err(TryLockError::Error(e)) => return Err(e).while_doing(doing),
        }
    }
}
