//! The restores of a tree that a person or a script asked for: those that no rollback made, and none of its undo or abort.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use ic_base::{CheckpointId, Result, RunId, Seq};
use ic_checkpoint::record;
use ic_checkpoint::restore::journal::{self, RestoreKind, RestoreRecord};
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_kernel::journal::{LayerName, steps};
use ic_ledger::Snapshot;
use ic_phase::run;

use crate::events;

/// A restore, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManualRestore {
    /// The restore itself, which is finished.
    pub(crate) restore: RestoreRecord,
    /// Whether it was undone and not made again.
    pub(crate) is_undone: bool,
}

/// The restores of a root between two events, oldest first.
pub(crate) fn between(snapshot: &Snapshot<'_>, root: &Path, (after, before): (Seq, Seq)) -> Result<Vec<ManualRestore>> {
    let all = journal::finished(snapshot, root)?;
    let mut meant: Vec<&RestoreRecord> = all.iter().filter(|one| one.seq > after && one.seq < before).collect();
    if !meant.is_empty() {
        let rollbacks = table::all(snapshot)?;
        let made = made_by(snapshot, &rollbacks)?;
        meant.retain(|one| !made.contains(&one.safety_id));
        leave_reverts(snapshot, root, &rollbacks, &mut meant)?;
    }
    Ok(meant.into_iter().map(|one| described(one, &all)).collect())
}

/// The restore with this safety checkpoint, if no rollback made it.
pub(crate) fn with_safety(
    snapshot: &Snapshot<'_>,
    root: &Path,
    safety: &CheckpointId,
) -> Result<Option<ManualRestore>> {
    let all = journal::finished(snapshot, root)?;
    let Some(found) = all.iter().find(|one| one.safety_id == *safety) else { return Ok(None) };
    Ok(between(snapshot, root, (found.seq - 1, found.seq + 1))?.pop())
}

fn described(restore: &RestoreRecord, all: &[RestoreRecord]) -> ManualRestore {
    // An undo takes its restore off this stack, and a redo puts it there again.
    let (standing, _) = journal::stacks(all);
    let is_undone = restore.kind == RestoreKind::Restore && !standing.iter().any(|one| one.id == restore.id);
    ManualRestore { restore: restore.clone(), is_undone }
}

/// Whether a text names, by its safety checkpoint, a restore that no rollback made.
pub(crate) fn is_named(snapshot: &Snapshot<'_>, root: &Path, text: &str) -> Result<bool> {
    let id = text.strip_prefix("restore:").unwrap_or(text);
    // What cannot be looked up here is refused by the lookup that follows.
    let Ok(look) = record::resolve(snapshot, id) else { return Ok(false) };
    Ok(with_safety(snapshot, root, &look.id)?.is_some())
}

/// The safety checkpoints of the restores that rollbacks made.
fn made_by(snapshot: &Snapshot<'_>, rollbacks: &[RollbackRecord]) -> Result<HashSet<CheckpointId>> {
    let mut made = HashSet::new();
    let has_tree =
        |one: &&RollbackRecord| one.layers.iter().any(|layer| matches!(layer, LayerName::Files | LayerName::Git));
    for one in rollbacks.iter().filter(has_tree) {
        made.extend(steps::of_rollback(snapshot, &one.id)?.into_iter().flat_map(|step| step.detail.safety));
    }
    Ok(made)
}

/// Leaves out the restores that were made while a rollback of this root was undone or aborted.
fn leave_reverts(
    snapshot: &Snapshot<'_>,
    root: &Path,
    rollbacks: &[RollbackRecord],
    meant: &mut Vec<&RestoreRecord>,
) -> Result<()> {
    let mut runs: BTreeMap<RunId, Seq> = BTreeMap::new();
    for one in rollbacks {
        // They come oldest first. No restore from before the first rollback of a run can revert one of that run.
        runs.entry(one.run_id.clone()).or_insert(one.seq);
    }
    for (id, first) in runs {
        let Some(to) = meant.last().map(|one| one.seq) else { return Ok(()) };
        if to < first || ic_ledger::project_root(&run::get(snapshot, &id)?.project_dir) != root {
            continue;
        }
        // Events are read from the first rollback on: a revert that began before the first of these restores may still
        // be under way.
        let reverts = events::reverts(snapshot, &id, first, None)?;
        meant.retain(|one| !reverts.iter().any(|revert| revert.during().contains(&one.seq)));
    }
    Ok(())
}
