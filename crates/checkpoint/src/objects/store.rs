//! An open store: its tables, and what of it is remembered.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ic_base::{Result, Timestamp};
use ic_ledger::events::Hash;
use ic_ledger::{OpenOptions, SideDatabase, SideSchema};
use sha2::{Digest, Sha256};

use crate::nested_work_trees::Places;

/// The longest content that is one object, in bytes; also the size of a piece.
pub(crate) const PIECE: usize = 1 << 20;

/// `store`: the ledger whose content this is; no row: no ledger has claimed it yet. `made`: which file this is of those that a ledger had,
/// one after the other. `writing`: packs whose objects are not in the
/// index yet, because their writer is not done, or died.
const SCHEMA: SideSchema = SideSchema {
    // This is `icOb` in ASCII. It tells SQLite files of different programs apart.
    application_id: 0x6963_4f62,
    version: 1,
    // Most packs are small: with larger pages the last page of each would be half empty (docs/adr/0008).
    page_size: 4096,
    owner: "SELECT ledger FROM store",
    // The newest pack says how old the content is. So a log is recognised if it belongs to another file of the
    // same name (docs/adr/0036).
    age: "SELECT ifnull(max(id), 0) FROM packs",
    lock: ".lock",
    at_age: "SELECT size || ':' || created_at FROM packs WHERE id = ?1",
    made: "SELECT id FROM made",
    sql: "
CREATE TABLE packs (
    id         INTEGER PRIMARY KEY,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    data       BLOB NOT NULL
) STRICT;
CREATE TABLE objects (
    hash  BLOB PRIMARY KEY,
    form  INTEGER NOT NULL CHECK (form IN (0, 1, 2)),
    pack  INTEGER NOT NULL,
    start INTEGER NOT NULL,
    size  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE store (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    ledger TEXT NOT NULL
) STRICT;
CREATE TABLE writing (
    pack INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE made (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL
) STRICT;
INSERT INTO made (one, id) VALUES (1, lower(hex(randomblob(16))));
",
};

/// How an object is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its content lies in the pack.
    Whole,
    /// The pack holds the hashes of its pieces, in order.
    Pieces,
    /// Its content was purged; only its name is left.
    Purged,
}

impl Form {
    pub(crate) fn number(self) -> i64 {
        // The index on the disk has these numbers: other ones would give stored objects another form.
        match self {
            Self::Whole => 0,
            Self::Pieces => 1,
            Self::Purged => 2,
        }
    }

    pub(crate) fn of_number(number: i64) -> Option<Self> {
        [Self::Whole, Self::Pieces, Self::Purged].into_iter().find(|form| form.number() == number)
    }
}

/// An open object store.
pub struct Objects {
    pub(super) side: Mutex<SideDatabase>,
    pub(super) recent: Mutex<Recent>,
    pub(super) trees: TreeMemory,
    /// Directories that a writer has added and not finished: only this handle reads them.
    pub(super) unfinished: Mutex<HashMap<Hash, PackPlace>>,
    /// Directories that a look found and the store lacks; only this handle has them.
    pub(super) looked_at: Mutex<HashMap<Hash, Arc<[u8]>>>,
    pub(super) path: PathBuf,
    pub(super) patience: Duration,
    /// The other work trees below the root whose checkpoints are read; `None`: whatever a tree holds is shown.
    places: RwLock<Option<Arc<Places>>>,
}

impl Objects {
    /// Opens the store in the file `path`, and makes it if there is none.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self> {
        let side = SideDatabase::open(path, &SCHEMA, options)?;
        Ok(Self {
            side: Mutex::new(side),
            recent: Mutex::default(),
            trees: TreeMemory::default(),
            path: path.to_owned(),
            patience: options.busy_timeout,
            unfinished: Mutex::default(),
            looked_at: Mutex::default(),
            places: RwLock::default(),
        })
    }

    /// From now on, remembers directories in `trees`, together with all stores that were given the same memory.
    #[must_use]
    pub fn with_trees(self, trees: TreeMemory) -> Self {
        Self { trees, ..self }
    }

    /// From now on trees are compared as those of a root with these work trees below it; `None`: nothing is left out.
    pub fn set_places(&self, places: Option<Arc<Places>>) {
        *self.places.write().unwrap_or_else(PoisonError::into_inner) = places;
    }

    /// The other work trees that are left out of comparisons.
    pub fn places(&self) -> Option<Arc<Places>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The path of the store's file, `objects.db` or named after its ledger.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long locks are waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn side(&self) -> MutexGuard<'_, SideDatabase> {
        // A thread that panicked held no invariant: every change is one transaction.
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets which log the store at `path` had, and sets one aside that is not its own; returns that log's new name. There need be no store.
pub fn accept(path: &Path, options: OpenOptions, now: Timestamp) -> Result<Option<PathBuf>> {
    ic_ledger::accept_side(path, &SCHEMA, options, now)
}

/// The SHA-256 of some bytes.
pub fn hash_of(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Where the index says that an object lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackPlace {
    pub(super) form: Form,
    pub(super) pack: i64,
    pub(super) start: i64,
    pub(super) size: i64,
}

/// What was used last: a restore reads neighbours, and who captures compares what was just captured.
#[derive(Default)]
pub(crate) struct Recent {
    pub(super) packs: VecDeque<(i64, Arc<Vec<u8>>)>,
}

/// The most bytes of directories that are remembered.
const REMEMBERED: usize = 8 << 20;

/// Directories that were read, in their byte form and with verified hashes. A command opens its store for each of its parts, and these read
/// the same directories. So the memory belongs to the command. The hash says what a directory is, whichever store gave it.
#[derive(Debug, Clone, Default)]
pub struct TreeMemory(Arc<Mutex<RememberedTrees>>);

#[derive(Debug, Default)]
pub(super) struct RememberedTrees {
    by_hash: HashMap<Hash, Arc<[u8]>>,
    bytes: usize,
}

impl TreeMemory {
    pub(super) fn get(&self, hash: &Hash) -> Option<Arc<[u8]>> {
        self.lock().by_hash.get(hash).cloned()
    }

    /// Returns whether there was room for it.
    pub(super) fn remember(&self, hash: Hash, bytes: &Arc<[u8]>) -> bool {
        let mut trees = self.lock();
        if trees.by_hash.contains_key(&hash) {
            return true;
        }
        let has_room = trees.bytes + bytes.len() <= REMEMBERED;
        if has_room {
            trees.bytes += bytes.len();
            trees.by_hash.insert(hash, bytes.clone());
        }
        has_room
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RememberedTrees> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
