//! What a person decided about paths in conflict, one by one.

use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::reverse::LineDecision;
use serde::{Deserialize, Serialize};

/// The paths in conflict of an undo of works that were decided one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathDecisions {
    /// The work is taken out of these, with what others made of the same lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub take: Vec<PathText>,
    /// What others made of the same lines stays in these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave: Vec<PathText>,
}

impl PathDecisions {
    /// Whether nothing was decided.
    pub fn is_empty(&self) -> bool {
        self.take.is_empty() && self.leave.is_empty()
    }

    /// What was decided about a path; `None`: nothing.
    pub fn about(&self, path: &[u8]) -> Option<LineDecision> {
        // What is replaced cannot be guessed, what stays can be undone later: so to leave wins over to take.
        let has = |all: &[PathText]| all.iter().any(|one| one.0 == path);
        if has(&self.leave) { Some(LineDecision::Leave) } else { has(&self.take).then_some(LineDecision::Take) }
    }

    /// As [`PathDecisions::about`], where flags decide about all other paths.
    pub fn about_or(&self, path: &[u8], (keeps_theirs, forces_files): (bool, bool)) -> Option<LineDecision> {
        self.about(path).or(match (keeps_theirs, forces_files) {
            (true, _) => Some(LineDecision::Leave),
            (false, true) => Some(LineDecision::Take),
            (false, false) => None,
        })
    }
}
