//! Taking a run back to an earlier phase: the cut, the plan, and the one transaction that applies it.
//!
//! The preview is the plan: a dry run and the real call make the same [`Plan`] with the same code, the real call
//! inside the transaction that applies it. A rollback expects nothing of the run; it takes the write lock and wins.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod apply;
mod beside;
pub mod code;
pub mod compensation;
mod covered;
mod cut;
mod events;
mod execute;
mod gone;
mod layers;
mod leaving;
mod marks;
mod outcome;
mod own;
mod plan;
mod preflight;
mod preview;
mod quiet;
mod redo;
mod reference;
mod refusals;
mod request;
mod seen;
mod undo;
mod whole;

pub use apply::{rollback, take_back};
pub use gone::files_alone;
pub use ic_journal::Layer;
pub use layers::{has_mark, rows_that_stay};
pub use leaving::LeavingCommit;
pub use outcome::{Data, Effects, Outcome, Parts, Refusal, Rollback, Undone, Whole, WholeStatus};
pub use own::{CommitState, OwnCommit};
pub use plan::{Plan, make as plan};
pub use preflight::all_layers;
pub use preview::{preview_abandon, preview_undo};
pub use redo::{Newest, newest};
pub use reference::{named, run_of};
pub use request::{Request, ResumeRequest, To, UndoRequest, WholeRequest};
pub use undo::{abandon, undo};
pub use whole::{is_at_work, resume, roll_back};
