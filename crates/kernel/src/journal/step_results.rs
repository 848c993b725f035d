//! What a step says that it did, from its detail, which is JSON.

use std::collections::BTreeMap;

use ic_base::CheckpointId;

use crate::journal::kept_checkpoints::goes_of;
use crate::journal::steps::{RollbackStep, StepKind};

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    /// Effects outside of the project.
    Effects {
        /// How many were undone.
        undone: usize,
        /// The names of those that were skipped.
        skipped: Vec<String>,
        /// The checkpoints of the tree before and after each go, oldest first; a go whose process died has no second one.
        goes: Vec<(String, Option<String>)>,
    },
    /// Git's state and files.
    Tree {
        /// How many paths were restored.
        paths: usize,
        /// How many of them are directories.
        directories: usize,
        /// What stood there before, by its last restore.
        safety: Option<CheckpointId>,
    },
    /// Rows of the application's tables.
    Data {
        /// How many were deleted, by table.
        rows: BTreeMap<String, u64>,
    },
    /// The run went to its phase, or back to where it was: nothing is counted.
    Settle,
}

impl StepResult {
    /// What the detail of a step says. What it has not recorded yet counts as nothing.
    pub fn by(step: &RollbackStep) -> Self {
        let number = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        match step.kind {
            StepKind::Effects => {
                // `"compensations": [[ID, "done"], [ID, "skipped"]], "skipped": [STEP]`
                let all = step.detail["compensations"].as_array().into_iter().flatten();
                let skipped = step.detail["skipped"].as_array().into_iter().flatten();
                Self::Effects {
                    undone: all.filter(|one| one[1] == "done").count(),
                    skipped: skipped.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
                    goes: goes_of(step),
                }
            }
            StepKind::Tree => Self::Tree {
                paths: number(step.detail["changes"].as_u64()),
                directories: number(step.detail["directories"].as_u64()),
                safety: safety_of(step).pop(),
            },
            StepKind::Data => {
                let tables = step.detail["rows"].as_object().into_iter().flatten();
                let rows = tables.filter_map(|(table, rows)| Some((table.clone(), rows.as_u64()?)));
                Self::Data { rows: rows.collect() }
            }
            StepKind::Settle => Self::Settle,
        }
    }
}

/// The checkpoints of what the restores of a step replaced, oldest first: the first has what stood there before any of them.
pub fn safety_of(step: &RollbackStep) -> Vec<CheckpointId> {
    let ids = step.detail["safety"].as_array().into_iter().flatten();
    ids.filter_map(|id| id.as_str().map(|id| CheckpointId::from_ledger(id.to_owned()))).collect()
}
