//! The reference of a recorded point, and the checkpoint that shows the tree there.

use ic_base::{Result, Seq};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::point::{self, PointKind, PointRecord};

/// The checkpoint of the place whose cut is at `seq`: that of a point or of a move of the run, or the place itself.
pub fn checkpoint_at(snapshot: &Snapshot<'_>, run: &Run, seq: Seq) -> Result<Option<CheckpointRecord>> {
    if let Some(id) = point::checkpoint_at(snapshot, &run.id, seq)? {
        return record::get(snapshot, &id).map(Some);
    }
    if let Some(found) = record::of_advance(snapshot, seq)? {
        return Ok(Some(found));
    }
    // A session's run is made with its first prompt, in one transaction: the checkpoint before the one is also that before the other.
    let is_made_with_it = seq == run.seq && ic_session::is_own_run(snapshot, &run.id)?;
    let first = if is_made_with_it { point::of_run(snapshot, &run.id)?.into_iter().next() } else { None };
    match first.and_then(|first| first.checkpoint_id) {
        Some(id) => record::get(snapshot, &id).map(Some),
        None => record::of_event(snapshot, seq),
    }
}

/// The reference that names a point in commands.
pub fn reference(point: &PointRecord) -> String {
    let kind = point.kind.as_str();
    let id = || point.name.get(point.name.len().saturating_sub(8)..).unwrap_or(&point.name);
    match point.kind {
        PointKind::Step if point.attempt > 1 => format!("{kind}:{}#{}", point.name, point.attempt),
        // Ids are shown by their end everywhere.
        PointKind::Dispatch | PointKind::Prompt => format!("{kind}:{}", id()),
        PointKind::Step | PointKind::Guard => format!("{kind}:{}", point.name),
    }
}
