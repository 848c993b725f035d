//! Git's state beside a tree: recorded without writing to the repository, restored with compare-and-swap.
//!
//! Everything goes through the `git` program, which knows the user's configuration and every form that a repository can
//! have. What no ref reaches (staged content, stashes), the last commits before the first checkpoint, and every commit made
//! since is kept in packs in our own store, because git may collect it. Older history, and what remotes have, is not kept: it is
//! assumed to stay.

mod answer_cache;
mod checkout;
mod commits;
pub(crate) mod config_files;
mod deadline;
pub(crate) mod error;
mod files;
mod ic_refs;
pub(crate) mod index;
pub(crate) mod index_content;
mod index_entries;
mod index_file;
mod large;
mod linked_trees;
mod log;
mod pack;
pub(crate) mod program;
mod purge;
mod purged_objects;
mod record;
mod reflog;
mod restore;
pub(crate) mod rule_settings;
mod safe_settings;
mod settings;
mod standing_refs;
pub(crate) mod state;

use std::path::{Path, PathBuf};

pub use answer_cache::{GitLook, moment_of};
pub use checkout::{HeadStanding, Losses, checkout, commit_id, differ_in, has_commit_named, keep, losses, standing};
pub use commits::{
    GitCommit, changed_entries, commits, commits_between, contents, merge_base, moved_submodules, not_reached,
    stashed_paths,
};
pub use deadline::{Limited, limited};
pub use ic_refs::forget as forget_refs;
pub use index_entries::{
    IndexChanges, IndexEdit, StagedPath, index_changes, index_edits, paths_as_undone, staged_paths, unstaged_by,
};
pub use large::{blobs_of, copy_content};
pub use linked_trees::{add_work_tree, keep_commit, remove_work_tree, write_tracked};
pub use log::{PathCommit, branch, commits_of_path, fetched_before, head, head_in_files, is_ref, log_of, log_since};
pub use pack::{KeptObjects, PackBase};
pub use purge::{Gone, PurgeWanted, Unreachable, drop_refs, find as find_purged, left};
pub use purged_objects::{is_any as has_purged, remember};
pub use record::{AskedGit, Clean, FoundGit, ask, ask_clean};
pub use reflog::{advanced_since, committed_since, log_size, moved_to, restored_since, took_from_tree};
pub use restore::{
    GitRestorePlan, LeftLock, Moved, MovedByOthers, OutsideChanges, StandingLock, apply_index, apply_refs,
    branches_in_use_elsewhere, clear_own_lock, end_operation, is_sparse, leaving_newer, leaving_others,
    leaving_unmoved, left_locks, locks_of, look_again, lost_tags, moved_by_others, moves, needs_purged, not_in, plan,
    remove_locks, revert_entries, with_tags,
};
pub use standing_refs::{ref_ids, stash_ids};
pub use state::{GitPack, GitState, Index, Stash};

/// Copies of the index that killed restores left in the git directory of a work tree.
pub fn indexes_left_behind(root: &Path) -> Vec<PathBuf> {
    ic_ledger::git_dirs(root).map(|dirs| index::left_behind(&dirs.git_dir)).unwrap_or_default()
}

/// Removes what [`indexes_left_behind`] names.
pub fn clear_indexes(root: &Path) {
    if let Some(dirs) = ic_ledger::git_dirs(root) {
        index::clear_left_behind(&dirs.git_dir);
    }
}

#[cfg(test)]
mod tests;
