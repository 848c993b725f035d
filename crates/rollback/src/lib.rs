//! Rolling a run back to an earlier phase: the cut, the plan, and the one transaction that applies it.
//!
//! The preview is the plan: a dry run and the real call make the same [`Plan`] with the same code, the real call inside the transaction
//! that applies it. A rollback does not compare the run with an earlier read: it takes the write lock and wins.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod apply;
mod approved;
mod beside;
pub mod code;
pub mod compensation;
mod covered;
mod cut;
mod elsewhere;
mod events;
mod execute;
mod git_remains;
mod layered;
mod layers;
mod leaving_commits;
mod marks;
mod outcome;
mod outside_change;
mod own_work;
mod plan;
mod preflight;
mod preview;
mod purged;
mod redo;
mod reference;
mod refusals;
mod request;
mod straddling;
mod undo;
mod undo_preconditions;

pub use apply::{rollback, rollback_asked_at, take_back};
pub use ic_journal::Layer;
pub use layered::{is_at_work, require_whole, resume, roll_back};
pub use layers::has_mark;
pub use leaving_commits::LeavingCommit;
pub use outcome::{
    Data, Effects, LayeredRollback, LayeredStatus, Outcome, Parts, Refusal, Resuming, Rollback, Undone,
};
pub use outside_change::OutsideChange;
pub use own_work::{CommitState, OwnCommit};
pub use plan::{Plan, make as plan, undone_before};
pub use preview::{preview_abort, preview_resume, preview_undo};
pub use purged::{FilesAlone, files_alone};
pub use redo::{Newest, Whose, newest, older};
pub use reference::{named, require_unfinished, run_of};
pub use refusals::command_alone;
pub use request::{LayeredRequest, Layers, Request, ResumeRequest, To, UndoRequest};
pub use undo::{abort, undo, way_back};
