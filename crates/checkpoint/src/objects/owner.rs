//! Whose content it is: a store knows its ledger by an id, and goes to another file with it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ic_base::{LedgerId, Result};
use ic_ledger::events::Hash;
use ic_ledger::{Durability, OpenOptions, SideDatabase};

use super::read::NEVER_AGAIN;
use super::store::{Form, Objects};
use super::write::keep;

/// How many packs a transaction of a copy has: 4 MB of content, as those of a writer.
const AT_ONCE: usize = 16;

impl Objects {
    /// Opens the store in the file `path` to look at it; `None` if there is none. Nothing is made.
    pub fn look(path: &Path, options: OpenOptions) -> Result<Option<Self>> {
        if SideDatabase::exists(path) { Self::open(path, options).map(Some) } else { Ok(None) }
    }

    /// The ledger that the store belongs to; `None` if none has claimed it.
    pub fn owner(&self) -> Result<Option<LedgerId>> {
        self.side().read(|snapshot| {
            snapshot.query_opt("SELECT ledger FROM store", &[], |row| row.get(0).map(LedgerId::from_ledger))
        })
    }

    /// Claims a store that no ledger has, and returns whose it is then: another process may have been faster.
    pub fn claim(&self, ledger: &LedgerId) -> Result<LedgerId> {
        // One transaction inserts and reads: two processes that claim at once learn the same owner.
        let owner = self.side().write(Durability::Synced, |tx| {
            tx.execute(
                "INSERT INTO store (one, ledger) VALUES (1, $1) ON CONFLICT (one) DO NOTHING",
                &[&ledger.as_str()],
            )?;
            tx.query_opt("SELECT ledger FROM store", &[], |row| row.get(0).map(LedgerId::from_ledger))
        })?;
        // There always is an owner: the row was found, or inserted in the same transaction.
        Ok(owner.unwrap_or_else(|| ledger.clone()))
    }

    /// Makes sure that the store has a write-ahead log: one that was moved or copied has none yet.
    pub fn use_log(&self) -> Result<()> {
        self.side().use_log()
    }

    /// Copies the whole file at one moment, to become `to`; the copy belongs to the same ledger.
    pub fn copy_for(&self, to: &Path) -> Result<ic_ledger::Unnamed> {
        self.side().copy_for(to, self.patience())
    }

    /// Closes a store that is not ours, and leaves it to the byte as it was found.
    pub fn leave(self) {
        if let Ok(side) = self.side.into_inner() {
            side.leave();
        }
    }

    /// Gives the store's file another name. Errors: `busy` if another process has it open; it stays where it is then.
    pub fn rename(self, to: &Path) -> Result<()> {
        let side = self.side.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        side.rename(to)
    }

    /// Copies what is in `live` into a new store of `ledger` at `to`. What cannot be read is left out: `verify` names it there.
    ///
    /// The file gets its name when it is whole: a copy that a crash left unfinished is never taken for a store. The caller holds
    /// the lock of this store alone. Errors: `disk_full`, with how much is missing: nothing was changed.
    pub fn copy_to(&self, to: &Path, live: &HashSet<Hash>, ledger: &LedgerId, options: OpenOptions) -> Result<()> {
        // A copy that a crash left is removed: `open` would continue it, and add to what it holds.
        Self::forget_copy(to)?;
        let partial = partial(to);
        // Asked before the first byte: a copy that fills the disk would stop every other program.
        super::room::require_room(&partial, self.file_size(), "A store of its own for this ledger")?;
        let copy = Self::open(&partial, options)?;
        let copied = self.copy_into(&copy, live).and_then(|()| copy.claim(ledger));
        match copied.and_then(|_| copy.rename(to)) {
            Ok(()) => Ok(()),
            Err(error) => {
                // What does not fit is given back at once; when that fails too, the next attempt does it.
                let _ = ic_ledger::remove_side(&partial);
                Err(error)
            }
        }
    }

    /// Removes what a crash left of a copy that was to be the store at `to`. The caller holds the lock of the store that it was of.
    pub fn forget_copy(to: &Path) -> Result<()> {
        ic_ledger::remove_side(&partial(to))
    }

    fn copy_into(&self, copy: &Self, live: &HashSet<Hash>) -> Result<()> {
        // It takes packs of every age: the caller holds the store alone, so none of them belongs to a writer that still works.
        let packs = self.listed(ic_base::Timestamp(i64::MAX))?;
        let mut ids: Vec<i64> = packs.keys().copied().collect();
        ids.sort_unstable();
        for some in ids.chunks(AT_ONCE) {
            let mut parts = Vec::new();
            for id in some {
                let kept: Vec<_> = packs[id].iter().filter(|object| live.contains(&object.hash)).collect();
                if !kept.is_empty() {
                    parts.extend(self.without(*id, &kept)?);
                }
            }
            // Not waited for: the last transaction is, and before it the copy has no name.
            copy.side().write(Durability::Buffered, |tx| {
                parts
                    .iter()
                    .try_for_each(|part| part.pack.as_ref().map_or(Ok(()), |pack| keep(tx, part.created_at, pack)))
            })?;
        }
        // What was purged stays known as such: a restore leaves it alone instead of failing.
        let purged = self.side().read(|snapshot| {
            snapshot.query_all("SELECT hash, start FROM objects WHERE form = $1", &[&Form::Purged.number()], |row| {
                Ok((row.get::<Hash>(0)?, row.get::<i64>(1)?))
            })
        })?;
        // A mark that forbids content outlives the checkpoints that named it, so it is copied even if nothing live names it.
        let stays = |(hash, start): &&(Hash, i64)| *start == NEVER_AGAIN || live.contains(hash);
        copy.side().write(Durability::Synced, |tx| {
            purged.iter().filter(stays).try_for_each(|(hash, start)| {
                tx.execute(
                    "INSERT INTO objects (hash, form, pack, start, size) VALUES ($1, $2, 0, $3, 0) \
                     ON CONFLICT (hash) DO NOTHING",
                    &[&hash.as_slice(), &Form::Purged.number(), start],
                )
                .map(|_| ())
            })
        })
    }
}

/// What a copy is called until it is whole.
fn partial(store: &Path) -> PathBuf {
    store.with_extension("db.partial")
}
