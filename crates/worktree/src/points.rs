//! Recording a point of a run with what was seen there.

use ic_base::{CheckpointId, Result, Timestamp};
use ic_ledger::Transaction;
use ic_phase::Run;
use ic_phase::point::{self, NewPoint};

use crate::capture::Shot;
use crate::database_mark::Marked;

/// Records a point of a run, whose event is the first of the transaction, with what was seen there: the tree, if it was captured, and the
/// mark of the state database.
pub(super) fn record_point(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &Run,
    new: &NewPoint<'_>,
    shot: Option<&Shot>,
    marked: &Marked,
) -> Result<()> {
    // The event comes first, so that all that is recorded with the point has a higher seq. The row comes last,
    // because it refers to the row of the checkpoint.
    let seq = point::announce(tx, now, run, new)?;
    if let Some(shot) = shot {
        shot.record(tx, now, Some(run.epoch))?;
    }
    marked.record(tx, seq, &run.id)?;
    point::insert(tx, now, run, new, seq, shot.map(Shot::id))
}

/// As [`record_point`], with a checkpoint that was taken earlier.
pub(super) fn record_point_at(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &Run,
    new: &NewPoint<'_>,
    look: &CheckpointId,
    marked: &Marked,
) -> Result<()> {
    let seq = point::announce(tx, now, run, new)?;
    marked.record(tx, seq, &run.id)?;
    point::insert(tx, now, run, new, seq, Some(look))
}
