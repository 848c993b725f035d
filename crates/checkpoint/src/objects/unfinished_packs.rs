//! Packs whose writer is not done: they take room, and nothing names what is in them.
//!
//! A writer enters its objects into the index with its last transaction. Until then no other writer can rely on them, so they
//! can be removed without asking what else needs them: by the writer that fails, or by the next process after one that died.

use ic_base::Result;
use ic_ledger::Durability;

use super::store::Objects;

impl Objects {
    /// Whether there are packs of writers that are not done: that work now, or died.
    pub fn has_unfinished(&self) -> Result<bool> {
        let found: Option<i64> = self
            .side()
            .read(|snapshot| snapshot.query_opt("SELECT pack FROM writing LIMIT 1", &[], |row| row.get(0)))?;
        Ok(found.is_some())
    }

    /// Gives back what writers left that died. The caller holds the store's lock alone: a living writer shares it.
    pub fn clear_unfinished(&self) -> Result<()> {
        let packs: Vec<i64> =
            self.side().read(|snapshot| snapshot.query_all("SELECT pack FROM writing", &[], |row| row.get(0)))?;
        self.discard(&packs)
    }

    /// Removes packs whose objects are not in the index, and gives their room back to the disk.
    pub(super) fn discard(&self, packs: &[i64]) -> Result<()> {
        if packs.is_empty() {
            return Ok(());
        }
        // One transaction each, as a sweep has: on a full disk there is little room for the log.
        for pack in packs {
            // Pack and row go together, so the disk need not be waited for: a crash loses both removals or none.
            self.side().write(Durability::Buffered, |tx| {
                tx.execute("DELETE FROM packs WHERE id = $1", &[pack])?;
                tx.execute("DELETE FROM writing WHERE pack = $1", &[pack]).map(|_| ())
            })?;
            self.side().empty_long_log()?;
        }
        self.forget_recent();
        self.side().shrink()
    }
}
