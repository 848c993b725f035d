//! Relational rewind: an application's own SQLite tables go back to a task, in one transaction, with an undo (seed 002).
//!
//! The database belongs to another program. Rows that are newer than a task are copied into an [`Archive`] and deleted. What the schema
//! declares (keys, foreign keys, triggers) is read, never assumed. Only the modules `journal` and `marks` use the ledger.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod archive;
mod config;
mod devs;
mod engine;
mod error;
pub mod faults;
mod inspect;
pub mod journal;
mod lineage;
mod order;
mod plan;
mod references;
mod schema;
mod session;
pub mod state_marks;
mod value;

pub use archive::{Archive, ArchiveManifest, ArchiveState, ArchivedTable};
pub use config::{Anchor, Audit, Boundary, DEVS_SQL, Follow, Order, Profile, RewindTarget, TableConfig, Triggers};
pub use devs::create_devs;
pub use engine::{
    AnchorTask, EngineOptions, RelationalRollbackEngine, Rewind, RollbackResult, RollbackSnapshot, ScopeMark,
    StateMark, TaskRef, UndoReport, UndoResult,
};
pub use error::{UndoError, UnknownTaskError};
pub use inspect::{InspectedTable, Inspection, inspect};
pub use lineage::CheckpointDescription;
pub use schema::{Column, ForeignKey, TableInfo, TableKind, Trigger};
pub use value::{RowCounts, SqlScalar};

/// Tables of vectors for the connections of tests.
#[cfg(any(test, feature = "test-hooks"))]
pub use ic_sys::vec0;

#[cfg(test)]
mod tests;
