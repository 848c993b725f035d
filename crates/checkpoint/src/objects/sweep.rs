//! Giving space back: objects that nothing names go, and packs that hold mostly such objects are written anew.
//!
//! Only under the store's lock, held alone: who captures holds it shared until the row is committed that names what was
//! kept. A grace window besides keeps what a program that heeds no lock may have added lately.

use std::collections::{HashMap, HashSet};

use ic_base::{Result, Timestamp};
use ic_ledger::events::Hash;
use ic_ledger::{Durability, Transaction};

use super::pack::{self, Builder, ObjectPack};
use super::read::NEVER_AGAIN;
use super::store::{Form, Objects};
use super::write::keep;

/// What a sweep gave back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many objects were removed from the index.
    pub objects: u64,
    /// How much smaller the store's file is, in bytes.
    pub bytes: u64,
}

/// What a purge took out of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenOut {
    /// Objects that were meant.
    pub objects: u64,
    /// Bytes beside them, uncompressed, that nothing needs: of checkpoints that are pruned, or of captures that died.
    pub unneeded_bytes: u64,
    /// Whether the file is free of both; false while another process reads an older state of it.
    pub is_clear: bool,
}

/// An object as the index has it.
pub(super) struct ListedPack {
    pub(super) hash: Hash,
    form: Form,
    start: usize,
    size: usize,
}

/// A pack is written anew when less than this part of it is still named, in percent.
const WORTH_KEEPING: usize = 60;

impl Objects {
    /// Removes every object that is not in `live` and was kept at `before` or earlier. The caller holds the store's lock alone.
    pub fn sweep(&self, live: &HashSet<Hash>, before: Timestamp) -> Result<Swept> {
        // The log is emptied first, so that content in both log and file is counted once. On a full disk this may fail; the steps below
        // empty it then.
        let _ = self.side().settle();
        let old_size = self.file_size();
        self.clear_unfinished()?;
        let packs = self.listed(before)?;
        let sizes: HashMap<i64, usize> = self.pack_sizes()?.into_iter().collect();
        let mut swept = Swept::default();
        let mut ids: Vec<i64> = packs.keys().copied().collect();
        // Those that go whole come first: on a full disk they make the room that the others need to be written anew.
        ids.sort_unstable_by_key(|id| (packs[id].iter().any(|o| live.contains(&o.hash)), *id));
        let mut is_shrunk = false;
        for id in ids {
            let objects = &packs[&id];
            let (kept, gone): (Vec<&ListedPack>, Vec<&ListedPack>) =
                objects.iter().partition(|o| live.contains(&o.hash));
            if gone.is_empty() {
                continue;
            }
            // All packs that go whole are gone by now: the file gives their room back before the first pack is written anew.
            if !is_shrunk && !kept.is_empty() {
                self.side().shrink()?;
                is_shrunk = true;
            }
            swept.objects += gone.len() as u64;
            self.rewrite(id, sizes.get(&id).copied().unwrap_or_default(), &kept, &gone)?;
            // Every pack that is written anew goes through the log, which would become as long as all of them.
            self.side().empty_long_log()?;
        }
        // If the index names nothing of a pack, it is in no list above.
        self.drop_empty_packs(before)?;
        self.forget_recent();
        self.side().shrink()?;
        swept.bytes = old_size.saturating_sub(self.file_size());
        Ok(swept)
    }

    /// Takes `contents` and `pieces` of them out for good, and all that is not in `live`, also what lies in a pack without
    /// a name; then rebuilds the file, so that nothing of it is left. No file that has one of `contents` is kept again. Another
    /// process that reads the store keeps what it sees until it ends.
    pub fn purge_all_but(
        &self,
        contents: &HashSet<Hash>,
        pieces: &HashSet<Hash>,
        live: &HashSet<Hash>,
    ) -> Result<TakenOut> {
        let is_to_go = |object: &&ListedPack| contents.contains(&object.hash) || pieces.contains(&object.hash);
        // What was lost lies in no pack, so the loop below never comes to it.
        self.forbid(contents)?;
        let mut packs = self.listed(Timestamp(i64::MAX))?;
        let mut taken = TakenOut::default();
        // This goes through all packs: the index does not know a pack if all of its objects were forgotten.
        for (id, size) in self.pack_sizes()? {
            let objects = packs.remove(&id).unwrap_or_default();
            let (kept, rest): (Vec<&ListedPack>, Vec<&ListedPack>) =
                objects.iter().partition(|o| live.contains(&o.hash) && !is_to_go(o));
            let out: Vec<&ListedPack> = rest.iter().copied().filter(is_to_go).collect();
            // An object that was forgotten leaves its bytes in a pack that keeps most of the others.
            let bytes = kept.iter().fold(0_usize, |sum, object| sum.saturating_add(object.size));
            if rest.is_empty() && bytes == size {
                continue;
            }
            let pack = match self.without(id, &kept)? {
                Some(pack) => pack,
                // What cannot be read is left for `verify` to name, unless something that is to go stands in it.
                None if out.is_empty() => continue,
                None => Replacement { created_at: Timestamp(0), pack: None },
            };
            taken.objects += out.len() as u64;
            let meant = out.iter().fold(bytes, |sum, object| sum.saturating_add(object.size));
            taken.unneeded_bytes += size.saturating_sub(meant) as u64;
            self.side().write(Durability::Synced, |tx| {
                replace(tx, id, &objects.iter().collect::<Vec<_>>(), &pack)?;
                out.iter().try_for_each(|o| mark_purged(tx, &o.hash, contents.contains(&o.hash)))
            })?;
        }
        self.forget_recent();
        // What is deleted leaves its bytes in free pages and in the log. Only a rebuilt file is without them.
        taken.is_clear = self.side().rebuild()?;
        Ok(taken)
    }

    /// What was lost is not kept again either once it is purged.
    fn forbid(&self, contents: &HashSet<Hash>) -> Result<()> {
        self.side().write(Durability::Synced, |tx| {
            contents.iter().try_for_each(|hash| {
                tx.execute(
                    "UPDATE objects SET start = $1 WHERE hash = $2 AND form = 2",
                    &[&NEVER_AGAIN, &hash.as_slice()],
                )
                .map(|_| ())
            })
        })
    }

    fn pack_sizes(&self) -> Result<Vec<(i64, usize)>> {
        self.side().read(|snapshot| {
            snapshot.query_all("SELECT id, size FROM packs ORDER BY id", &[], |row| {
                Ok((row.get::<i64>(0)?, row.get::<i64>(1).map(|n| usize::try_from(n).unwrap_or(usize::MAX))?))
            })
        })
    }

    /// Remembers names of which nothing is kept, as those of purged objects are.
    pub(crate) fn remember_purged(&self, names: &[Hash]) -> Result<()> {
        self.side().write(Durability::Synced, |tx| {
            names.iter().try_for_each(|name| {
                // The name may be marked as lost, which is the weaker mark.
                tx.execute("DELETE FROM objects WHERE hash = $1 AND form = 2", &[&name.as_slice()])?;
                mark_purged(tx, name, true)
            })
        })
    }

    /// Every object by its pack, of packs from `before` or earlier.
    pub(super) fn listed(&self, before: Timestamp) -> Result<HashMap<i64, Vec<ListedPack>>> {
        let mut packs: HashMap<i64, Vec<ListedPack>> = HashMap::new();
        // The age is that of the pack. Marks have pack 0, which does not exist, so the join leaves them out.
        let rows = self.side().read(|snapshot| {
            snapshot.query_all(
                "SELECT o.hash, o.form, o.start, o.size, o.pack FROM packs p JOIN objects o ON o.pack = p.id \
                 WHERE p.created_at <= $1",
                &[&before.millis()],
                |row| {
                    let place = |index| row.get::<i64>(index).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
                    Ok((row.get::<Hash>(0)?, row.get::<i64>(1)?, place(2)?, place(3)?, row.get::<i64>(4)?))
                },
            )
        })?;
        for (hash, form, start, size, pack) in rows {
            // The table allows no other forms: only damage leads to the default, and a read verifies the content.
            let form = Form::of_number(form).unwrap_or(Form::Whole);
            packs.entry(pack).or_default().push(ListedPack { hash, form, start, size });
        }
        Ok(packs)
    }

    /// Takes objects out of a pack; one that keeps most of its content only loses them from the index.
    fn rewrite(&self, id: i64, size: usize, kept: &[&ListedPack], gone: &[&ListedPack]) -> Result<()> {
        // A damaged index may say anything of their sizes.
        let left = kept.iter().fold(0_usize, |sum, object| sum.saturating_add(object.size));
        // The bytes of what is forgotten stay in the pack until more of it goes, which is less work than to write it anew each time. The
        // size of the pack decides, because it includes what earlier sweeps forgot.
        if !kept.is_empty() && left.saturating_mul(100) >= size.saturating_mul(WORTH_KEEPING) {
            return self.side().write(Durability::Synced, |tx| forget(tx, gone));
        }
        // What cannot be read is left for `verify` to name.
        let Some(pack) = self.without(id, kept)? else { return Ok(()) };
        let everything: Vec<&ListedPack> = kept.iter().chain(gone).copied().collect();
        self.side().write(Durability::Synced, |tx| replace(tx, id, &everything, &pack))
    }

    /// What a pack becomes that holds `kept` and nothing else; `None` if not all of them can be read.
    pub(super) fn without(&self, id: i64, kept: &[&ListedPack]) -> Result<Option<Replacement>> {
        let row = self.side().read(|snapshot| {
            snapshot.query_opt("SELECT data, size, created_at FROM packs WHERE id = $1", &[&id], |row| {
                Ok((row.get::<Vec<u8>>(0)?, row.get::<i64>(1)?, Timestamp(row.get(2)?)))
            })
        })?;
        let Some((data, size, created_at)) = row else { return Ok(None) };
        let Some(raw) = pack::open(&data, size) else { return Ok(None) };
        // Whether directories are in it matters only to a writer that is not done.
        let mut builder = Builder::default();
        for object in kept {
            let content = object.start.checked_add(object.size).and_then(|end| raw.get(object.start..end));
            let Some(content) = content else { return Ok(None) };
            builder.add(object.hash, object.form, content);
        }
        Ok(Some(Replacement { created_at, pack: builder.close()? }))
    }

    /// Removes packs that nothing is left of: those of a capture that failed, or that another one had kept already.
    fn drop_empty_packs(&self, before: Timestamp) -> Result<()> {
        // `NOT IN` is safe here: the column has no NULL, which would make it true of no pack.
        self.side().write(Durability::Synced, |tx| {
            tx.execute(
                "DELETE FROM packs WHERE created_at <= $1 AND id NOT IN (SELECT pack FROM objects)",
                &[&before.millis()],
            )
            .map(|_| ())
        })
    }

    /// What SQLite finds wrong with the store's file; empty when nothing is.
    pub fn file_damage(&self) -> Result<Vec<String>> {
        self.side().damage()
    }

    /// The bytes that the store takes on disk.
    pub fn file_size(&self) -> u64 {
        file_size(self.path())
    }
}

/// The bytes that the store at `path` takes on disk; it is not opened.
pub fn file_size(path: &std::path::Path) -> u64 {
    let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    size(path) + size(&ic_ledger::sibling(path, "-wal"))
}

/// What takes the place of a pack.
pub(super) struct Replacement {
    pub(super) created_at: Timestamp,
    /// `None` if nothing is left of it.
    pub(super) pack: Option<ObjectPack>,
}

/// Replaces a pack and the index of all that lay in it.
fn replace(tx: &Transaction<'_>, id: i64, everything: &[&ListedPack], by: &Replacement) -> Result<()> {
    // This comes first: an object that the index still has would keep its place in the old pack.
    forget(tx, everything)?;
    tx.execute("DELETE FROM packs WHERE id = $1", &[&id])?;
    by.pack.as_ref().map_or(Ok(()), |pack| keep(tx, by.created_at, pack))
}

fn forget(tx: &Transaction<'_>, objects: &[&ListedPack]) -> Result<()> {
    objects
        .iter()
        .try_for_each(|object| tx.execute_one("DELETE FROM objects WHERE hash = $1", &[&object.hash.as_slice()]))
}

/// Leaves the name of an object that was purged. `is_whole`: it is no mere piece, which another content may have, too.
fn mark_purged(tx: &Transaction<'_>, name: &Hash, is_whole: bool) -> Result<()> {
    let start = if is_whole { NEVER_AGAIN } else { 0 };
    tx.execute_one(
        "INSERT INTO objects (hash, form, pack, start, size) VALUES ($1, $2, 0, $3, 0)",
        &[&name.as_slice(), &Form::Purged.number(), &start],
    )
}
