//! Whether all that a restore to a point would change was made by some works alone: only then may the tree go back as a whole.

use std::collections::HashSet;

use ic_base::{DispatchId, Result, Seq};
use ic_checkpoint::diff::{self, Finder};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::RestoreStep;
use ic_dispatch::Dispatch;
use ic_session::attribution::{Attribution, Window};
use ic_worktree::Workspace;

use super::unsure_changes::is_changed_since;

/// Whether each of these steps reverts what these works made since `target`, or later work whose undo stands. What changed while no call of
/// theirs ran, in a call of others too, or around a call without an end, may be of others.
pub(super) fn is_all_of(
    workspace: &Workspace<'_>,
    works: &[DispatchId],
    (target, steps): (&CheckpointRecord, &[RestoreStep]),
) -> Result<bool> {
    let attribution = workspace
        .kernel
        .read(|snapshot| Attribution::between(snapshot, &target.root, (target.seq, Seq::MAX), target.created_at))?;
    let is_theirs =
        |one: &Dispatch| works.contains(&one.id) || (one.rolled_back_by.is_some() && one.place() >= target.seq);
    let is_sure = |window: &Window<'_>, path: &[u8]| {
        // The makers are asked for, and not the owners: what changed between two calls of the work may be a person's.
        let makers = window.makers(path);
        !makers.is_empty() && makers.iter().all(|one| is_theirs(one)) && !window.is_unsure(path)
    };
    // A path counts that the restore changes, or that these works changed: what others made of it between their calls may be gone.
    let mut known: HashSet<Vec<u8>> = steps.iter().map(|step| step.path.0.clone()).collect();
    let mut of_others: HashSet<Vec<u8>> = HashSet::new();
    for window in attribution.windows().filter(|window| window.from.tree != window.to.tree) {
        diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
            if difference.change().is_some() {
                let is_sure = is_sure(&window, &difference.path);
                if is_sure { &mut known } else { &mut of_others }.insert(difference.path);
            }
            Ok(())
        })?;
    }
    if !known.is_disjoint(&of_others) {
        return Ok(false);
    }
    // What no checkpoint shows yet.
    if let Some((last, now)) = attribution.until_now(workspace.kernel.context.now()) {
        let window = attribution.window(last, &now);
        let mut last = Finder::new(&workspace.objects, &last.tree)?;
        for step in steps.iter().filter(|step| !step.is_of_directory()) {
            if is_changed_since(&mut last, step)? && !is_sure(&window, &step.path.0) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
