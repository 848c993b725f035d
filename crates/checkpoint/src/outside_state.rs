//! What stands at a path outside of the project, as rows and the journal of a rollback have it.

use ic_ledger::events::{Hash, parse_hex};
use serde::{Deserialize, Serialize};

/// The state of a path outside of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutsideStanding {
    /// There is neither a file nor anything else.
    Absent {
        /// The first directory above it that was missing, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        above: Option<String>,
    },
    /// A regular file, whose content is in the object store.
    File {
        /// The SHA-256 of its content, in hex.
        hash: String,
        /// Its length in bytes.
        size: u64,
        /// Its permission bits, as the mode of stat(2) has them.
        mode: u32,
    },
    /// There is something whose content is not kept.
    Unkept {
        /// Why its content is not kept: one of a few fixed texts.
        reason: String,
        /// A fingerprint of this state; `None`: there is nothing, or it may not be looked at.
        seen: Option<String>,
    },
}

impl OutsideStanding {
    /// Whether both are the same state to an undo.
    pub fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            // `above` only says which empty directories an undo may remove.
            (Self::Absent { .. }, Self::Absent { .. }) => true,
            // The reason is for people; `seen` tells whether something changed.
            (Self::Unkept { seen, .. }, Self::Unkept { seen: other, .. }) => seen == other,
            _ => self == other,
        }
    }

    /// The content that it needs in the store.
    pub fn content(&self) -> Option<Hash> {
        match self {
            Self::File { hash, .. } => parse_hex(hash),
            Self::Absent { .. } | Self::Unkept { .. } => None,
        }
    }
}
