//! Rolling a run back to an earlier phase: the cut, the plan, and the one transaction that applies it.
//!
//! The preview is the plan: a dry run and the real call make the same [`RollbackPlan`] with the same code, the real call inside the transaction
//! that applies it. A rollback does not compare the run with an earlier read: it takes the write lock and wins.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod app_rewind;
mod apply;
pub mod code;
pub mod compensation;
mod coverage;
mod cut;
mod dispatch_changes;
mod entry_changes;
mod events;
mod execute;
mod git_remains;
mod journal_entry;
mod kept_paths;
mod later_restores;
mod layered_rollback;
mod layers;
mod leaving_commits;
mod manual_restores;
mod other_places;
mod others_paths;
mod outcome;
mod outside_change;
mod plan;
mod plan_approval;
pub mod points;
mod preflight;
mod preview;
mod purge_losses;
mod redo;
mod reference;
mod refusals;
mod request;
mod reversal;
mod rollback_marks;
mod sole_work;
mod straddling_work;
mod thread_undo;
mod undo_preconditions;
mod unsure_changes;

pub use apply::{roll_back_record, rollback, rollback_asked_at};
pub use dispatch_changes::{CommitState, OwnCommit, WorkChanges, may_be_yours};
pub use entry_changes::{changes_between, changes_of_entry, has_changed, newest_change};
pub use git_remains::git_remains;
pub use ic_kernel::journal::LayerName;
pub use journal_entry::{JournalEntry, entry_of_journal};
pub use kept_paths::kept_paths;
pub use layered_rollback::{is_at_work, require_whole, resume, roll_back};
pub use layers::has_mark;
pub use leaving_commits::LeavingCommit;
pub use outcome::{
    Data, Effects, LayeredRollback, LayeredStatus, Parts, Refusal, Resuming, RollbackOutput, RollbackSummary,
    UndoneRollback,
};
pub use outside_change::OutsideChange;
pub use plan::{RollbackPlan, make as plan};
pub use preview::{preview_abort, preview_resume, preview_undo};
pub use purge_losses::{FilesAlone, files_alone};
pub use redo::{NewestUndo, RedoOwner, newest, older};
pub use reference::{named, require_unfinished, run_of};
pub use refusals::{can_be_taken, command_alone};
pub use request::{LayeredRequest, Layers, ResumeRequest, RollbackRequest, RollbackTarget, UndoRequest};
pub use reversal::{abort, undo, way_back};
