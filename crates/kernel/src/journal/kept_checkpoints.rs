//! The checkpoints and contents that the steps of rollbacks keep, so that they can be undone or aborted.

use ic_base::{CheckpointId, Result};
use ic_checkpoint::record;
use ic_ledger::Snapshot;
use ic_ledger::events::Hash;

use crate::journal::layer::LayerName;
use crate::journal::steps::{self, RollbackStep};
use crate::journal::table::{self, RollbackRecord, RollbackStatus};

/// The checkpoints that an undo or abort needs: of rollbacks that are not finished, of those that are done in runs that are not, and of
/// steps that an undo or abort skipped.
pub fn needed_checkpoints(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointId>> {
    let mut needed = Vec::new();
    for step in steps::of_ways_back(snapshot)? {
        needed.extend(step.detail.safety);
        needed.extend(step.detail.goes.into_iter().flat_map(|(before, after)| [Some(before), after]).flatten());
    }
    Ok(needed)
}

/// The contents that redos need of files outside of the project that were replaced by force, with their paths: of rollbacks that are as
/// young as the oldest checkpoint that is kept.
pub fn needed_contents(snapshot: &Snapshot<'_>) -> Result<Vec<(String, Hash)>> {
    let oldest = record::oldest_kept(snapshot, 1)?;
    // Contents outside of the tree live as long as the oldest checkpoint that is kept. Without one, none is needed.
    let Some(since) = oldest.first().map(|oldest| oldest.created_at) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let is_meant = |one: &RollbackRecord| one.created_at >= since && one.layers.contains(&LayerName::Files);
    for one in table::all(snapshot)?.into_iter().filter(is_meant) {
        for step in steps::of_rollback(snapshot, &one.id)? {
            let forced = step.detail.outside_forced.into_iter();
            found.extend(forced.filter_map(|(path, standing)| Some((path, standing.content()?))));
        }
    }
    Ok(found)
}

/// The rollback that was undone or aborted and restored the tree to this checkpoint, from before it undid its effects.
pub fn that_left_effects(snapshot: &Snapshot<'_>, before: &CheckpointId) -> Result<Option<RollbackRecord>> {
    let is_over = |one: &RollbackRecord| matches!(one.status, RollbackStatus::Undone | RollbackStatus::Aborted);
    for remembered in table::all(snapshot)?.into_iter().rev().filter(is_over) {
        let mut goes = steps::of_rollback(snapshot, &remembered.id)?.into_iter().flat_map(|step| step.detail.goes);
        if goes.any(|(own, _)| own == *before) {
            return Ok(Some(remembered));
        }
    }
    Ok(None)
}

/// The rollback that made a restore, if it took back more than the tree: one that stands, or with `stands` false one that was undone or
/// aborted. `safety`: what that restore had replaced.
pub fn that_restored(snapshot: &Snapshot<'_>, safety: &CheckpointId, stands: bool) -> Result<Option<RollbackRecord>> {
    let is_meant = |step: &RollbackStep| step.detail.safety.contains(safety);
    let is_asked_for = |one: &RollbackRecord| match one.status {
        RollbackStatus::Done => stands,
        RollbackStatus::Undone | RollbackStatus::Aborted => !stands,
        RollbackStatus::InProgress | RollbackStatus::Stopped => false,
    };
    for remembered in table::all(snapshot)?.into_iter().rev().filter(is_asked_for) {
        if steps::of_rollback(snapshot, &remembered.id)?.iter().any(is_meant) {
            return Ok(Some(remembered));
        }
    }
    Ok(None)
}
