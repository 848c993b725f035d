//! What a step of a rollback found and did: the JSON in its row.

use std::collections::BTreeMap;

use ic_base::{CheckpointId, CompensationId};
use ic_checkpoint::git::IndexEdit;
use ic_checkpoint::outside_state::OutsideStanding;
use serde::{Deserialize, Serialize};

/// A look at the tree before a go at the effects, and one after it; a go whose process died has no second one.
pub type Go = (CheckpointId, Option<CheckpointId>);

/// What a step found and did. A step has the members of its layer; those that it has not recorded yet are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
// {"safety": [ID], "changes": 3, "directories": 1, "parts_left": 1}
#[serde(default, deny_unknown_fields)]
pub struct StepDetail {
    /// Of the effects: each go at them, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub goes: Vec<Go>,
    /// Of the effects: what became of each, in the words of its row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compensations: Vec<(CompensationId, String)>,
    /// Of the effects: the names of those that were skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// Of the tree: what its restores replaced, oldest first. The first one has what stood there before any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub safety: Vec<CheckpointId>,
    /// Of the tree: how many paths were restored.
    #[serde(skip_serializing_if = "is_zero")]
    pub changes: usize,
    /// Of the tree: how many of them are directories.
    #[serde(skip_serializing_if = "is_zero")]
    pub directories: usize,
    /// Of the tree: what moved in git, in words: `HEAD → main`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub git_moves: Vec<String>,
    /// Of the tree: at how many paths something of the works stays.
    #[serde(skip_serializing_if = "is_zero")]
    pub parts_left: usize,
    /// Of the tree: the files outside of the project that stay as they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside_left: Vec<String>,
    /// Of the tree: what stood at each file outside of the project that was replaced by force, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outside_forced: BTreeMap<String, OutsideStanding>,
    /// Of the tree: the entries of the index that were undone. `None`: that was not decided yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<Vec<IndexEdit>>,
    /// Of the rows: how many were deleted, by table. `None`: not all of them were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<BTreeMap<String, u64>>,
    /// Of the rows: whether `--force-files` decides why it failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_force: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl StepDetail {
    /// How many effects were undone. `done`: the word for that.
    pub fn undone(&self, done: &str) -> usize {
        self.compensations.iter().filter(|(_, state)| state == done).count()
    }

    /// How many rows were deleted, of all tables.
    pub fn deleted(&self) -> usize {
        let all: u64 = self.rows.iter().flat_map(BTreeMap::values).sum();
        usize::try_from(all).unwrap_or(usize::MAX)
    }
}
