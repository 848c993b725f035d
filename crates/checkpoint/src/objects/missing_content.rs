//! Content that cannot be read any more: it leaves the index, so that a capture can keep it again, or is marked as gone.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_ledger::Durability;
use ic_ledger::events::Hash;

use super::store::{Form, Objects};
use crate::retention::readable;

impl Objects {
    /// Takes damaged objects out of the index, with those of their pieces that are damaged. A writer would not keep again what
    /// the index names. The caller holds the store's lock alone.
    pub fn forget_damaged(&self, damaged: &[Hash]) -> Result<()> {
        let mut gone: BTreeSet<Hash> = damaged.iter().copied().collect();
        for hash in damaged {
            // Often only one piece of a large content is damaged: the sound pieces stay, and need not be stored again.
            for piece in readable(self.pieces(hash))?.into_iter().flatten() {
                if readable(self.read(&piece))?.is_none() {
                    gone.insert(piece);
                }
            }
        }
        self.side().write(Durability::Synced, |tx| {
            gone.iter()
                .try_for_each(|hash| tx.execute("DELETE FROM objects WHERE hash = $1", &[&hash.as_slice()]).map(|_| ()))
        })?;
        self.forget_recent();
        Ok(())
    }

    /// Marks contents as gone, as a purge does: checkpoints that had them keep the rest. Kept again, they are back.
    pub fn mark_gone(&self, gone: &[Hash]) -> Result<()> {
        self.side().write(Durability::Synced, |tx| {
            gone.iter().try_for_each(|hash| {
                // There is no pack 0. Start 0 lets a capture keep the content again, which `NEVER_AGAIN` forbids.
                tx.execute_one(
                    "INSERT INTO objects (hash, form, pack, start, size) VALUES ($1, $2, 0, 0, 0) ON CONFLICT (hash) \
                     DO UPDATE SET form = excluded.form, pack = 0, start = 0, size = 0",
                    &[&hash.as_slice(), &Form::Purged.number()],
                )
            })
        })
    }
}
