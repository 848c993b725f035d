//! Names that git knows and `ic` does not: `HEAD`, a branch, a commit.

use std::path::Path;

use ic_base::{Code, Diagnosis};
use ic_checkpoint::git;

/// The error of a reference that names nothing here. Where git knows a commit of that name, the hint tells what `ic` takes instead.
#[must_use]
pub fn unless_of_git(root: &Path, text: &str, error: Diagnosis) -> Diagnosis {
    let is_unknown = matches!(
        error.code(),
        Code::PointNotFound | Code::CheckpointNotFound | Code::DispatchNotFound | Code::InvalidReference
    );
    // The references of `ic` with a kind, and `@`, mean something else to git.
    let is_of_ic = text.contains(':') || text.starts_with('@');
    if !is_unknown || is_of_ic || !git::has_commit_named(root, text) {
        return error;
    }
    error.hint(format!(
        "{text} is a name of git: ic takes the ids that ic log prints, and names of checkpoints; see: ic log"
    ))
}
