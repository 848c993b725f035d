//! Space kept for a full disk: a file beside the ledger that does nothing but take space.
//!
//! A command that frees space needs some first, for the logs of ledger and store and for the rows that tell what was removed. On a
//! disk that is full to its last byte there would be none, and the command that could help would fail like any other.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::connection::next_random;
use crate::log::sibling;
use crate::private;

/// The size of the reserve in bytes: the logs of a prune in small steps stay below it.
const SIZE: usize = 1 << 20;

/// It is made only if this many times its size is free: it must not be what fills a small disk.
const PLENTY: u64 = 8;

/// How many bytes are written at once: on a disk that fills up during the write, less than this stays unused.
const STEP: usize = 64 << 10;

/// Keeps room beside the ledger, if there is none and the disk has plenty. It is a help and no duty: what fails is left.
pub fn keep(ledger: &Path) {
    let stat = rustix::fs::statvfs(ledger.parent().unwrap_or(Path::new("/")));
    let is_plenty = stat.is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) >= SIZE as u64 * PLENTY);
    if is_plenty && kept(ledger).is_none_or(|length| length < SIZE as u64) {
        make(ledger);
    }
}

/// Gives the room free, for a command that gives more back; returns whether there was any.
pub fn release(ledger: &Path) -> bool {
    let path = path_of(ledger);
    let had_any = kept(ledger).is_some_and(|length| length > 0);
    if had_any && std::fs::remove_file(&path).is_err() {
        return false;
    }
    if had_any {
        // An empty file marks that the reserve was used: a later call fills it again even if this process dies first.
        let _ = private::create_new(&path);
    }
    had_any
}

/// Takes the room again that was given free, as much of it as there is: the next full disk needs it like this one. Where none was
/// given free, as [`keep`].
pub fn keep_again(ledger: &Path) {
    match kept(ledger) {
        Some(length) if length < SIZE as u64 => make(ledger),
        Some(_) => {}
        None => keep(ledger),
    }
}

/// How much is kept; `None` where nothing is.
fn kept(ledger: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path_of(ledger)).ok().map(|meta| meta.len())
}

/// Makes it anew, as large as the disk allows.
fn make(ledger: &Path) {
    let path = path_of(ledger);
    let _ = std::fs::remove_file(&path);
    // Fails if another process makes the file at this moment: then that one fills it.
    let Ok(mut file) = private::create_new(&path) else { return };
    let noise = noise();
    for step in noise.chunks(STEP) {
        // What was written stays, and a later call fills the file up.
        if file.write_all(step).is_err() {
            return;
        }
    }
}

/// Bytes that no file system compresses away.
fn noise() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(|| {
        state = next_random(state);
        state.to_le_bytes()
    })
    .flatten()
    .take(SIZE)
    .collect()
}

fn path_of(ledger: &Path) -> PathBuf {
    sibling(ledger, ".reserve")
}

#[cfg(test)]
mod tests {
    use super::{SIZE, keep, keep_again, kept, release};

    #[test]
    fn it_is_made_once_given_free_and_made_again() {
        let place = tempfile::tempdir().unwrap();
        let ledger = place.path().join("ic.db");
        assert!(!release(&ledger));
        assert_eq!(kept(&ledger), None, "nothing is owed where nothing was");
        keep(&ledger);
        assert_eq!(kept(&ledger), Some(SIZE as u64));
        keep(&ledger);
        for _ in 0..3 {
            assert!(release(&ledger));
            assert_eq!(kept(&ledger), Some(0));
            assert!(!release(&ledger), "it is given free once");
            keep_again(&ledger);
            assert_eq!(kept(&ledger), Some(SIZE as u64));
        }
        std::fs::write(super::path_of(&ledger), "short").unwrap();
        keep(&ledger);
        assert_eq!(kept(&ledger), Some(SIZE as u64), "one that a full disk cut short is filled up");
    }
}
