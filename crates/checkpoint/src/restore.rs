//! Restoring a checkpoint: plan, apply, journal.
//!
//! A restore goes `prepared → applying → applied`. Before the first write, what is about to change is durable in a safety
//! checkpoint and the plan is an object of its own; a killed restore is settled by applying the same plan again: each of
//! its changes names what stands there before and after, so that one that was made already is recognised, and one
//! that somebody else overwrote meanwhile is left alone and named.

pub mod apply;
pub mod attain;
pub mod database;
pub mod journal;
pub mod links;
pub mod plan;
pub mod reverse;
pub(crate) mod sparse;

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which parts of a checkpoint are restored (seed 000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Files and git's state.
    Full,
    /// Only what the step after the checkpoint changed.
    Partial,
    /// Files alone.
    FilesOnly,
    /// Git's state alone.
    GitOnly,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Full, Self::Partial, Self::FilesOnly, Self::GitOnly];

    /// The text in the ledger and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::FilesOnly => "files-only",
            Self::GitOnly => "git-only",
        }
    }

    /// The strategy with this text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == text)
    }

    /// Whether files are restored.
    pub fn has_files(self) -> bool {
        self != Self::GitOnly
    }

    /// Whether git's state is restored.
    pub fn has_git(self) -> bool {
        matches!(self, Self::Full | Self::GitOnly)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
