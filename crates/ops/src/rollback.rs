//! Taking a run back to an earlier phase: the cut, the plan, and the one transaction that applies it.
//!
//! The preview is the plan: a dry run and the real call make the same [`Plan`] with the same code, the real call
//! inside the transaction that applies it. A rollback expects nothing of the run; it takes the write lock and wins.

mod apply;
pub mod code;
mod cut;
mod plan;
pub mod table;

pub use apply::{Request, Rollback, rollback};
pub use plan::{Plan, make as plan};
pub use table::redact;
