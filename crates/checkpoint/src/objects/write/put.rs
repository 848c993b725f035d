//! Adding content: of files, and of what is made by us.
//!
//! Content that was purged is never kept again as a file's: old checkpoints name it too, and every one of them would have it back.
//! Only whole contents are refused so. A piece that a purge took may belong to another content as well, and is kept again with
//! that one.

use std::io::{Read, Seek};
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::events::Hash;
use sha2::{Digest, Sha256};

use super::super::read::Presence;
use super::super::store::{Form, PIECE, hash_of};
use super::{Writer, locked};
use crate::restore::sparse::is_zero;

/// The name of a piece of zeros.
static NOTHING: LazyLock<Hash> = LazyLock::new(|| hash_of(&vec![0; PIECE]));

/// What a writer does not keep again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Heeds {
    Nothing,
    /// Content that was purged.
    Purges,
    /// Nor what was lost, or is a piece of what was purged.
    Losses,
}

impl Heeds {
    pub(super) fn keeps(self, presence: Presence) -> bool {
        match presence {
            Presence::Here => false,
            Presence::Absent => true,
            Presence::Lost => self != Self::Losses,
            Presence::Purged => self == Self::Nothing,
        }
    }
}

/// What became of content.
enum Put {
    Kept(Hash, u64),
    Purged,
    /// Some of its pieces are gone, and were not kept again.
    LacksPieces,
}

impl Writer<'_> {
    /// Adds the content of a file, in bounded memory; returns its hash and length, or `None` where it was purged: then nothing is
    /// kept.
    pub fn put_file(&self, source: &mut (impl Read + Seek)) -> Result<Option<(Hash, u64)>> {
        // In the first pass nothing is stored for a piece that is gone. It may be of a purged content, and only the
        // hash of the whole tells that.
        let put = match self.put_through(source, Heeds::Losses)? {
            // A purge took them with another content, or they were lost. That the whole is no purged one is known only now.
            Put::LacksPieces => {
                source.rewind().while_doing(|| "reading content again".to_owned())?;
                self.put_through(source, Heeds::Purges)?
            }
            put => put,
        };
        Ok(match put {
            Put::Kept(hash, length) => Some((hash, length)),
            Put::Purged | Put::LacksPieces => None,
        })
    }

    /// Adds everything that `source` gives, in bounded memory; returns its hash and length. It is kept even if the same bytes were
    /// purged, so this is for what is made by us: a manifest, a plan, a pack.
    pub fn put_reader(&self, source: &mut dyn Read) -> Result<(Hash, u64)> {
        match self.put_through(source, Heeds::Nothing)? {
            Put::Kept(hash, length) => Ok((hash, length)),
            Put::Purged | Put::LacksPieces => Err(Diagnosis::new(Code::Internal, "Content was not kept.")),
        }
    }

    fn put_through(&self, source: &mut (impl Read + ?Sized), heeds: Heeds) -> Result<Put> {
        // Most files fit: they are read at once.
        let mut buffer = Vec::with_capacity(64 << 10);
        let first = fill(source, &mut buffer)?;
        // It was read to its end, so it is one object. With `PIECE` bytes more may follow, and the loop decides.
        if first < PIECE {
            let hash = hash_of(&buffer);
            // Lost content is kept again by the first file that has it.
            let heeds = if heeds == Heeds::Losses { Heeds::Purges } else { heeds };
            let is_gone = self.put_content(hash, Form::Whole, &buffer, heeds)?.is_some();
            return Ok(if is_gone { Put::Purged } else { Put::Kept(hash, first as u64) });
        }
        let (mut whole, mut pieces, mut length) = (Sha256::new(), Vec::new(), 0);
        let mut lacks_any = false;
        while !buffer.is_empty() {
            whole.update(&buffer);
            // A hole is many times the same piece: it is hashed once.
            let is_hole = buffer.len() == PIECE && is_zero(&buffer);
            let piece = if is_hole { *NOTHING } else { hash_of(&buffer) };
            match self.put_content(piece, Form::Whole, &buffer, heeds)? {
                // Only whole contents have this mark: the piece is a purged content by itself.
                Some(Presence::Purged) => return Ok(Put::Purged),
                // It is read to its end anyway: only the hash of the whole tells whether it was purged.
                gone => lacks_any |= gone.is_some(),
            }
            pieces.extend_from_slice(&piece);
            length += buffer.len() as u64;
            fill(source, &mut buffer)?;
        }
        let hash = whole.finalize().into();
        if lacks_any {
            // This does not count it as seen: the second pass may still add it.
            let is_purged = self.presence_in_store(&hash)? == Presence::Purged;
            return Ok(if is_purged { Put::Purged } else { Put::LacksPieces });
        }
        // A content of one piece is that piece, and has its name.
        if pieces.len() > 32 {
            let heeds = if heeds == Heeds::Losses { Heeds::Purges } else { heeds };
            if self.put_content(hash, Form::Pieces, &pieces, heeds)?.is_some() {
                return Ok(Put::Purged);
            }
        }
        Ok(Put::Kept(hash, length))
    }

    /// Adds content, or a part of it. If it is gone and `heeds` keeps it so, returns in which way it is gone.
    fn put_content(&self, hash: Hash, form: Form, bytes: &[u8], heeds: Heeds) -> Result<Option<Presence>> {
        let presence = self.put(&self.contents, hash, form, bytes, heeds)?;
        Ok(Some(presence).filter(|presence| *presence != Presence::Here && !heeds.keeps(*presence)))
    }

    /// What there is of an object. What is to be added now is here from then on.
    pub(super) fn presence(&self, hash: &Hash, heeds: Heeds) -> Result<Presence> {
        // The lock is held while the store is asked: otherwise another thread with the same content would take purged content for kept.
        let mut seen = locked(&self.seen);
        if seen.contains(hash) {
            return Ok(Presence::Here);
        }
        let presence = self.presence_in_store(hash)?;
        if heeds.keeps(presence) {
            self.is_news.store(true, Relaxed);
        }
        // What is gone does not count as seen: each file that has it must learn so.
        if heeds.keeps(presence) || presence == Presence::Here {
            seen.insert(*hash);
        }
        Ok(presence)
    }

    fn presence_in_store(&self, hash: &Hash) -> Result<Presence> {
        // Another writer may have kept the same since: both packs hold it then, and the index names the first.
        if self.is_first { Ok(Presence::Absent) } else { self.objects.presence(hash) }
    }
}

fn fill(source: &mut (impl Read + ?Sized), buffer: &mut Vec<u8>) -> Result<usize> {
    buffer.clear();
    source.take(PIECE as u64).read_to_end(buffer).while_doing(|| "reading content".to_owned())
}
