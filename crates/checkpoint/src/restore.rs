//! Restoring a checkpoint: plan, apply, journal.
//!
//! A restore goes `prepared → applying → applied`; the first two are one transaction. Before the first
//! write, what is about to change is durable in a safety checkpoint and the plan is an object of its own; a killed restore is settled by
//! applying the same plan again: each of its changes names what stands there before and after, so that one that was made already is
//! recognised, and one that others overwrote since is left alone and named.

pub mod apply;
pub mod attribute_support;
pub mod database;
pub mod journal;
pub mod links;
pub mod plan;
pub mod reverse;
pub(crate) mod sparse;

use std::fmt;

use serde::{Deserialize, Serialize};

ic_base::words! {
    /// Which parts of a checkpoint are restored (seed 000).
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Strategy {
        /// Files and git's state.
        Full = "full",
        /// Only what the step after the checkpoint changed.
        Partial = "partial",
        /// Files, links and directories, without git's state.
        FilesOnly = "files-only",
        /// HEAD, branches, index and stash, without the working tree.
        GitOnly = "git-only",
    }
}

impl Strategy {
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
