//! Room kept for a bad day: a file beside the ledger that does nothing but take space.
//!
//! What gives space back needs some first, for the logs of ledger and store and for the rows that say what was removed. On a
//! disk that is full to its last byte there would be none, and the command that could help would fail like any other.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::private;

/// So much is kept: the logs of a prune in small steps stay below it.
const SIZE: usize = 1 << 20;

/// It is made only where so many times its size is left: it must not be what fills a small disk.
const PLENTY: u64 = 8;

/// Keeps room beside the ledger, if there is none and the disk has plenty. It is a help and no duty: what fails is left.
pub fn keep(ledger: &Path) {
    let path = path_of(ledger);
    if path.exists() {
        return;
    }
    let stat = rustix::fs::statvfs(ledger.parent().unwrap_or(Path::new("/")));
    let is_plenty =
        stat.is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) >= SIZE as u64 * PLENTY);
    if !is_plenty {
        return;
    }
    // Bytes that no file system compresses away.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(SIZE)
    .collect();
    let made = private::create_new(&path).and_then(|mut file| file.write_all(&bytes));
    if made.is_err_and(|e| e.kind() != std::io::ErrorKind::AlreadyExists) {
        let _ = std::fs::remove_file(path);
    }
}

/// Gives the room free, for a command that gives more back; returns whether there was any.
pub fn release(ledger: &Path) -> bool {
    std::fs::remove_file(path_of(ledger)).is_ok()
}

fn path_of(ledger: &Path) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(".reserve");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::{SIZE, keep, path_of, release};

    #[test]
    fn it_is_made_once_and_given_free() {
        let place = tempfile::tempdir().unwrap();
        let ledger = place.path().join("ic.db");
        assert!(!release(&ledger));
        keep(&ledger);
        assert_eq!(std::fs::metadata(path_of(&ledger)).unwrap().len(), SIZE as u64);
        keep(&ledger);
        assert!(release(&ledger) && !path_of(&ledger).exists());
    }
}
