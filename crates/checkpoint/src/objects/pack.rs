//! Packs: objects one after the other, compressed as one frame.

use std::cell::RefCell;

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::events::Hash;
use zstd::bulk::{Compressor, Decompressor};

use super::store::Form;

/// A pack is closed when it holds this many bytes.
const FULL: usize = 256 << 10;

/// More than any pack holds: a damaged size is not believed.
const LARGEST: usize = 64 << 20;

/// zstd's level: 1 takes less time than 3, and 8 to 13 % more space (docs/adr/0008).
const LEVEL: i32 = 1;

/// The level of a pack that is not full: what a step changed is little and is kept for long.
const LEVEL_OF_LITTLE: i32 = 3;

/// Where an object lies in its pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) hash: Hash,
    pub(crate) form: Form,
    pub(crate) start: usize,
    pub(crate) size: usize,
}

/// A pack that is being filled.
#[derive(Default)]
pub(crate) struct Builder {
    raw: Vec<u8>,
    objects: Vec<Placed>,
    compressor: Option<Compressor<'static>>,
    has_trees: bool,
}

/// A pack ready to be kept.
pub(crate) struct ObjectPack {
    pub(crate) objects: Vec<Placed>,
    pub(crate) size: usize,
    pub(crate) data: Vec<u8>,
    /// Whether some of its objects are directories.
    pub(crate) has_trees: bool,
}

impl Builder {
    pub(crate) fn add(&mut self, hash: Hash, form: Form, bytes: &[u8]) {
        self.objects.push(Placed { hash, form, start: self.raw.len(), size: bytes.len() });
        self.raw.extend_from_slice(bytes);
    }

    /// Says that what is added are directories.
    pub(crate) fn of_trees() -> Self {
        Self { has_trees: true, ..Self::default() }
    }

    /// Takes what another builder holds.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        self.has_trees |= other.has_trees;
        // The bytes of the other one follow ours, so each of its places moves by the length of ours.
        let start = self.raw.len();
        self.objects.extend(other.objects.drain(..).map(|placed| Placed { start: placed.start + start, ..placed }));
        self.raw.append(&mut other.raw);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.raw.len() >= FULL
    }

    /// The pack, and an empty builder again; `None` if nothing was added.
    pub(crate) fn close(&mut self) -> Result<Option<ObjectPack>> {
        if self.objects.is_empty() {
            return Ok(None);
        }
        let level = if self.is_full() { LEVEL } else { LEVEL_OF_LITTLE };
        // It is kept from pack to pack, so that what zstd needs is made once.
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(level).map_err(|e| failed(&e))?),
        };
        // The level is set each time: the last pack of a capture has another one than the full packs before it.
        compressor.set_compression_level(level).map_err(|e| failed(&e))?;
        let data = compressor.compress(&self.raw).map_err(|e| failed(&e))?;
        let pack = ObjectPack {
            objects: std::mem::take(&mut self.objects),
            size: self.raw.len(),
            data,
            has_trees: self.has_trees,
        };
        self.raw.clear();
        Ok(Some(pack))
    }
}

fn failed(error: &std::io::Error) -> Diagnosis {
    Diagnosis::new(Code::Internal, format!("Compressing content failed: {error}."))
}

thread_local! {
    /// A look at a tree opens hundreds of packs: to make what zstd needs for one takes as long as to open it.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The bytes of a pack; `None` if it is damaged.
pub(crate) fn open(data: &[u8], size: i64) -> Option<Vec<u8>> {
    // The size is from a row that may be damaged, and decides how much memory is reserved.
    let size = usize::try_from(size).ok().filter(|size| *size <= LARGEST)?;
    let raw = DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = match decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().ok()?),
        };
        decompressor.decompress(data, size).ok()
    })?;
    (raw.len() == size).then_some(raw)
}
