//! What a reference names that no work made: a restore, or what a person changed.

use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_ledger::Snapshot;

use crate::manual_restores;

/// A change that no work made, by the checkpoint before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeReference {
    /// A restore, by a person or a script.
    Restore(CheckpointId),
    /// What a person changed between the works.
    Own(CheckpointId),
}

/// Errors: `point_not_found` for a restore, or what a person changed: the log shows both, and neither is work.
pub fn require_work(snapshot: &Snapshot<'_>, root: &Path, text: &str) -> Result<()> {
    let (kind, id) = text.split_once(':').unwrap_or(("", text));
    let is_restore = match kind {
        "own" => false,
        "" | "restore" => {
            if !manual_restores::is_named(snapshot, root, id)? {
                return Ok(());
            }
            true
        }
        _ => return Ok(()),
    };
    let (what, hint) = if is_restore {
        (
            format!("{id} is a restore, and no work."),
            format!("undo that restore, if it is the newest: ic redo {id} --dry-run"),
        )
    } else {
        let what = format!("{text} is what a person changed between the works, and no work.");
        (what, format!("restore paths as they were before it: ic restore --before {text} PATH --dry-run"))
    };
    Err(Diagnosis::new(Code::PointNotFound, what).hint(hint).detail("point", text))
}

pub(super) fn nothing(text: &str) -> Diagnosis {
    Diagnosis::new(Code::PointNotFound, format!("No work, checkpoint or rollback here is named {text:?}."))
        .hint("what is recorded here: ic log; of a path: ic log -- PATH")
        .detail("point", text)
}
