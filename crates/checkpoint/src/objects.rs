//! The object store: content named by its SHA-256, kept once, compressed, in `objects.db` beside the ledger.
//!
//! Objects are gathered into packs of about 256 KiB, each compressed as one zstd frame and kept as one BLOB row; an index
//! of objects says where in which pack each lies (docs/adr/0008). What is larger than 1 MiB is kept as a list of
//! pieces, so memory stays bounded whatever an object's size; a directory of many entries likewise, cut between entries,
//! so that one changed entry stores one new piece.
//!
//! Locking: short transactions of SQLite. Who captures holds the store's file lock shared until its ledger row is
//! committed; who sweeps holds it exclusively ([`crate::lock`]). What is read is verified against its name.

mod missing_content;
mod owner;
mod pack;
mod read;
mod room;
mod store;
mod sweep;
mod unfinished_packs;
mod write;

pub use room::{free_bytes, require_room};
pub(crate) use store::PIECE;
pub use store::{Objects, TreeMemory, accept, hash_of};
pub use sweep::{Swept, TakenOut, file_size};
pub use write::{Stored, Writer};

#[cfg(test)]
mod tests;
