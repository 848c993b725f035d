//! The tree in an undo or abort. First it is checked whether its changes are the rollback's own; then its restores are undone, newest
//! first.
//!
//! Both can be repeated: a path that is restored already has a content that one of the restores found.

mod git_revert;
mod refusals;

use ic_base::{Code, Result, Seq};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_effects::CompensationState;
use ic_kernel::Kernel;
use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use ic_kernel::journal::{Course, Force, steps};
use ic_worktree::{
    CaptureSettings, NotYet, RestoreReport, RestoreRequest, RestoreWatch, TreeChanges, Warning, Which, Workspace,
};

use super::target::{require_not_lost, require_project};
use super::{effects_bracket, index_entries, manual_restore};
use crate::coverage::Covered;
use crate::dispatch_changes;
use crate::layers::layer::{LayerWork, Site, has_tree, until};
use crate::undo_preconditions::undone_effects;
use refusals::{refuse_conflict, require_untouched};

/// The restores of a rollback, in the tree that they changed.
struct TreeBack<'k> {
    workspace: Workspace<'k>,
    /// In the order in which they were made.
    restores: Vec<RestoreRecord>,
    /// What each attempt at the effects changed in it, oldest first.
    effects: Vec<TreeChanges>,
    /// The rollback, where only work was undone.
    of_works: Option<RollbackRecord>,
    /// What is to be said of a restore that was interrupted and is finished now.
    settled: Option<Warning>,
}

/// Undoes the restores of a rollback, or says what that would do. It is no error if there is nothing to undo.
pub(super) fn go(site: &Site<'_, '_>, work: &mut LayerWork) -> Result<()> {
    let Some(remembered) = site.covered.remembered() else { return Ok(()) };
    let until = site.kernel.read(|snapshot| until(snapshot, remembered, site.course))?;
    let look = Look { course: site.course, until, force: site.force, dry_run: site.is_dry(), watch: site.watch };
    let Some(found) = to_put_back(site.kernel, site.settings, site.covered, look)? else { return Ok(()) };
    // Reports of a step that an earlier attempt made stay where they are.
    let first = work.tree.len();
    let put_back = found.put_back(look, &mut work.tree);
    // A preview reports the paths of an interrupted undo too, which the real call would find done.
    if look.dry_run {
        for report in &mut work.tree[first..] {
            let is_its = |restore: &RestoreRecord| restore.target_id == report.target.id;
            let left = ic_worktree::left_of_interrupted(&found.workspace, is_its)?;
            report.plan.steps = super::both(left, &report.plan.steps);
        }
    }
    if !look.dry_run {
        work.has_changed |= work.tree[first..].iter().any(|report| report.safety_id.is_some());
    }
    if let (Some(settled), Some(report)) = (found.settled, work.tree.get_mut(first)) {
        report.warnings.push(settled);
    }
    put_back?;
    if let Some(report) = work.tree[first..].last_mut() {
        report.index = index_entries::coming_again(site, &found.workspace)?;
    }
    work.tree.last().filter(|_| !look.dry_run).and_then(super::failed).map_or(Ok(()), Err)
}

/// Finishes a restore that was interrupted, and checks whether the tree still is as the rollback left it. Called before the run is closed
/// for an undo or abort. Returns what is to be said of that restore.
///
/// Errors: those of [`to_put_back`].
pub(crate) fn require_own(
    kernel: &Kernel,
    settings: &CaptureSettings,
    covered: &Covered,
    course: Course,
    watch: &RestoreWatch,
) -> Result<Option<Warning>> {
    let Some(remembered) = covered.remembered() else { return Ok(None) };
    let until = kernel.read(|snapshot| until(snapshot, remembered, course))?;
    let look = Look { course, until, force: Force::default(), dry_run: false, watch };
    to_put_back(kernel, settings, covered, look).map(|found| found.and_then(|found| found.settled))
}

/// How the restores of a rollback are checked and undone.
#[derive(Clone, Copy)]
struct Look<'a> {
    /// The direction in which the rollback goes.
    course: Course,
    /// The event before which the rollback's restores lie.
    until: Seq,
    /// Whether what others changed is reverted too.
    force: Force,
    /// Whether nothing is changed, not even to finish an interrupted restore.
    dry_run: bool,
    watch: &'a RestoreWatch,
}

impl Look<'_> {
    /// The same, without any change and without any refusal passed.
    fn only(self) -> Self {
        Self { force: Force::default(), dry_run: true, ..self }
    }
}

/// The changes to files and git's state that are to be reverted, when nothing refuses it; `None`: there are none.
///
/// Errors: `branch_switched` on another branch than that of the rollback; `file_conflict` if others changed or recorded since what the
/// rollback restored; `foreign_commits`, `work_running`: nothing is changed. With `force` none of them.
fn to_put_back<'k>(
    kernel: &'k Kernel,
    settings: &'k CaptureSettings,
    covered: &Covered,
    look: Look<'_>,
) -> Result<Option<TreeBack<'k>>> {
    let Some(remembered) = covered.remembered().filter(|one| has_tree(&one.layers)) else { return Ok(None) };
    let run = &covered.run;
    let (target, steps) = kernel.read(|snapshot| {
        let target = crate::points::checkpoint_at(snapshot, run, remembered.cut_seq)?;
        Ok((target, steps::of_rollback(snapshot, &remembered.id)?))
    })?;
    let Some(target) = target else { return Ok(None) };
    let safety = steps.into_iter().find_map(|step| step.detail.safety.into_iter().next());
    let kept = safety.unwrap_or_else(|| target.id.clone());
    require_project(run, &kept, "move it back there, then call again")?;
    let workspace = Workspace::of_run(kernel, run, settings)?;
    // An interrupted restore is undone like the others, once it is finished; a dry run takes it to be finished.
    let settled = if look.dry_run { None } else { ic_worktree::settle(&workspace, look.watch)? };
    let found = own_of(workspace, remembered, &target, look);
    match (found, settled) {
        (Ok(tree), settled) => Ok(Some(TreeBack { settled, ..tree })),
        // What the finished restore wrote stays, whatever is refused.
        (Err(error), Some(settled)) => Err(error.but(&settled.message).detail("settled", settled.message)),
        (Err(error), None) => Err(error),
    }
}

/// What a rollback changed in the tree of this workspace. Errors: those of [`to_put_back`].
fn own_of<'k>(
    workspace: Workspace<'k>,
    remembered: &RollbackRecord,
    target: &CheckpointRecord,
    look: Look<'_>,
) -> Result<TreeBack<'k>> {
    let mut restores = ic_worktree::restores_since(&workspace, &target.id, remembered.seq, look.dry_run)?;
    // A later restore of the same checkpoint was asked for by a person, and is not the rollback's to undo.
    restores.retain(|restore| restore.seq < look.until);
    // An abort continues without what was lost: otherwise the run would stay closed for ever.
    if remembered.status == RollbackStatus::Done {
        require_not_lost(&workspace, (&target.id, remembered.seq), look.until)?;
    }
    let effects = effects_bracket::changed_by_effects(&workspace, remembered, &restores)?;
    let of_works = remembered.is_of_works().then(|| remembered.clone());
    let undone = workspace.kernel.read(|snapshot| undone_effects(snapshot, remembered, look.until))?;
    let has_undone = undone.iter().any(|one| one.state == CompensationState::Done);
    let tree = TreeBack { workspace, restores, effects, of_works, settled: None };
    if look.force.files {
        return Ok(tree);
    }
    let left = tree.restores.last().and_then(|last| last.restored_id.as_ref());
    let around = tree.restores.first().zip(left).map(|(first, left)| [&first.safety_id, left]);
    if let Some(around) = around.filter(|_| look.course == Course::Undo) {
        dispatch_changes::require_branch_of_undo(&tree.workspace, &remembered.id, around)?;
    }
    tree.require_own(look).map_err(|error| tree.explained(remembered, has_undone, error))?;
    Ok(tree)
}

impl TreeBack<'_> {
    /// Errors: `file_conflict`, `foreign_commits`, `work_running` where the undo would remove what is not the rollback's.
    fn require_own(&self, look: Look<'_>) -> Result<()> {
        if self.is_as_left(look)? {
            return Ok(());
        }
        if let Some(report) = self.merge_back(look.only())? {
            return refuse_conflict(&report);
        }
        self.require_exact(look)
    }

    /// Whether the tree and git are as an exact undo of works left them, as far as it changed them: then they come back exactly.
    fn is_as_left(&self, look: Look<'_>) -> Result<bool> {
        if !self.of_works.as_ref().is_some_and(RollbackRecord::is_exact) {
            return Ok(false);
        }
        match self.require_exact(look) {
            // What others changed and set back is theirs: it is merged, too.
            Ok(()) => Ok(!ic_worktree::was_changed_since(&self.workspace, &self.restores)?),
            // What others changed since is no refusal: it is merged.
            Err(error) if matches!(error.code(), Code::FileConflict | Code::ForeignCommits) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Errors: those of [`TreeBack::require_own`], where each restore is undone as a whole.
    fn require_exact(&self, look: Look<'_>) -> Result<()> {
        // Conflicts with records of other runs come first: their hint also leads around what was merely changed.
        for at in 0..self.restores.len() {
            let report = self.undo_restore(at, look.only())?;
            refuse_conflict(&report).map_err(|error| self.with_moved_git(&report, look.watch, error))?;
        }
        require_untouched(&self.workspace, &self.restores, &self.effects, look.watch)?;
        for at in 0..self.effects.len() {
            self.effects[at].require_untouched(&self.workspace, self.not_yet(at))?;
            refuse_conflict(&self.undo_what_effects_changed(at, look.only())?)?;
        }
        Ok(())
    }

    /// Reverts what one attempt at the effects changed in the tree, once the restores and later attempts are undone.
    fn undo_what_effects_changed(
        &self,
        at: usize,
        Look { force, dry_run, watch, .. }: Look<'_>,
    ) -> Result<RestoreReport> {
        let changes = &self.effects[at];
        let request = RestoreRequest { dry_run, force, ..request(changes.before().as_str(), Strategy::FilesOnly) };
        let not_yet = if dry_run { self.not_yet(at) } else { NotYet::default() };
        ic_worktree::take_changes_back(&self.workspace, changes, not_yet, &request, watch)
    }

    /// What is undone before the attempt at the effects at this place.
    fn not_yet(&self, at: usize) -> NotYet<'_> {
        NotYet { restores: &self.restores, changes: &self.effects[at + 1..] }
    }

    /// Merges the work of an undo back into the tree: others may have changed its paths since it was undone. `None`: the run went
    /// back, or nothing of it can be merged.
    fn merge_back(&self, Look { course, force, dry_run, watch, .. }: Look<'_>) -> Result<Option<RestoreReport>> {
        let Some(one) = &self.of_works else { return Ok(None) };
        // A rollback that is aborted was never complete: only what it changed is reverted.
        let is_whole = course == Course::Undo;
        let did = dispatch_changes::Did { effects: &self.effects, restores: &self.restores };
        let Some((work, target)) = dispatch_changes::again(&self.workspace, one, is_whole, did)? else {
            return Ok(None);
        };
        let request = RestoreRequest {
            dry_run,
            force,
            beside_others: true,
            compares_all: false,
            ..request(target.as_str(), Strategy::FilesOnly)
        };
        ic_worktree::merge_back(&self.workspace, (work, &target), &request, watch).map(Some)
    }

    /// Undoes one restore, once the later ones are undone.
    fn undo_restore(&self, at: usize, Look { force, dry_run, watch, .. }: Look<'_>) -> Result<RestoreReport> {
        let restore = &self.restores[at];
        let request = RestoreRequest {
            dry_run,
            force,
            beside_others: self.of_works.as_ref().is_some_and(|one| !one.is_exact()),
            ..request(restore.safety_id.as_str(), restore.strategy)
        };
        // A dry run has not undone the later restores, so the check has to leave out what they changed.
        let not_yet = if dry_run { &self.restores[at + 1..] } else { &[] };
        ic_worktree::take_restore_back(&self.workspace, restore, not_yet, &request, watch).map_err(|error| match error
            .code()
        {
            Code::FileConflict | Code::ForeignCommits => manual_restore::whole(&restore.safety_id, error),
            _ => error,
        })
    }

    /// Reverts files and git's state to before the rollback, newest restore first. A path that could not be restored ends it: the last
    /// report names it.
    fn put_back(&self, look: Look<'_>, reports: &mut Vec<RestoreReport>) -> Result<()> {
        // This is decided again here: others may have written into the tree since the check.
        if !self.is_as_left(look)?
            && let Some(report) = self.merge_back(look)?
        {
            return self.with_git(report, look, reports);
        }
        // The safety checkpoint of each restore shows the tree as the restore before it left it, so the newest goes
        // first.
        for at in (0..self.restores.len()).rev() {
            let report = self.undo_restore(at, look)?;
            let is_whole = report.failed.is_empty();
            reports.push(report);
            if !is_whole {
                return Ok(());
            }
        }
        // Effects changed the tree before the restores did.
        for at in (0..self.effects.len()).rev() {
            // Asked again now that the later restores are undone: others may have written since the first check.
            if !look.dry_run && !look.force.files {
                self.effects[at].require_untouched(&self.workspace, NotYet::default())?;
            }
            reports.push(self.undo_what_effects_changed(at, look)?);
        }
        Ok(())
    }
}

fn request(checkpoint: &str, strategy: Strategy) -> RestoreRequest<'_> {
    RestoreRequest {
        which: Which::Id(checkpoint),
        strategy: Some(strategy),
        compares_all: true,
        ..RestoreRequest::default()
    }
}
