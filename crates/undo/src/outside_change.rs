//! What a rollback does, or would do, with a file outside of the project.

use std::path::PathBuf;

use ic_worktree::outside_files::OF_CLIENT;
use serde_json::{Value, json};

/// What is done with a file outside of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideChange {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// What is done with it: `create`, `modify` or `delete`.
    pub action: &'static str,
    /// Why it is left unchanged; `None`: it changes.
    pub left: Option<String>,
}

impl OutsideChange {
    /// What the hash of a plan has of it.
    pub(crate) fn named(&self) -> Value {
        json!([self.path.to_string_lossy(), self.action, self.left])
    }

    /// Whether something is missing because it stays.
    pub fn is_incomplete(&self) -> bool {
        // What clients keep for themselves is named, but no person misses it (ADR 0049).
        self.left.as_deref().is_some_and(|why| why != OF_CLIENT)
    }
}
