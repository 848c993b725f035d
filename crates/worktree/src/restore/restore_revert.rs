//! Undoing the restores that a rollback made, and naming what others changed since.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq, shell_word};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::{self, RestoreKind, RestoreRecord};
use ic_checkpoint::restore::plan::{self, Limits, RestoreNode, RestoreStep};
use ic_checkpoint::restore::reverse::Own;
use ic_ledger::events::Hash;
use ic_ledger::{DATABASE_SIDE_SUFFIXES, path_from_bytes};

use super::super::capture::{GitPart, Purpose};
use super::super::git::Brought;
use super::super::workspace::{Warning, Workspace, require_kept};
use super::assumed_tree::{AsIf, differences, paths_of};
use super::planned_restore::RestoreTask;
use super::request::{RestoreReport, RestoreRequest, RestoreWatch};
use super::{kept_plan, run};

/// What the undo of one piece of work changed in a workspace: its `effects` first, then its restores, oldest first. `None`: nothing of that
/// is merged, because one changed a database with what stands beside it, which is restored whole.
pub fn changed_by(
    workspace: &Workspace<'_>,
    effects: &[TreeChanges],
    restores: &[RestoreRecord],
) -> Result<Option<Own>> {
    let is_side = |path: &Vec<u8>| DATABASE_SIDE_SUFFIXES.iter().any(|suffix| path.ends_with(suffix));
    let of_effects = effects.iter().flat_map(TreeChanges::paths);
    if of_effects.chain(paths_of(workspace, restores)?).any(|path| is_side(&path)) {
        return Ok(None);
    }
    let mut work = Own::default();
    effects.iter().flat_map(TreeChanges::made).for_each(|change| work.add(change));
    for restore in restores {
        changes_of(workspace, restore)?.into_iter().for_each(|change| work.add(change));
    }
    Ok(Some(work))
}

/// Undoes the undo of one piece of work: its changes are merged into the current tree, whatever others did since. A path that has them
/// already is not changed. `target`: the tree with that work.
///
/// Errors: those of [`super::restore`].
pub fn merge_back(
    workspace: &Workspace<'_>,
    (work, target): (Own, &CheckpointId),
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let target = workspace.kernel.read(|snapshot| record::get(snapshot, target))?;
    require_kept(&target)?;
    let own = work.paths();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let undoes = Some(target.id.clone());
    let task = RestoreTask { undoes, own, work: Some(work), ..RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

/// What a restore changed of the paths of its plan.
fn changes_of(workspace: &Workspace<'_>, restore: &RestoreRecord) -> Result<Vec<Difference>> {
    let steps = kept_plan::read_plan(workspace, restore)?.steps;
    let states = |step: RestoreStep| Difference {
        path: step.path.0,
        before: step.before.map(RestoreNode::into_state),
        after: step.after.map(RestoreNode::into_state),
    };
    let Some(left) = &restore.restored_id else {
        // The restore was interrupted, which only a dry run meets: the changes it would make count as made.
        return Ok(steps.into_iter().map(states).collect());
    };
    let (before, after) = workspace
        .kernel
        .read(|snapshot| Ok((record::get(snapshot, &restore.safety_id)?, record::get(snapshot, left)?)))?;
    require_kept(&before)?;
    let of_others = workspace.of_others_in(restore, &after.tree)?;
    let (missed, made): (Vec<RestoreStep>, Vec<RestoreStep>) =
        steps.into_iter().partition(|step| of_others.contains(&step.path.0));
    let paths: BTreeSet<Vec<u8>> = made.into_iter().map(|step| step.path.0).collect();
    // From the checkpoints, where a database has what its log held.
    let mut changes = differences(workspace, &before.tree, &after.tree)?;
    changes.retain(|change| paths.contains(&change.path));
    changes.extend(missed.into_iter().map(states));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// Finishes a restore of the workspace that was interrupted, forward, and says so.
pub fn settle(workspace: &Workspace<'_>, watch: &RestoreWatch) -> Result<Option<Warning>> {
    if workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?.is_none() {
        return Ok(None);
    }
    // Looked at without the lock first, since most trees have none; `settle` looks again under it.
    let _held = workspace.lock(LockMode::Exclusive)?;
    Ok(workspace.settle(watch)?.map(|settled| settled.warning()))
}

/// The restores of a checkpoint in a workspace that were begun after `since`, oldest first: those that are finished, and with
/// `and_interrupted` the one that is not.
pub fn restores_since(
    workspace: &Workspace<'_>,
    target: &CheckpointId,
    since: Seq,
    and_interrupted: bool,
) -> Result<Vec<RestoreRecord>> {
    let mut finished = workspace.kernel.read(|snapshot| {
        let mut all = journal::finished(snapshot, &workspace.root)?;
        if and_interrupted {
            all.extend(journal::unfinished(snapshot, &workspace.root)?);
        }
        Ok(all)
    })?;
    finished.retain(|restore| restore.seq > since && restore.target_id == *target);
    Ok(finished)
}

/// What a restore set out to change, as its journal has it.
///
/// Errors: `corrupt` if its plan cannot be read.
pub fn steps_of(workspace: &Workspace<'_>, restore: &RestoreRecord) -> Result<Vec<RestoreStep>> {
    kept_plan::read_plan(workspace, restore).map(|plan| plan.steps)
}

/// What a restore of the workspace that was interrupted has still to change, if it is this one; nothing where none was.
pub fn left_of_interrupted(
    workspace: &Workspace<'_>,
    is_meant: impl Fn(&RestoreRecord) -> bool,
) -> Result<Vec<RestoreStep>> {
    let interrupted = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?;
    let Some(restore) = interrupted.filter(is_meant) else { return Ok(Vec::new()) };
    let steps = steps_of(workspace, &restore)?;
    let paths = steps.iter().map(|step| step.path.0.clone()).filter(|path| !path.is_empty());
    let now = workspace.look(paths.collect())?;
    let mut left = Vec::new();
    for step in steps {
        if workspace.node(&now, &step.path.0)? != step.after.clone().map(RestoreNode::plain) {
            left.push(step);
        }
    }
    Ok(left)
}

/// Undoes one restore of a workspace: where that restore changed the tree, it is as before. `not_yet`: later restores that a dry run
/// assumes to be undone already.
pub fn take_restore_back(
    workspace: &Workspace<'_>,
    restore: &RestoreRecord,
    not_yet: &[RestoreRecord],
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let target = workspace.kernel.read(|snapshot| record::get(snapshot, &restore.safety_id))?;
    require_kept(&target)?;
    let own: BTreeSet<Vec<u8>> =
        kept_plan::read_plan(workspace, restore)?.steps.into_iter().map(|step| step.path.0).collect();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    let as_if = match not_yet.first() {
        Some(next) => {
            let next = workspace.kernel.read(|snapshot| record::get(snapshot, &next.safety_id))?;
            AsIf::of(workspace, paths_of(workspace, not_yet)?, &next.tree, &target.tree)?
        }
        None => AsIf::default(),
    };
    // A caller that reverts git alone has merged the files, and compared nothing.
    let is_compared = request.strategy != Some(Strategy::GitOnly);
    let brought = restore.restored_id.clone().map(|left| Brought { left, is_compared });
    let undoes = Some(target.id.clone());
    let task = RestoreTask { undoes, as_if, own, brought, ..RestoreTask::of(RestoreKind::Restore, target, limits) };
    run::run(workspace, task, request, watch)
}

/// What changed in the tree from one checkpoint to a newer one, to be undone.
pub struct TreeChanges {
    before: CheckpointRecord,
    /// The tree of the newer one.
    after: Hash,
    /// The newer one; `None`: the tree as it was looked at.
    after_id: Option<CheckpointId>,
    /// How `before` differs from `after`.
    differences: Vec<Difference>,
}

/// What is still to be undone, newest first, when something older is.
#[derive(Clone, Copy, Default)]
pub struct NotYet<'a> {
    /// Later restores, newest first.
    pub restores: &'a [RestoreRecord],
    /// Changes that are later.
    pub changes: &'a [TreeChanges],
}

/// What changed in the tree from one checkpoint to a newer one, or to what there is now, where these paths are looked at though a rule
/// hides them; `None`: nothing did. Errors: what tells that the older one is pruned.
pub fn changes_between(
    workspace: &Workspace<'_>,
    before: &CheckpointId,
    after: Option<&CheckpointId>,
    force: BTreeSet<Vec<u8>>,
) -> Result<Option<TreeChanges>> {
    let get = |id| workspace.kernel.read(|snapshot| record::get(snapshot, id));
    let before = get(before)?;
    require_kept(&before)?;
    let tree = match after {
        Some(after) => get(after)?.tree,
        None => workspace.look(force)?,
    };
    // From the newer tree to the older one: this is what an undo does, and `made` turns it around.
    let differences = differences(workspace, &tree, &before.tree)?;
    let is_any = !differences.is_empty();
    Ok(is_any.then(|| TreeChanges { before, after: tree, after_id: after.cloned(), differences }))
}

impl TreeChanges {
    /// The checkpoint before the changes, to which an undo returns.
    pub fn before(&self) -> &CheckpointId {
        &self.before.id
    }

    pub(super) fn tree_before(&self) -> &Hash {
        &self.before.tree
    }

    /// The newer checkpoint; `None`: the tree as it was looked at.
    pub fn after(&self) -> Option<&CheckpointId> {
        self.after_id.as_ref()
    }

    /// What was changed, as it was.
    pub fn made(&self) -> impl Iterator<Item = Difference> + '_ {
        self.differences.iter().cloned().map(|Difference { path, before, after }| Difference {
            path,
            before: after,
            after: before,
        })
    }

    /// What was changed, as the steps of a plan that changes it so.
    pub fn steps(&self) -> Vec<RestoreStep> {
        let made: Vec<Difference> = self.made().collect();
        plan::plan(&made, &Limits::default(), &|_| false).steps
    }

    /// The part of it that is meant, by the path and what was left there; `None`: nothing.
    pub fn only(mut self, is_meant: impl Fn(&[u8], Option<&DiffState>) -> bool) -> Option<Self> {
        self.differences.retain(|one| is_meant(&one.path, one.before.as_ref()));
        (!self.differences.is_empty()).then_some(self)
    }

    fn paths(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.differences.iter().map(|difference| difference.path.clone())
    }

    /// Errors: `file_conflict`, naming a path that others changed since. `not_yet`: restores and later changes that are not undone yet;
    /// the paths that they changed are no conflict. A path without content in a checkpoint is not changed, and is no conflict either.
    pub fn require_untouched(&self, workspace: &Workspace<'_>, not_yet: NotYet<'_>) -> Result<()> {
        let theirs = paths_not_yet(workspace, not_yet)?;
        let is_held = |state: &Option<DiffState>| state.as_ref().is_none_or(DiffState::is_content);
        let held = self.differences.iter().filter(|one| is_held(&one.before) && is_held(&one.after));
        let paths = held.map(|one| one.path.clone()).filter(|path| !theirs.contains(path)).collect();
        // A path that is as before the change is undone already, and no conflict either.
        let changed = workspace.changed_from(&paths, &[self.before.tree, self.after])?;
        let Some(path) = changed.first() else { return Ok(()) };
        let path = path_from_bytes(&path.0).display().to_string();
        let hint = self.after_id.as_ref().map_or_else(String::new, |after| {
            format!(
                "this restores it as the effect left it (and keeps yours in a checkpoint): ic checkpoint restore {}{} --yes",
                after.short(),
                path_option(&path)
            )
        });
        Err(Diagnosis::new(
            Code::FileConflict,
            format!("{path} was changed since an effect was undone, which had changed it too."),
        )
        .hint(hint))
    }
}

/// Undoes changes. `not_yet`: restores and later changes that a dry run assumes to be undone already; the paths that they changed are then
/// as in the newer checkpoint.
pub fn take_changes_back(
    workspace: &Workspace<'_>,
    changes: &TreeChanges,
    not_yet: NotYet<'_>,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let limits = Limits { only: Some(changes.paths().collect()), ..Limits::default() };
    let theirs = paths_not_yet(workspace, not_yet)?;
    let as_if = AsIf::of(workspace, theirs, &changes.after, &changes.before.tree)?;
    let task = RestoreTask { as_if, ..RestoreTask::of(RestoreKind::Restore, changes.before.clone(), limits) };
    run::run(workspace, task, request, watch)
}

fn paths_not_yet(workspace: &Workspace<'_>, not_yet: NotYet<'_>) -> Result<BTreeSet<Vec<u8>>> {
    let mut paths = paths_of(workspace, not_yet.restores)?;
    paths.extend(not_yet.changes.iter().flat_map(TreeChanges::paths));
    Ok(paths)
}

/// Names one path to `ic checkpoint restore`, for a shell.
pub fn path_option(path: &str) -> String {
    format!(" --path {}", shell_word(path))
}

impl Workspace<'_> {
    /// Those of `paths` that are now as none of these trees has them.
    fn changed_from(&self, paths: &BTreeSet<Vec<u8>>, trees: &[Hash]) -> Result<Vec<PathText>> {
        let now = self.look(paths.iter().filter(|path| !path.is_empty()).cloned().collect())?;
        let mut changed = Vec::new();
        for path in paths.iter().filter(|path| !path.is_empty()) {
            let here = self.node(&now, path)?;
            let known = trees.iter().map(|tree| self.node(tree, path)).collect::<Result<Vec<_>>>()?;
            if !known.contains(&here) {
                changed.push(PathText(path.clone()));
            }
        }
        Ok(changed)
    }

    /// The current tree, looked at and not recorded. `force`: paths that are looked at even if a rule hides them.
    pub(super) fn look(&self, force: BTreeSet<Vec<u8>>) -> Result<Hash> {
        let _held = self.lock(LockMode::Shared)?;
        let look = Purpose::look(GitPart::Nothing, force);
        Ok(self.shoot(look, &CaptureProgress::default())?.captured.root)
    }

    pub(super) fn node(&self, tree: &Hash, path: &[u8]) -> Result<Option<RestoreNode>> {
        Ok(diff::find(&self.objects, tree, path)?.as_ref().and_then(RestoreNode::of).map(RestoreNode::plain))
    }
}
