//! Entries of the index that undone works left there: they go back with the files of the works, and come again with them.
//!
//! What goes back is decided once, and the journal names it before the index is changed. An entry that has one of the two values gets
//! the other, so the step can be repeated after its process died.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_checkpoint::git;
use ic_checkpoint::manifest::PathText;
use ic_kernel::journal::RollbackStep;
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::steps::{self, StepEvent};
use ic_worktree::{RestoreReport, Workspace};

use super::super::layer::Site;
use crate::dispatch_changes::git_around_ids;

/// The member of a tree step's detail that has the entries.
/// Takes the entries back that the undone works left, and names their paths in the report. `own`: the paths that the works changed;
/// `detail`: what the journal is to keep of the step, to which the entries are added.
///
/// Errors: `git_busy`, `git_failed`.
pub(super) fn take_back(
    site: &Site<'_, '_>,
    step: &RollbackStep,
    (workspace, own): (&Workspace<'_>, &BTreeSet<Vec<u8>>),
    report: &mut RestoreReport,
    detail: &mut StepDetail,
) -> Result<()> {
    // A step that is made again must not decide anew: the index has the result of the first attempt.
    let edits = if let Some(edits) = &step.detail.index {
        edits.clone()
    } else {
        // Those of paths that the works changed, and of which nothing of the works stays in the tree.
        let looks = git_around_ids(site.kernel, workspace, &site.covered.run, &site.covered.cut.works)?;
        // If no checkpoint shows the end of the work, there is nothing to compare, so its entries stay.
        let spans: Vec<_> = looks.into_iter().filter_map(|(before, after)| Some((before, after?))).collect();
        let skipped = report.plan.skipped.iter().map(|(path, _)| path);
        let stays: BTreeSet<&PathText> = report.parts_left.iter().chain(skipped).collect();
        let is_own = |path: &[u8]| own.contains(path) && !stays.iter().any(|stays| stays.0 == path);
        git::index_edits(&workspace.root, &workspace.objects, &spans, is_own)?
    };
    if edits.is_empty() {
        return Ok(());
    }
    report.index = edits.iter().map(|edit| edit.path.clone()).collect();
    let (Some(saga), Some(remembered)) = (site.saga, site.covered.remembered()) else { return Ok(()) };
    detail.index = Some(edits.clone());
    saga.write(|tx, now| steps::set(tx, now, &remembered.id, step.ord, StepEvent::Learns, Some(detail)))?;
    workspace.revert_entries(&edits, false)
}

/// The paths of the entries that [`make_again`] is to make again.
///
/// Errors: `git_failed`.
pub(super) fn coming_again(site: &Site<'_, '_>, workspace: &Workspace<'_>) -> Result<Vec<PathText>> {
    let Some(remembered) = site.covered.remembered() else { return Ok(Vec::new()) };
    let steps = site.kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    let edits = steps.into_iter().find_map(|step| step.detail.index);
    git::paths_as_undone(&workspace.root, &edits.unwrap_or_default())
}

/// Makes the entries again what the works had left.
///
/// Errors: `git_busy`, `git_failed`.
pub(super) fn make_again(site: &Site<'_, '_>, step: &RollbackStep) -> Result<()> {
    let edits = step.detail.index.as_ref().filter(|edits| !edits.is_empty() && !site.is_dry());
    let Some(edits) = edits else { return Ok(()) };
    let workspace = Workspace::of_run(site.kernel, &site.covered.run, site.settings)?;
    workspace.revert_entries(edits, true)
}
