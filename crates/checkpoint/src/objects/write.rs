//! Adding objects. Many threads may add at once; content becomes durable with [`Writer::finish`].

use std::collections::HashSet;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ic_base::{Diagnose, Result, Timestamp};
use ic_events::Hash;
use ic_store::{Durability, Transaction};
use sha2::{Digest, Sha256};

use super::pack::{Builder, Pack};
use super::{Form, Objects, PIECE, hash_of};
use crate::restore::sparse::is_zero;
use crate::tree::Encoded;

/// A directory whose byte form is no longer than this is one object.
const SMALL_DIRECTORY: usize = 1024;

/// The name of a piece of zeros.
static NOTHING: LazyLock<Hash> = LazyLock::new(|| hash_of(&vec![0; PIECE]));

/// Packs are written when they hold this many bytes together.
const BATCH: usize = 4 << 20;

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
    seen: Mutex<HashSet<Hash>>,
    /// Directories lie in packs of their own, so that comparing two trees opens few.
    trees: Mutex<Vec<Builder>>,
    contents: Mutex<Vec<Builder>>,
    /// Some new directory can only be read once it is in the store.
    is_unread: AtomicBool,
    waiting: Mutex<Waiting>,
    new_objects: AtomicU64,
    stored_bytes: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    packs: Vec<Pack>,
    bytes: usize,
}

impl Objects {
    /// Begins to add objects.
    pub fn writer(&self, now: Timestamp) -> Result<Writer<'_>> {
        let newest: Option<Option<i64>> = self
            .side()
            .read(|snapshot| snapshot.query_opt("SELECT max(id) FROM packs", &[], |row| row.get(0)))?;
        let is_first = newest.flatten().is_none();
        Ok(Writer {
            objects: self,
            now,
            is_first,
            seen: Mutex::default(),
            trees: Mutex::default(),
            contents: Mutex::default(),
            is_unread: AtomicBool::new(false),
            waiting: Mutex::default(),
            new_objects: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
        })
    }
}

impl Writer<'_> {
    /// How long locks are waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.objects.patience()
    }

    /// Adds a small object: at most [`PIECE`] bytes.
    pub(crate) fn put_small(&self, bytes: &[u8]) -> Result<Hash> {
        self.put(&self.contents, hash_of(bytes), Form::Whole, bytes)
    }

    /// Adds a directory.
    pub(crate) fn put_tree(&self, encoded: &Encoded) -> Result<Hash> {
        let bytes = &encoded.bytes;
        let hash = hash_of(bytes);
        if !self.objects.remember(hash, bytes) {
            self.is_unread.store(true, Relaxed);
        }
        let cuts: Vec<usize> = encoded.cuts().collect();
        if bytes.len() <= SMALL_DIRECTORY || (cuts.is_empty() && bytes.len() <= PIECE) {
            return self.put(&self.trees, hash, Form::Whole, bytes);
        }
        if !self.is_new(&hash)? {
            return Ok(hash);
        }
        let mut pieces = Vec::with_capacity((cuts.len() + 1) * 32);
        let ends = cuts.into_iter().chain([bytes.len()]);
        let mut start = 0;
        for end in ends.filter(|end| *end > 0) {
            for piece in bytes[start..end].chunks(PIECE) {
                pieces.extend_from_slice(&self.put(&self.trees, hash_of(piece), Form::Whole, piece)?);
            }
            start = end;
        }
        self.add(&self.trees, hash, Form::Pieces, &pieces)?;
        Ok(hash)
    }

    /// Adds everything that `source` gives, in bounded memory; returns its hash and length.
    pub fn put_reader(&self, source: &mut dyn Read) -> Result<(Hash, u64)> {
        // Most files fit: they are read at once.
        let mut buffer = Vec::with_capacity(64 << 10);
        let mut fill = |buffer: &mut Vec<u8>| {
            buffer.clear();
            (&mut *source).take(PIECE as u64).read_to_end(buffer).while_doing(|| "reading content".to_owned())
        };
        let first = fill(&mut buffer)?;
        if first < PIECE {
            return Ok((self.put_small(&buffer)?, first as u64));
        }
        let (mut whole, mut pieces, mut length) = (Sha256::new(), Vec::new(), 0);
        while !buffer.is_empty() {
            whole.update(&buffer);
            // A hole is many times the same piece: it is hashed once.
            let piece = if buffer.len() == PIECE && is_zero(&buffer) {
                self.put(&self.contents, *NOTHING, Form::Whole, &buffer)?
            } else {
                self.put_small(&buffer)?
            };
            pieces.extend_from_slice(&piece);
            length += buffer.len() as u64;
            fill(&mut buffer)?;
        }
        let hash = whole.finalize().into();
        if pieces.len() > 32 {
            self.put(&self.contents, hash, Form::Pieces, &pieces)?;
        }
        Ok((hash, length))
    }

    /// Makes sure that every directory that was added can be read with [`Objects::tree`].
    pub fn expose(&self) -> Result<()> {
        if !self.is_unread.swap(false, Relaxed) {
            return Ok(());
        }
        self.close()?;
        self.flush(Durability::Buffered)
    }

    /// Makes everything durable that was added, and tells how much it was.
    ///
    /// Errors: `disk_full`, ...: nothing may then refer to what was added.
    pub fn finish(self) -> Result<Stored> {
        self.close()?;
        self.flush(Durability::Synced)?;
        Ok(Stored {
            new_objects: self.new_objects.load(Relaxed),
            stored_bytes: self.stored_bytes.load(Relaxed),
        })
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
        if let Some(pack) = builder.close()? {
            self.wait(pack);
        }
        Ok(())
    }

    fn put(&self, to: &Mutex<Vec<Builder>>, hash: Hash, form: Form, bytes: &[u8]) -> Result<Hash> {
        if self.is_new(&hash)? {
            self.add(to, hash, form, bytes)?;
        }
        Ok(hash)
    }

    /// Whether neither the store nor this writer has the object; asked once, it answers no from then on.
    fn is_new(&self, hash: &Hash) -> Result<bool> {
        if !locked(&self.seen).insert(*hash) {
            return Ok(false);
        }
        Ok(self.is_first || !self.objects.has(hash)?)
    }

    fn add(&self, to: &Mutex<Vec<Builder>>, hash: Hash, form: Form, bytes: &[u8]) -> Result<()> {
        let mut builder = locked(to).pop().unwrap_or_default();
        builder.add(hash, form, bytes);
        self.new_objects.fetch_add(1, Relaxed);
        let full = if builder.is_full() { builder.close()? } else { None };
        locked(to).push(builder);
        if full.is_some_and(|pack| self.wait(pack) >= BATCH) {
            self.flush(Durability::Buffered)?;
        }
        Ok(())
    }

    /// Puts a pack among those that wait to be written; returns how many bytes wait.
    fn wait(&self, pack: Pack) -> usize {
        self.stored_bytes.fetch_add(pack.data.len() as u64, Relaxed);
        let mut waiting = locked(&self.waiting);
        waiting.bytes += pack.data.len();
        waiting.packs.push(pack);
        waiting.bytes
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        let Waiting { packs, .. } = std::mem::take(&mut *locked(&self.waiting));
        if packs.is_empty() && (durability == Durability::Buffered || self.new_objects.load(Relaxed) == 0) {
            return Ok(());
        }
        self.objects.side().write(durability, |tx| packs.iter().try_for_each(|pack| keep(tx, self.now, pack)))
    }
}

/// Writes a pack and the places of its objects. An object that another process kept meanwhile stays where it is; one
/// that was purged is kept again, because somebody has that content now.
pub(super) fn keep(tx: &Transaction<'_>, now: Timestamp, pack: &Pack) -> Result<()> {
    let size = i64::try_from(pack.size).unwrap_or(i64::MAX);
    let id: Option<i64> = tx.query_opt(
        "INSERT INTO packs (size, created_at, data) VALUES ($1, $2, $3) RETURNING id",
        &[&size, &now.millis(), &pack.data],
        |row| row.get(0),
    )?;
    let mut objects: Vec<_> = pack.objects.iter().collect();
    objects.sort_unstable_by_key(|object| object.hash);
    for object in objects {
        let (start, size) = (i64::try_from(object.start), i64::try_from(object.size));
        tx.execute(
            "INSERT INTO objects (hash, form, pack, start, size) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (hash) \
             DO UPDATE SET form = excluded.form, pack = excluded.pack, start = excluded.start, size = excluded.size \
             WHERE objects.form = 2",
            &[
                &object.hash.as_slice(),
                &object.form.number(),
                &id,
                &start.unwrap_or(i64::MAX),
                &size.unwrap_or(i64::MAX),
            ],
        )?;
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked takes the whole capture with it; nobody reads what it left.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
