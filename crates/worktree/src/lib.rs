//! Checkpoints of a project's working tree: what they are linked to, when they are taken, what a restore may touch.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod auto;
pub mod backup;
pub mod contents;
mod create;
pub mod gaps;
mod git;
pub mod health;
mod held;
mod mark;
mod named;
mod needs;
mod news;
mod others;
pub mod outside;
mod path;
mod place;
mod points;
pub mod purge;
mod read;
pub mod repair;
mod repositories;
mod restore;
pub mod retention;
pub mod shot;
mod sound;
mod step;
mod work_trees;
mod workspace;

pub use ic_checkpoint::capture::Limit;

pub use create::{Created, Request as CreateRequest, create};
pub use git::GitRestore;
pub use read::{
    Changes, Shown, cat, changes_of, diff, gone_roots, is_among, list, path_in_root, paths_in_root, show,
    unless_pruned,
};
pub use restore::{
    Conflict, Report, Request as RestoreRequest, Status, Watch, newest_other, redo, restore, settle_note,
    undo, way_back,
};
pub use restore::{
    Deed, NotYet, TreeChanges, changed_by, changed_since, changes_between, left_of_interrupted, merge_back,
    path_option, refused, restore_into, restore_without, restores_since, settle, steps_of, take_changes_back,
    take_restore_back,
};

pub use mark::{Marked, open as open_database};
pub use named::require_here;
pub use news::{LEFT_OUT, is_left_out_for};
pub use path::{files_of_database, recorded_path};
pub use place::look as look_into_store;
pub use place::objects_path;
pub use step::StepShot;
pub use workspace::{Settings, Warning, Which, Workspace, find, no_checkpoint, require_kept, root_of};
