//! Undoing only what one piece of work did: the tree does not go to a checkpoint, but to what it would be without that work.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ic_base::Result;
use ic_checkpoint::diff::{DiffState, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::{Limits, PlannedDatabase, RestorePlan};
use ic_checkpoint::restore::reverse::{LineDecision, Now, Own, reverse};
use ic_checkpoint::rootfs::RootDir;
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;

use super::super::capture::Shot;
use super::super::workspace::Workspace;
use super::assumed_tree::AsIf;
use super::request::{Conflict, RestoreRequest};

/// What others did since the target of a restore, where it is known whose each change is.
#[derive(Debug, Clone, Default)]
pub struct OthersPaths {
    /// Paths that others alone changed. They stay as they are, and no report names them.
    pub theirs: BTreeSet<Vec<u8>>,
    /// What is to go at paths that others changed too: it is merged out, and what others did stays.
    pub mixed: Own,
}

impl OthersPaths {
    /// The paths that do not become as the target has them.
    pub fn paths(&self) -> BTreeSet<Vec<u8>> {
        self.theirs.union(&self.mixed.paths()).cloned().collect()
    }
}

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
    /// The paths in conflict that are as before the work already.
    as_before: HashSet<Vec<u8>>,
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
        (databases, limits): (&[PlannedDatabase], &mut Limits),
        request: &RestoreRequest<'_>,
    ) -> Result<(Vec<Difference>, Option<SelectiveUndo>)> {
        let Some(work) = work else { return Ok((as_if.instead_of(found), None)) };
        let (mut differences, mut back) = self.without(&work, shot, usual, databases)?;
        if let Some(only) = &mut limits.only {
            // Files of the work may have other names by now.
            only.extend(differences.iter().map(|one| one.path.clone()));
        }
        back.leave_lines(&mut differences, request);
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
            as_before: reversed.as_before,
            without_lines: reversed.without_lines,
        };
        Ok((reversed.differences, back))
    }
}

impl Workspace<'_> {
    /// Lets a restore of a whole tree leave what others did: where they changed what the run changed too, that is merged out. Of their
    /// paths, only those remain in conflict that cannot be merged.
    pub(super) fn beside(
        &self,
        (differences, conflicts): (Vec<Difference>, &mut Vec<Conflict>),
        others: &OthersPaths,
        (shot, usual, databases): (&Shot, &Hash, &[PlannedDatabase]),
        request: &RestoreRequest<'_>,
    ) -> Result<(Vec<Difference>, Option<SelectiveUndo>)> {
        let paths = others.paths();
        if paths.is_empty() {
            return Ok((differences, None));
        }
        let (mut merged, mut back) = self.without(&others.mixed, shot, usual, databases)?;
        back.leave_lines(&mut merged, request);
        // What is already without the run's work needs no decision, and is nothing that stays.
        back.left.retain(|(path, _)| back.parts.contains(path));
        conflicts.retain(|one| !paths.contains(&one.path.0));
        conflicts.extend(back.conflicts.iter().cloned());
        let gone: HashSet<&Vec<u8>> = merged.iter().filter(|one| one.after.is_none()).map(|one| &one.path).collect();
        let standing: BTreeSet<PathText> =
            paths.iter().filter(|path| !gone.contains(path)).cloned().map(PathText).collect();
        let goes = |one: &Difference| matches!(one.before, Some(DiffState::Directory { .. })) && one.after.is_none();
        // A directory stays while it has anything of others.
        let is_needed = |one: &Difference| goes(one) && holds_any(&one.path, &standing);
        let mut as_target = differences;
        as_target.retain(|one| !paths.contains(&one.path) && !is_needed(one));
        // Sorted by path, because a plan needs a directory before what lies in it.
        let by_path = as_target.into_iter().chain(merged).map(|one| (one.path.clone(), one));
        Ok((by_path.collect::<BTreeMap<_, _>>().into_values().collect(), Some(back)))
    }
}

impl SelectiveUndo {
    /// Carries out the decisions that lines of others stay: the rest of the work goes from the same file. Where nothing else of it is there,
    /// the conflict is left.
    fn leave_lines(&mut self, differences: &mut [Difference], request: &RestoreRequest<'_>) {
        // What stays though nothing decides it, and a person says is theirs, is nothing of the work.
        let is_theirs = |path: &PathText| request.decisions.is_some_and(|paths| paths.leave.contains(path));
        self.left.retain(|(path, _)| !(is_theirs(path) && self.parts.contains(path)));
        self.unkept.retain(|(path, _)| !is_theirs(path));
        self.parts.retain(|path| !is_theirs(path));
        let mut without_lines = std::mem::take(&mut self.without_lines);
        for conflict in std::mem::take(&mut self.conflicts) {
            let is_left = request.decision(&conflict.path.0) == Some(LineDecision::Leave);
            let left = without_lines.remove(&conflict.path.0).filter(|_| is_left);
            let difference = differences.iter_mut().find(|one| one.path == conflict.path.0);
            let (Some(difference), Some(left)) = (difference, left) else {
                self.conflicts.push(conflict);
                continue;
            };
            // Only its lines in conflict are there: then the path is one that stays, as any other.
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

/// Adds to the plan what stays beside others though the run changed it. Returns the paths that do not become as the target has them.
pub(super) fn name_beside(
    plan: &mut RestorePlan,
    mixed: Option<&mut SelectiveUndo>,
    others: &OthersPaths,
) -> BTreeSet<PathText> {
    let beside: BTreeSet<PathText> = others.paths().into_iter().map(PathText).collect();
    if let Some(back) = mixed {
        back.name_what_stays(plan);
    }
    beside
}

/// Whether one of these paths lies in a directory.
pub(super) fn holds_any(directory: &[u8], paths: &BTreeSet<PathText>) -> bool {
    // All that lies in a directory sorts right after its path with a slash, so the first one that follows decides.
    let first = PathText([directory, b"/"].concat());
    paths.range(&first..).next().is_some_and(|path| path.0.starts_with(&first.0))
}

fn kept_because(reason: &str) -> String {
    format!("kept: {reason}")
}

/// The paths that stay, each with all below it, where conflicts are decided for others. What only has no place to come back into is no path
/// of the plan, and keeps nothing below it.
pub(super) fn kept<'c>(
    conflicts: impl IntoIterator<Item = &'c Conflict>,
    differences: &[Difference],
) -> impl Iterator<Item = Vec<u8>> {
    let planned: HashSet<&Vec<u8>> = differences.iter().map(|difference| &difference.path).collect();
    conflicts.into_iter().map(|conflict| conflict.path.0.clone()).filter(move |path| planned.contains(path))
}

/// Keeps the paths in conflict that stay by decision.
pub(super) fn keep_left(
    limits: &mut Limits,
    databases: &mut Vec<PlannedDatabase>,
    (conflicts, differences): (&[Conflict], &[Difference]),
    request: &RestoreRequest<'_>,
) {
    let is_left = |one: &&Conflict| request.decision(&one.path.0) == Some(LineDecision::Leave);
    let left: Vec<&Conflict> = conflicts.iter().filter(is_left).collect();
    if !left.is_empty() {
        limits.keep.extend(kept(left, differences));
        limits.keep_together(databases);
    }
}

/// What of a plan is still open.
#[derive(Default)]
pub(super) struct Rest {
    /// The conflicts that are not decided, and those whose paths are replaced by decision.
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
    (back, mixed): (Option<SelectiveUndo>, Option<SelectiveUndo>),
    request: &RestoreRequest<'_>,
) -> Rest {
    let is_left = |one: &&Conflict| request.decision(&one.path.0) == Some(LineDecision::Leave);
    plan.skipped.extend(conflicts.iter().filter(is_left).map(|one| (one.path.clone(), kept_because(&one.reason))));
    let is_without = back.is_some();
    let of_mixed = mixed.as_ref().map(|mixed| mixed.conflicts.clone()).unwrap_or_default();
    let kept = conflicts.iter().filter(|one| (is_without || of_mixed.contains(one)) && is_left(one));
    let kept: Vec<PathText> = kept.map(|conflict| conflict.path.clone()).collect();
    let is_step = |conflict: &Conflict| plan.steps.iter().any(|step| step.path == conflict.path);
    let (mut open, without_a_step): (Vec<_>, Vec<_>) = conflicts.into_iter().partition(is_step);
    let Some(SelectiveUndo { texts, mut parts, conflicts: of_work, as_before, .. }) = back.or(mixed) else {
        return Rest { conflicts: open, ..Rest::default() };
    };
    parts.extend(kept);
    for one in without_a_step.into_iter().filter(|one| of_work.contains(one)) {
        match request.decision(&one.path.0) {
            // What has no place to come back into stays even where a decision lets the others go.
            Some(LineDecision::Take) if !as_before.contains(&one.path.0) => {
                parts.push(one.path.clone());
                plan.skipped.push((one.path, one.reason));
            }
            Some(_) => {}
            None => open.push(one),
        }
    }
    Rest { conflicts: open, texts, is_without, parts }
}
