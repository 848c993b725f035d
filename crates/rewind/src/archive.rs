//! What a rewind took away: a database of our own, one a rewind.
//!
//! Locking and atomicity: it is written by a second connection while the first one holds the application's write lock and
//! has changed nothing yet, so that both see the same rows. It is built under another name, made durable, and then renamed; only
//! then are rows deleted. A crash in between leaves an archive that nothing was taken away by ([`ArchiveState::Unused`]); a crash
//! after the application's commit leaves a complete one. Compatibility: it has its own application id and version.

mod compare;
mod file;
mod write;

pub(crate) use compare::{is_applied, missing, missing_from};
pub use file::{Archive, ArchiveState, ArchivedTable, Manifest};
pub(crate) use file::{SCHEMA, fingerprint, rows_table};
pub(crate) use write::{archived_column, write};
