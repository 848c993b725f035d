//! Undoing only what one piece of work did: the tree does not go to a checkpoint, but to what it would be without that work.

use ic_base::Result;
use ic_checkpoint::diff::Difference;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::Plan;
use ic_checkpoint::restore::reverse::{Own, reverse};
use ic_checkpoint::rootfs::RootDir;

use super::super::Workspace;
use super::super::shot::Shot;
use super::{Conflict, Request};

/// What stands against undoing a piece of work, and what it needs.
pub(super) struct Back {
    /// What cannot be merged.
    pub(super) conflicts: Vec<Conflict>,
    left: Vec<(PathText, String)>,
    texts: Vec<Vec<u8>>,
}

impl Workspace<'_> {
    /// How the tree differs from what it would be without a piece of work.
    pub(super) fn without(&self, work: &Own, shot: &Shot) -> Result<(Vec<Difference>, Back)> {
        let root = RootDir::open(&self.root)?;
        let reversed = reverse(&self.objects, (&root, &shot.captured.root), work)?;
        let conflict = |(path, reason)| Conflict { path: PathText(path), reason };
        let back = Back {
            conflicts: reversed.conflicts.into_iter().map(conflict).collect(),
            left: reversed.left.into_iter().map(|(path, why)| (PathText(path), why)).collect(),
            texts: reversed.texts,
        };
        Ok((reversed.differences, back))
    }
}

/// The conflicts that nobody has decided, and the merged texts that the plan needs; what stays goes into the plan.
pub(super) fn open_conflicts(
    plan: &mut Plan,
    conflicts: Vec<Conflict>,
    back: Option<Back>,
    request: &Request<'_>,
) -> (Vec<Conflict>, Vec<Vec<u8>>) {
    let is_step = |conflict: &Conflict| plan.steps.iter().any(|step| step.path == conflict.path);
    let (mut open, without_a_step): (Vec<_>, Vec<_>) = conflicts.into_iter().partition(is_step);
    let Some(Back { left, texts, .. }) = back else { return (open, Vec::new()) };
    plan.skipped.extend(left);
    // What has no place to come back into stays even where a decision lets the others go.
    if request.force.files {
        plan.skipped.extend(without_a_step.into_iter().map(|one| (one.path, one.reason)));
    } else if !request.keep_theirs {
        open.extend(without_a_step);
    }
    (open, texts)
}
