//! What was found sound is not read through again while nothing has changed: `ic health` is asked often, and reading a store of thousands
//! of checkpoints takes seconds.
//!
//! A file beside the stat caches names the state that was sound: the stat of the store and of its log, and the checkpoints that need
//! it. A store that was touched in the last two seconds has no such state: it may change once more within the same tick of the clock. What
//! a disk loses without a write has no trace in a stat: `ic checkpoint verify --read-data` reads everything.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ic_checkpoint::objects::hash_of;
use ic_checkpoint::record::CheckpointRecord;
use ic_ledger::events::hex;
use ic_ledger::{private, sibling};

const SETTLED: Duration = Duration::from_secs(2);

/// The state of a store in which it was, or may be, sound.
pub(super) struct SoundState {
    note: PathBuf,
    /// `None`: it may change without a trace.
    stamp: Option<String>,
}

impl SoundState {
    /// The state now of the store at `objects`, which these checkpoints need.
    pub(super) fn of(objects: &Path, kept: &[CheckpointRecord]) -> Self {
        Self { note: objects.with_extension("cache").join("sound"), stamp: stamp(objects, kept) }
    }

    /// Whether it was found sound before.
    pub(super) fn is_known(&self) -> bool {
        // Without the first condition, no stamp and no note would count as the same.
        self.stamp.is_some() && fs::read_to_string(&self.note).ok() == self.stamp
    }

    /// Notes that it was found sound, if it is still the same. Where that fails, it is read again.
    pub(super) fn keep_if_still(&self, now: &Self) {
        let Some(stamp) = self.stamp.as_ref().filter(|_| self.stamp == now.stamp) else { return };
        let Ok(mut file) = private::open(&self.note, fs::File::options().create(true).truncate(true).write(true))
        else {
            return;
        };
        let _ = file.write_all(stamp.as_bytes());
    }
}

fn stamp(objects: &Path, kept: &[CheckpointRecord]) -> Option<String> {
    // A newer program may find damage that an older one did not look for.
    let mut bytes = env!("CARGO_PKG_VERSION").as_bytes().to_vec();
    for file in [objects, &sibling(objects, "-wal")] {
        let Ok(meta) = fs::metadata(file) else {
            bytes.push(0);
            continue;
        };
        // A time in the future has no age. Then nothing is known, and all is read.
        let touched = meta.modified().ok()?.elapsed().ok()?;
        if touched < SETTLED {
            return None;
        }
        bytes.push(1);
        bytes.extend([meta.dev(), meta.ino(), meta.len()].iter().flat_map(|number| number.to_le_bytes()));
        // Not the ctime: a process that opens a log sets its mode, and so changes its inode.
        bytes.extend([meta.mtime(), meta.mtime_nsec()].iter().flat_map(|number| number.to_le_bytes()));
    }
    // These hashes cover all that is below them: a set of checkpoints that needs another object has another stamp.
    for checkpoint in kept {
        bytes.extend_from_slice(&checkpoint.tree);
        bytes.extend_from_slice(&checkpoint.manifest);
    }
    Some(hex(&hash_of(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_sound_is_known_until_it_or_its_log_is_written() {
        let place = tempfile::tempdir().unwrap();
        let objects = place.path().join("objects.db");
        fs::create_dir(objects.with_extension("cache")).unwrap();
        fs::write(&objects, "content").unwrap();
        let now = || SoundState::of(&objects, &[]);
        now().keep_if_still(&now());
        assert!(!now().is_known(), "it was written a moment ago");
        let settled = || {
            std::thread::sleep(SETTLED + Duration::from_millis(100));
            now()
        };
        let state = settled();
        assert!(!state.is_known(), "it was not read yet");
        state.keep_if_still(&now());
        assert!(now().is_known());
        fs::write(&objects, "CONTENT").unwrap();
        assert!(!now().is_known() && !settled().is_known());
        let before = now();
        fs::write(place.path().join("objects.db-wal"), "log").unwrap();
        let after = settled();
        before.keep_if_still(&after);
        assert!(!after.is_known(), "it changed while it was read");
        after.keep_if_still(&now());
        assert!(now().is_known());
    }
}
