//! Entering what was added before the end: a capture that is killed half-way leaves what it stored to the next one.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError, RwLockReadGuard};
use std::time::{Duration, Instant};

use ic_base::Result;

use super::{Writer, locked};

/// The interval in which a writer that may be killed enters what it has, in one transaction that waits for the disk. A kill loses at most
/// the work of one interval.
const PROGRESS: Duration = Duration::from_millis(300);

/// When what was added entered the index last.
pub(super) type Last = Mutex<Instant>;

impl Writer<'_> {
    /// Enters what is added from time to time, and when the writer is dropped: the process may be killed, and the next capture shall
    /// find what this one stored.
    pub fn keep_progress(&mut self) {
        self.progress = self.keeps.then(|| Mutex::new(Instant::now()));
    }

    /// Enters what is due, and keeps others from entering as long as the guard lives.
    pub(super) fn share_gate(&self) -> Result<RwLockReadGuard<'_, ()>> {
        // This comes before the gate is taken shared: entering takes it alone, and this thread would wait for itself.
        self.enter_if_due()?;
        Ok(self.gate.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters what was added, if it is time.
    fn enter_if_due(&self) -> Result<()> {
        // Of several threads one does it: the others wait at the gate, if they come so far.
        let Some(mut last) = self.progress.as_ref().and_then(|last| last.try_lock().ok()) else {
            return Ok(());
        };
        if last.elapsed() >= PROGRESS {
            self.enter_progress()?;
            *last = Instant::now();
        }
        Ok(())
    }

    /// Makes everything durable, and visible to others, that was added so far.
    fn enter_progress(&self) -> Result<()> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        // Open packs are entered too: a list and its pieces may be in different ones.
        self.close()?;
        let packs = std::mem::take(&mut *locked(&self.waiting)).packs;
        if self.is_too_much.load(Relaxed) || !self.has_room(&packs)? {
            return Ok(());
        }
        // Nothing came since the last time: no transaction, and no wait for the disk.
        if packs.is_empty() && locked(&self.written).packs.is_empty() {
            return Ok(());
        }
        self.enter(&packs)
    }

    /// After a failure nothing enters any more: packs that were on their way are lost, and what is left may be a list of what they held.
    pub(super) fn or_stop<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.is_too_much.store(true, Relaxed);
        }
        result
    }

    /// Enters what is left, if the writer ends early. What does not fit is not kept in part: others need the disk, too.
    pub(super) fn enter_rest(&self) {
        // `is_too_much` is also set where writing failed: what is left is removed, and never entered in part.
        if self.progress.is_some() && !self.is_too_much.load(Relaxed) {
            // A failure is ignored: what has not entered is removed next, and the next capture stores it again.
            let _ = self.enter_progress();
        }
    }
}
