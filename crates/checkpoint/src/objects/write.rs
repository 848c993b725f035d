//! Adding objects. Many threads may add at once; content becomes durable, and visible to others, with [`Writer::finish`].
//!
//! Packs are written as they fill up, and their objects enter the index in the last transaction. So a writer that fails, because the
//! disk is full or it was killed, leaves nothing in the index: its packs are removed when it is dropped, or by the next writer
//! ([`Objects::clear_unfinished`]).
//!
//! A writer whose caller may be killed for taking too long enters what it has from time to time ([`Writer::keep_progress`]): the next one
//! finds it, and a sweep takes it where none comes.

mod progress;
mod put;
mod rows;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ic_base::{Result, Timestamp};
use ic_ledger::Durability;
use ic_ledger::events::Hash;

use self::put::Heeds;
pub(super) use self::rows::keep;
use self::rows::{index, insert, place};
use super::pack::{Builder, ObjectPack, Placed};
use super::read::Presence;
use super::room::{self, MARGIN};
use super::store::{Form, Objects, PIECE, hash_of};
use crate::tree::Encoded;

/// A directory whose byte form is no longer than this is one object.
const SMALL_DIRECTORY: usize = 1024;

/// Packs are written when they hold this many bytes together.
const BATCH: usize = 4 << 20;

/// What is no larger is written without asking for room: SQLite says as soon as it has none, and little has to be given back.
const LITTLE: u64 = 64 << 10;

/// What an object takes in the index, in bytes, with what a tree of pages leaves free.
const INDEX_ROW: u64 = 100;

/// What one writer added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Objects that the store did not have.
    pub new_objects: u64,
    /// Bytes that they take, compressed.
    pub stored_bytes: u64,
}

/// Adds objects to a store.
pub struct Writer<'o> {
    objects: &'o Objects,
    now: Timestamp,
    /// The store was empty: nothing needs to be looked up.
    is_first: bool,
    /// Whether content is stored; a look stores none.
    keeps: bool,
    /// Whether the store lacks something that was added.
    is_news: AtomicBool,
    seen: Mutex<HashSet<Hash>>,
    /// Directories lie in packs of their own, so that comparing two trees opens few.
    trees: Mutex<Vec<Builder>>,
    contents: Mutex<Vec<Builder>>,
    /// Whether a new directory did not fit into memory, and can only be read once it is in the store.
    is_unread: AtomicBool,
    waiting: Mutex<Waiting>,
    written: Mutex<Written>,
    progress: Option<progress::Last>,
    /// Held alone while added objects enter the index, and shared while objects are added: a list never enters before its pieces.
    gate: RwLock<()>,
    /// Whether the disk has too little room, or a write has failed. From then on objects are only counted, to say how much room would be
    /// needed.
    is_too_much: AtomicBool,
    new_objects: AtomicU64,
    stored_bytes: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    packs: Vec<ObjectPack>,
    bytes: usize,
}

/// Packs that are in the store and whose objects are not in its index.
#[derive(Default)]
struct Written {
    packs: Vec<i64>,
    objects: Vec<(i64, Placed)>,
    bytes: u64,
}

impl Objects {
    /// Begins to add objects.
    pub fn writer(&self, now: Timestamp) -> Result<Writer<'_>> {
        self.writer_that(true, now)
    }

    /// As [`Objects::writer`], for a look: it names content as a writer does, and stores none. The directories that the store lacks
    /// can be read with [`Objects::tree`] as long as this handle lives; they are small, and in memory.
    pub fn looker(&self, now: Timestamp) -> Result<Writer<'_>> {
        self.writer_that(false, now)
    }

    fn writer_that(&self, keeps: bool, now: Timestamp) -> Result<Writer<'_>> {
        // The index is asked and not the packs: a purge of all that there was leaves names, and those must be heeded.
        let any: Option<Option<Hash>> =
            self.side().read(|snapshot| snapshot.query_opt("SELECT min(hash) FROM objects", &[], |row| row.get(0)))?;
        let is_first = any.flatten().is_none();
        Ok(Writer {
            objects: self,
            now,
            is_first,
            keeps,
            is_news: AtomicBool::new(false),
            seen: Mutex::default(),
            trees: Mutex::default(),
            contents: Mutex::default(),
            is_unread: AtomicBool::new(false),
            waiting: Mutex::default(),
            written: Mutex::default(),
            progress: None,
            gate: RwLock::default(),
            is_too_much: AtomicBool::new(false),
            new_objects: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
        })
    }
}

impl Writer<'_> {
    /// What it adds to.
    pub(crate) fn objects(&self) -> &Objects {
        self.objects
    }

    /// How long locks are waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.objects.patience()
    }

    /// Whether content is stored: a look stores none.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Whether the store has an object, or will have it with what this writer added.
    pub(crate) fn has(&self, hash: &Hash) -> Result<bool> {
        let is_added = locked(&self.seen).contains(hash);
        Ok(is_added || (!self.is_first && self.objects.presence(hash)? == Presence::Here))
    }

    /// Adds a directory, in pieces if it is large, unless the store has it; returns its hash.
    pub(crate) fn put_tree(&self, encoded: &Encoded) -> Result<Hash> {
        let bytes = &encoded.bytes;
        let hash = hash_of(bytes);
        if !self.keeps {
            if self.is_new(&hash)? {
                self.objects.hold(hash, bytes);
            }
            return Ok(hash);
        }
        // The caller compares the new tree with its parent before the last transaction. What fits into memory is read
        // from there; the rest needs `expose`.
        if !self.objects.remember(hash, bytes) {
            self.is_unread.store(true, Relaxed);
        }
        // What is cut before its first byte is not cut there: it would be a list of itself.
        let cuts: Vec<usize> = encoded.cuts().filter(|cut| *cut > 0).collect();
        if bytes.len() <= SMALL_DIRECTORY || (cuts.is_empty() && bytes.len() <= PIECE) {
            self.put(&self.trees, hash, Form::Whole, bytes, Heeds::Nothing)?;
            return Ok(hash);
        }
        if !self.is_new(&hash)? {
            return Ok(hash);
        }
        let mut pieces = Vec::with_capacity((cuts.len() + 1) * 32);
        let ends = cuts.into_iter().chain([bytes.len()]);
        let mut start = 0;
        for end in ends {
            for piece in bytes[start..end].chunks(PIECE) {
                let hash = hash_of(piece);
                self.put(&self.trees, hash, Form::Whole, piece, Heeds::Nothing)?;
                pieces.extend_from_slice(&hash);
            }
            start = end;
        }
        let _shared = self.share_gate()?;
        self.add(&self.trees, hash, Form::Pieces, &pieces)?;
        Ok(hash)
    }

    /// Makes sure that every directory that was added can be read with [`Objects::tree`].
    pub fn expose(&self) -> Result<()> {
        if !self.is_unread.swap(false, Relaxed) {
            return Ok(());
        }
        self.close()?;
        if self.is_too_much.load(Relaxed) {
            return Err(self.too_much());
        }
        // This is not the last transaction: what it writes is in no index, and only this handle can read it.
        self.flush()
    }

    /// Makes everything durable that was added, and tells how much it was.
    ///
    /// Errors: `disk_full`, ...: the store is as it was before.
    pub fn finish(self) -> Result<Stored> {
        self.close()?;
        let packs = std::mem::take(&mut *locked(&self.waiting)).packs;
        if self.is_too_much.load(Relaxed) || !self.has_room(&packs)? {
            return Err(self.too_much());
        }
        // Without a new object there is nothing to enter, and no disk to wait for.
        if self.new_objects.load(Relaxed) > 0 {
            self.enter(&packs)?;
        }
        Ok(Stored { new_objects: self.new_objects.load(Relaxed), stored_bytes: self.stored_bytes.load(Relaxed) })
    }

    /// Ends every open pack; little ones become one.
    fn close(&self) -> Result<()> {
        let mut open = std::mem::take(&mut *locked(&self.trees));
        open.append(&mut locked(&self.contents));
        let mut last = Builder::default();
        for builder in &mut open {
            last.absorb(builder);
            if last.is_full() {
                self.close_one(&mut last)?;
            }
        }
        self.close_one(&mut last)
    }

    fn close_one(&self, builder: &mut Builder) -> Result<()> {
        if let Some(pack) = self.or_stop(builder.close())? {
            self.wait(pack);
        }
        Ok(())
    }

    /// Adds an object, unless it is here or `heeds` forbids it. Returns what there was of the object.
    fn put(&self, to: &Mutex<Vec<Builder>>, hash: Hash, form: Form, bytes: &[u8], heeds: Heeds) -> Result<Presence> {
        // The gate is shared before the question: a thread that takes the object for added must not enter its own objects without it.
        let _shared = self.share_gate()?;
        let presence = self.presence(&hash, heeds)?;
        if heeds.keeps(presence) {
            self.add(to, hash, form, bytes)?;
        }
        Ok(presence)
    }

    /// Whether neither the store nor this writer has the object; asked once, it answers no from then on.
    fn is_new(&self, hash: &Hash) -> Result<bool> {
        Ok(self.presence(hash, Heeds::Nothing)? != Presence::Here)
    }

    /// Whether the store has all that was added, so that what names it can be trusted though nothing was stored.
    pub fn stores_all(&self) -> bool {
        self.keeps || !self.is_news.load(Relaxed)
    }

    /// Adds an object to an open pack. The caller shares the gate.
    fn add(&self, to: &Mutex<Vec<Builder>>, hash: Hash, form: Form, bytes: &[u8]) -> Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let is_of_trees = std::ptr::eq(to, &raw const self.trees);
        // Taken out of the list: the lock is not held while a full pack is compressed.
        let mut builder =
            locked(to).pop().unwrap_or_else(|| if is_of_trees { Builder::of_trees() } else { Builder::default() });
        builder.add(hash, form, bytes);
        self.new_objects.fetch_add(1, Relaxed);
        let full = if builder.is_full() { self.or_stop(builder.close())? } else { None };
        locked(to).push(builder);
        if full.is_some_and(|pack| self.wait(pack) >= BATCH) {
            self.flush()?;
        }
        Ok(())
    }

    /// Puts a pack among those that wait to be written; returns how many bytes wait.
    fn wait(&self, pack: ObjectPack) -> usize {
        self.stored_bytes.fetch_add(pack.data.len() as u64, Relaxed);
        let mut waiting = locked(&self.waiting);
        waiting.bytes += pack.data.len();
        waiting.packs.push(pack);
        waiting.bytes
    }

    /// Writes the packs that wait. Others do not see what is in them.
    fn flush(&self) -> Result<()> {
        // The packs are taken out first: other threads can add packs while these are written.
        let packs = std::mem::take(&mut *locked(&self.waiting)).packs;
        if packs.is_empty() || self.is_too_much.load(Relaxed) || !self.has_room(&packs)? {
            return Ok(());
        }
        // It need not wait for the disk: no index names these packs until the last transaction, which does wait.
        let ids = self.or_stop(self.objects.side().write(Durability::Buffered, |tx| {
            let ids = packs.iter().map(|pack| insert(tx, self.now, pack)).collect::<Result<Vec<i64>>>()?;
            for id in &ids {
                // By these rows the next process finds the packs of a writer that was killed.
                tx.execute_one("INSERT INTO writing (pack) VALUES ($1)", &[id])?;
            }
            Ok(ids)
        }))?;
        let mut written = locked(&self.written);
        for (id, pack) in ids.into_iter().zip(packs) {
            // Of what is not in the index yet, only directories are read: the tree of a capture is compared before its
            // end.
            if pack.has_trees {
                let places = pack.objects.iter().map(|placed| (placed.hash, place(id, placed)));
                self.objects.unfinished().extend(places);
            }
            written.bytes += pack.data.len() as u64;
            written.packs.push(id);
            written.objects.extend(pack.objects.into_iter().map(|placed| (id, placed)));
        }
        Ok(())
    }

    /// The last transaction: with it everything is in the index.
    fn enter(&self, packs: &[ObjectPack]) -> Result<()> {
        let mut written = locked(&self.written);
        let earlier = std::mem::take(&mut written.objects);
        self.or_stop(self.objects.side().write(Durability::Synced, |tx| {
            let mut objects = earlier;
            for pack in packs {
                let id = insert(tx, self.now, pack)?;
                objects.extend(pack.objects.iter().map(|placed| (id, *placed)));
            }
            // In the order of the index: one walk through it instead of as many ways down as there are objects.
            objects.sort_unstable_by_key(|(_, placed)| placed.hash);
            objects.iter().try_for_each(|(pack, placed)| index(tx, *pack, placed))?;
            written.packs.iter().try_for_each(|pack| tx.execute_one("DELETE FROM writing WHERE pack = $1", &[pack]))
        }))?;
        // Nothing of it is to be given back any more.
        written.packs.clear();
        Ok(())
    }

    /// Whether these packs, and the index of all that was written, have room. If not, what was written is given back at once:
    /// others need the disk, too.
    fn has_room(&self, packs: &[ObjectPack]) -> Result<bool> {
        let bytes: u64 = packs.iter().map(|pack| pack.data.len() as u64).sum();
        if bytes <= LITTLE {
            return Ok(true);
        }
        let index = self.new_objects.load(Relaxed).saturating_mul(INDEX_ROW);
        // Everything stands in the log first, and then in the file.
        let needed = bytes.saturating_add(index).saturating_mul(2).saturating_add(MARGIN);
        if room::free_bytes(self.objects.path()).is_none_or(|free| free >= needed) {
            return Ok(true);
        }
        self.is_too_much.store(true, Relaxed);
        self.give_back()?;
        Ok(false)
    }

    fn too_much(&self) -> ic_base::Diagnosis {
        let index = self.new_objects.load(Relaxed).saturating_mul(INDEX_ROW);
        let content = self.stored_bytes.load(Relaxed).saturating_add(index);
        // The log holds no more than a batch at a time.
        let log = content.min(2 * BATCH as u64);
        let needed = content.saturating_add(log).saturating_add(MARGIN);
        let free = room::free_bytes(self.objects.path()).unwrap_or(0);
        room::too_little(self.objects.path(), needed.max(free.saturating_add(1)), free, "What is to be kept")
    }

    fn give_back(&self) -> Result<()> {
        // Forgotten before it is removed: nothing may rely on an object that is on its way out.
        let written = std::mem::take(&mut *locked(&self.written));
        self.objects.unfinished().clear();
        self.objects.discard(&written.packs)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // After `finish` nothing is left to enter or to remove. Both are for a writer that ends early.
        self.enter_rest();
        // When this fails, what was written is known as unfinished, and the next capture or prune gives it back.
        let _ = self.give_back();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked ends the whole capture with it: what it left half-done is not read.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
