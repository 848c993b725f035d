//! Undoing only what one piece of work did: the tree does not go to a checkpoint, but to what it would be without that work.

use std::collections::{BTreeMap, HashSet};

use ic_base::Result;
use ic_checkpoint::diff::{DiffState, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::{PlannedDatabase, RestorePlan};
use ic_checkpoint::restore::reverse::{Now, Own, reverse};
use ic_checkpoint::rootfs::RootDir;
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;

use super::super::capture::Shot;
use super::super::workspace::Workspace;
use super::assumed_tree::AsIf;
use super::request::{Conflict, RestoreRequest};

/// What hinders the undo of a piece of work, and what it needs.
pub(super) struct SelectiveUndo {
    /// What cannot be merged.
    pub(super) conflicts: Vec<Conflict>,
    left: Vec<(PathText, String)>,
    /// Paths at which something of the work stays.
    parts: Vec<PathText>,
    /// Paths that the work changed, and of which no checkpoint holds content.
    unkept: Vec<(PathText, String)>,
    texts: Vec<Vec<u8>>,
    /// Of conflicts of lines alone, what the path becomes where these lines stay.
    without_lines: BTreeMap<Vec<u8>, DiffState>,
}

impl Workspace<'_> {
    /// How the tree differs from what it is to become: from the target, by then, or from the tree without a piece of work.
    pub(super) fn aimed(
        &self,
        work: Option<Own>,
        (as_if, found): (AsIf, Vec<Difference>),
        shot: &Shot,
        usual: &Hash,
        databases: &[PlannedDatabase],
        request: &RestoreRequest<'_>,
    ) -> Result<(Vec<Difference>, Option<SelectiveUndo>)> {
        let Some(work) = work else { return Ok((as_if.instead_of(found), None)) };
        let (mut differences, mut back) = self.without(&work, shot, usual, databases)?;
        if request.keep_theirs {
            back.leave_lines(&mut differences);
        }
        Ok((differences, Some(back)))
    }

    /// How the tree differs from what it would be without a piece of work.
    fn without(
        &self,
        work: &Own,
        shot: &Shot,
        usual: &Hash,
        databases: &[PlannedDatabase],
    ) -> Result<(Vec<Difference>, SelectiveUndo)> {
        let root = RootDir::open(&self.root)?;
        let now = Now { root: &root, exact: &shot.captured.root, usual, databases };
        let reversed = reverse(&self.objects, now, work)?;
        let conflict = |(path, reason)| Conflict { path: PathText(path), reason };
        let stands = |path: &[u8]| self.root.join(path_from_bytes(path)).symlink_metadata().is_ok();
        let unkept = work.unkept().filter(|(path, _)| stands(path));
        let back = SelectiveUndo {
            unkept: unkept.map(|(path, why)| (PathText(path.clone()), why.clone())).collect(),
            conflicts: reversed.conflicts.into_iter().map(conflict).collect(),
            parts: reversed.parts.iter().map(|(path, _)| PathText(path.clone())).collect(),
            left: reversed.left.into_iter().chain(reversed.parts).map(|(path, why)| (PathText(path), why)).collect(),
            texts: reversed.texts,
            without_lines: reversed.without_lines,
        };
        Ok((reversed.differences, back))
    }
}

impl SelectiveUndo {
    /// Decides conflicts of lines for the others: their lines stay, and the rest of the work goes from the same file. Where nothing else of
    /// it is there, the conflict is left.
    fn leave_lines(&mut self, differences: &mut [Difference]) {
        let (conflicts, mut without_lines) =
            (std::mem::take(&mut self.conflicts), std::mem::take(&mut self.without_lines));
        for conflict in conflicts {
            let left = without_lines.remove(&conflict.path.0);
            let difference = differences.iter_mut().find(|one| one.path == conflict.path.0);
            let (Some(difference), Some(left)) = (difference, left) else {
                self.conflicts.push(conflict);
                continue;
            };
            if difference.before.as_ref() == Some(&left) {
                self.conflicts.push(conflict);
                continue;
            }
            difference.after = Some(left);
            self.parts.push(conflict.path.clone());
            self.left.push((conflict.path, kept_because(&conflict.reason)));
        }
    }

    /// Adds to the plan what stays though the work changed it.
    pub(super) fn name_what_stays(&mut self, plan: &mut RestorePlan) {
        plan.skipped.append(&mut self.left);
        self.unkept.drain(..).for_each(|(path, why)| plan.leave_changed(path, why));
    }
}

fn kept_because(reason: &str) -> String {
    format!("kept: {reason}")
}

/// The paths that stay, each with all below it, where conflicts are decided for others. What only has no place to come back into is no path
/// of the plan, and keeps nothing below it.
pub(super) fn kept(conflicts: &[Conflict], differences: &[Difference]) -> Vec<Vec<u8>> {
    let planned: HashSet<&Vec<u8>> = differences.iter().map(|difference| &difference.path).collect();
    conflicts.iter().map(|conflict| conflict.path.0.clone()).filter(|path| planned.contains(path)).collect()
}

/// What of a plan is still open.
#[derive(Default)]
pub(super) struct Rest {
    /// The conflicts that neither `--force` nor `--keep-theirs` decided.
    pub(super) conflicts: Vec<Conflict>,
    /// The merged texts that the plan needs.
    pub(super) texts: Vec<Vec<u8>>,
    /// Only what one piece of work did is undone.
    pub(super) is_without: bool,
    /// Paths at which something of that work stays.
    pub(super) parts: Vec<PathText>,
}

/// What is still open of a plan; what stays goes into the plan.
pub(super) fn open_conflicts(
    plan: &mut RestorePlan,
    conflicts: Vec<Conflict>,
    back: Option<SelectiveUndo>,
    request: &RestoreRequest<'_>,
) -> Rest {
    if request.keep_theirs {
        plan.skipped.extend(conflicts.iter().map(|c| (c.path.clone(), kept_because(&c.reason))));
    }
    let is_without = back.is_some();
    let kept = conflicts.iter().filter(|_| is_without && request.keep_theirs);
    let kept: Vec<PathText> = kept.map(|conflict| conflict.path.clone()).collect();
    let is_step = |conflict: &Conflict| plan.steps.iter().any(|step| step.path == conflict.path);
    let (mut open, without_a_step): (Vec<_>, Vec<_>) = conflicts.into_iter().partition(is_step);
    let Some(SelectiveUndo { texts, mut parts, .. }) = back else {
        return Rest { conflicts: open, ..Rest::default() };
    };
    parts.extend(kept);
    // What has no place to come back into stays even where a decision lets the others go.
    if request.force.files {
        parts.extend(without_a_step.iter().map(|one| one.path.clone()));
        plan.skipped.extend(without_a_step.into_iter().map(|one| (one.path, one.reason)));
    } else if !request.keep_theirs {
        open.extend(without_a_step);
    }
    Rest { conflicts: open, texts, is_without, parts }
}
