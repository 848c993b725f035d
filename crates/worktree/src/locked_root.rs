//! A root and its store, held from before a capture or a restore until its row is committed.

use std::time::Duration;

use ic_base::{Code, Result};
use ic_checkpoint::lock::{self, Lock, LockMode};
use ic_checkpoint::scratch;

use super::workspace::Workspace;

/// Locks that are held from before a capture until its row is committed.
pub struct LockedRoot {
    _root: Lock,
    _store: Lock,
}

impl Workspace<'_> {
    /// Waits for its turn: `root` says how the root is held. Errors: `busy`.
    ///
    /// A capture that will be recorded holds it alone, as a restore does. Of two at once, the one that read a file first could be
    /// recorded last: then the record has the changes of the tree in a wrong order, and gives them to the wrong work. What only looks
    /// shares it, so that it does not see half of a restore.
    pub fn lock(&self, root: LockMode) -> Result<LockedRoot> {
        let timeout = self.settings.busy_timeout;
        // A capture that was killed left whole copies of databases. They are private, and large: the next call removes
        // them, before it holds a lock that removing them might wait for. `prune` tries again what fails here, and reports it.
        scratch::clear(self.objects.path());
        let root = lock::root(self.objects.path(), &self.root, root, timeout)?;
        // Between both locks: it needs the store alone, which this process could not get while it holds the store shared.
        self.clear_unfinished()?;
        let store = lock::store(self.objects.path(), LockMode::Shared, timeout)?;
        Ok(LockedRoot { _root: root, _store: store })
    }

    /// Removes what killed captures left in the store. If another process writes now, it holds the store's lock, and this is left to
    /// the next call: under that lock, living and dead content cannot be told apart.
    fn clear_unfinished(&self) -> Result<()> {
        if !self.objects.has_unfinished()? {
            return Ok(());
        }
        match lock::store(self.objects.path(), LockMode::Exclusive, Duration::ZERO) {
            Ok(_alone) => self.objects.clear_unfinished(),
            Err(error) if error.code() == Code::Busy => Ok(()),
            Err(error) => Err(error),
        }
    }
}
