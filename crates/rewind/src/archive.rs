//! What a rewind removed: a database of our own, one for each rewind.
//!
//! Locking and atomicity: the archive is written by a second connection while the first one holds the application's write lock and has
//! changed nothing yet, so both see the same rows. It is built under another name, made durable, and then renamed; only then are rows
//! deleted. A crash in between leaves an archive whose rows are still in the database ([`ArchiveState::Unused`]). A crash after the
//! application's commit leaves a complete one. Compatibility: it has its own application id and version.

mod compare;
mod file;
mod write;

pub(crate) use compare::{is_applied, missing, missing_from};
pub use file::{Archive, ArchiveManifest, ArchiveState, ArchivedTable};
pub(crate) use file::{SCHEMA, fingerprint, rows_table};
pub(crate) use write::{archived_column, write};
