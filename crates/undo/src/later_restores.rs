//! Restores after a point that a restore to that point would revert, though they are not of the work after it: those by hand, and those that
//! undid or redid older work.

use std::ops::Range;
use std::path::Path;

use ic_base::{CheckpointId, Result, Seq};
use ic_checkpoint::restore::journal;
use ic_dispatch::dispatch;
use ic_kernel::journal::step_results::safety_of;
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_ledger::Snapshot;

use crate::dispatch_changes;

/// What a rollback restored in a tree, and when that was reverted.
struct Restoring {
    safeties: Vec<CheckpointId>,
    reverts: Vec<Range<Seq>>,
    /// Whether it is of work after the point alone.
    is_of_later_work: bool,
}

/// Whether any restore of a root after an event is not of work that began after it.
pub(super) fn is_any_of_others(snapshot: &Snapshot<'_>, root: &Path, since: Seq) -> Result<bool> {
    let mut restores = journal::finished(snapshot, root)?;
    restores.retain(|restore| restore.seq > since);
    // Most undos come after no restore, and need not read every rollback.
    if restores.is_empty() {
        return Ok(false);
    }
    let mut known = Vec::new();
    for one in table::all(snapshot)? {
        let all = steps::of_rollback(snapshot, &one.id)?;
        known.push(Restoring {
            safeties: all.iter().flat_map(safety_of).collect(),
            reverts: dispatch_changes::reverts(snapshot, &one)?,
            is_of_later_work: is_of_later_work(snapshot, &one, since)?,
        });
    }
    Ok(restores.iter().any(|restore| {
        let is_its = |one: &&Restoring| {
            one.safeties.contains(&restore.safety_id) || one.reverts.iter().any(|during| during.contains(&restore.seq))
        };
        // A restore of no rollback was made by hand.
        let mut of = known.iter().filter(is_its).peekable();
        of.peek().is_none() || !of.all(|one| one.is_of_later_work)
    }))
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
