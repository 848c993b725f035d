//! The ledger's file: where it lies, how it is opened, migrated, read and written.
//!
//! This is the only crate that names SQLite for the ledger. Readers take a [`Snapshot`], writers a
//! [`Transaction`]; [`Ledger::read`] and [`Ledger::write`] are the one place that begins and commits.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod actor;
mod backup;
mod connection;
mod create;
mod error;
pub mod events;
pub mod faults;
mod file;
mod filesystem;
mod foreign_database;
mod git_dirs;
mod git_index;
mod hash;
pub mod health;
mod identity;
mod ledger;
mod ledger_identity;
mod locate;
pub mod lock;
mod log;
mod log_match;
mod log_upkeep;
mod migrate;
mod note;
pub mod private;
pub mod reference;
pub mod regular_file;
mod remote;
pub mod reserve;
#[cfg(feature = "server")]
mod server;
#[cfg(not(feature = "server"))]
#[path = "no_server.rs"]
mod server;
mod server_url;
mod side;
mod transaction;
pub mod trust;
mod values;

pub use actor::Actor;
pub use backup::{CopiedHead, Unnamed, require_place as require_place_for_copy};
pub use connection::{OpenOptions, Patience};
pub use create::{create, make_store, migrate_on_server};
pub use error::is_out_of_space;
pub use foreign_database::{
    DATABASE_SIDE_SUFFIXES, copy_database, has_usual_side_files, has_write_ahead_log, is_database, recover_copy,
    while_nobody_writes,
};
pub use git_dirs::{GitDirs, OtherWorkTree, git_dirs, is_linked_work_tree, other_work_trees};
pub use git_index::{
    IndexEntries, IndexEntry, LONGEST_HASH as LONGEST_GIT_HASH, hash_length as git_hash_length, tracks as git_tracks,
};
pub use hash::bytes_of_hex;
pub use identity::{APPLICATION_ID, is_ledger, is_ledger_head};
pub use ledger::{Ledger, has_written};
pub use ledger_identity::Identity;
pub use locate::{FoundBy, LedgerLocation, Lookup, initial_place, locate, named_from, project_root};
pub use log::sibling;
pub use log_upkeep::{Behind, WHEN_BEHIND, accept};
pub use migrate::LATEST;
pub use server::keep_connections;
pub use server_url::{ChannelBinding, Host, ServerUrl, Tls};
pub use side::{Durability, SideDatabase, SideSchema, accept_side, remove_side};
pub use transaction::{Snapshot, Transaction};
pub use values::{
    FromValue, HasKind, LedgerRow, Param, ToValue, Value, ValueKind, containing, path_bytes, path_from_bytes,
};

/// The version of SQLite that is built in, as in `3.51.3`.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
