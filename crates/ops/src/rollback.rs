//! Taking a run back to an earlier phase: the cut, the plan, and the one transaction that applies it.
//!
//! The preview is the plan: a dry run and the real call make the same [`Plan`] with the same code, the real call
//! inside the transaction that applies it. A rollback expects nothing of the run; it takes the write lock and wins.

mod apply;
mod back;
mod carry;
pub mod code;
pub(crate) mod cut;
pub(crate) mod data;
mod layer;
mod plan;
mod preflight;
pub mod steps;
pub mod table;
mod undo;
mod whole;

pub use apply::{Request, Rollback, rollback, take_back};
pub use data::Data;
pub use layer::Layer;
pub use plan::{Plan, make as plan};
pub use table::redact;
pub use undo::{Abandoned, Undone, abandon, undo};
pub use whole::{Effects, Outcome, Parts, Whole, WholeRequest, WholeStatus, resume, roll_back};
