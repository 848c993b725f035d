//! What git told a look, for the next capture of this process: a look stores nothing, and a rollback that was planned a moment ago need not
//! ask again for what it is planned over.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// An index that is larger is listed again.
const MOST_BYTES: usize = 32 << 20;

static HELD: Mutex<Option<HeldAnswer>> = Mutex::new(None);

/// What git told, and the text of its index, which no store has.
#[derive(Debug)]
pub(super) struct HeldAnswer {
    /// Where it would be kept.
    pub(super) path: PathBuf,
    /// What was told, as it would be kept.
    pub(super) told: Vec<u8>,
    pub(super) index: Vec<u8>,
}

impl HeldAnswer {
    /// Holds it until a capture takes it, or another look was told something.
    pub(super) fn hold(self) {
        let held = (self.index.len() <= MOST_BYTES).then_some(self);
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// What is held of what would be kept there; it is held no longer.
    pub(super) fn take(path: &Path) -> Option<Self> {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).take_if(|held| held.path == path)
    }
}
