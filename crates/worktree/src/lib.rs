//! Checkpoints of a project's working tree: what they are linked to, when they are taken, what a restore may touch.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod auto;
pub mod backup;
pub mod capture;
pub mod contents;
mod create;
mod database_mark;
pub mod forks;
mod git;
pub mod health;
mod locked_root;
mod named_paths;
mod new_omissions;
pub mod outside_files;
mod outside_git_changes;
mod path;
mod points;
pub mod purge;
mod queries;
pub mod repair;
mod repositories;
mod restore;
pub mod retention;
pub mod skipped_files;
mod step;
mod store_location;
mod store_requirements;
mod verified_store;
mod work_trees;
mod workspace;

pub use ic_checkpoint::capture::Limit;

pub use create::{CheckpointRequest as CreateRequest, CreatedCheckpoint, create};
pub use git::GitRestore;
pub use queries::{
    Changes, ShownCheckpoint, cat, changes_of, diff, gone_roots, is_among, list, path_in_root, paths_in_root, show,
    unless_pruned,
};
pub use restore::{
    Conflict, RestoreReport, RestoreRequest, RestoreStatus, RestoreWatch, newest_other, restore, settle_note, undo,
    undo_named, way_back,
};
pub use restore::{
    EarlierDeeds, NotYet, OthersPaths, RestoreDeed, TreeChanges, changed_by, changed_since, changes_between,
    left_of_interrupted, merge_back, path_option, refused, restore_into, restore_without, restores_since, settle,
    steps_of, take_changes_back, take_restore_back, was_changed_since,
};

pub use database_mark::{Marked, open as open_database};
pub use named_paths::require_here;
pub use new_omissions::{LEFT_OUT, is_left_out_for};
pub use path::{files_of_database, recorded_path};
pub use step::StepShot;
pub use store_location::look as look_into_store;
pub use store_location::objects_path;
pub use workspace::{CaptureSettings, Warning, Which, Workspace, find, no_checkpoint, require_kept, root_of};
