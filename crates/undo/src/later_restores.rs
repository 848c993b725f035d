//! Restores after a point that a restore to that point would revert, though they are not of the work after it: those by hand, and those that
//! undid or redid older work.

use std::path::Path;

use ic_base::{CheckpointId, Result, Seq};
use ic_checkpoint::restore::journal;
use ic_dispatch::dispatch;
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_ledger::Snapshot;

use crate::{events, manual_restores};

/// Whether any restore of a root after an event is not of work that began after it.
pub(super) fn is_any_of_others(snapshot: &Snapshot<'_>, root: &Path, since: Seq) -> Result<bool> {
    let mut restores = journal::finished(snapshot, root)?;
    restores.retain(|restore| restore.seq > since);
    // Most undos come after no restore, and need not read every rollback.
    if restores.is_empty() {
        return Ok(false);
    }
    if !manual_restores::between(snapshot, root, (since, Seq::MAX))?.is_empty() {
        return Ok(true);
    }
    for one in table::all(snapshot)? {
        // Its restores are of work that goes back to the point anyway.
        if is_of_later_work(snapshot, &one, since)? {
            continue;
        }
        let all = steps::of_rollback(snapshot, &one.id)?;
        let made: Vec<CheckpointId> = all.into_iter().flat_map(|step| step.detail.safety).collect();
        let reverts = events::reverts(snapshot, &one.run_id, one.seq, Some(&one.id))?;
        let is_its = |restore: &journal::RestoreRecord| {
            made.contains(&restore.safety_id) || reverts.iter().any(|revert| revert.during().contains(&restore.seq))
        };
        if restores.iter().any(is_its) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_of_later_work(snapshot: &Snapshot<'_>, one: &RollbackRecord, since: Seq) -> Result<bool> {
    if !one.is_of_works() {
        return Ok(one.cut_seq >= since);
    }
    for work in one.works() {
        if dispatch::get(snapshot, &work)?.place() < since {
            return Ok(false);
        }
    }
    Ok(true)
}
