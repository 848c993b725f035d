//! The checkpoint up to which the changes after a point are counted.

use std::path::Path;

use ic_base::{DispatchId, Result, Seq};
use ic_checkpoint::record::{self, CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::journal::table;
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_session::call;

use super::list::ListedPoint;

/// The state in which the work after a point left the tree.
pub(super) enum ChangesEnd {
    /// The state that this checkpoint shows: later changes are not of this work.
    At(Box<CheckpointRecord>),
    /// The state at the point: no later checkpoint shows a change.
    AsItWas,
    /// It is not known: changes are counted up to the next point.
    Untold,
}

/// The state in which the work after a point left the tree. `from`: the tree at the point.
pub(super) fn end_of(snapshot: &Snapshot<'_>, point: &ListedPoint, from: &CheckpointRecord) -> Result<ChangesEnd> {
    let Some(id) = point.before.as_ref().filter(|_| matches!(point.kind, "prompt" | "dispatch")) else {
        return Ok(ChangesEnd::Untold);
    };
    let Some(work) = dispatch::find(snapshot, &DispatchId::from_ledger(id.clone()))? else {
        return Ok(ChangesEnd::Untold);
    };
    if let Some(own) = own_end(snapshot, &work)? {
        return Ok(ChangesEnd::At(Box::new(own)));
    }
    if call::told_by_calls(snapshot, std::iter::once(&work.id))?.is_empty() {
        return Ok(ChangesEnd::Untold);
    }
    // The work runs, was interrupted, or its client was closed: checkpoints were taken at its calls anyway.
    let last = call::last_change(snapshot, &work)?;
    let is_told = last.is_some() && !call::is_any_cut_off(snapshot, &work.id)?;
    // A search up to an event leaves that event out. The look at the end of a call may be that very event, so one is
    // added.
    let seen = match (&work.rolled_back_by, work.finished_seq) {
        // Changes after the end of its last call were made by a person.
        _ if is_told => record::newest_of_root_until(snapshot, &from.root, last.unwrap_or_default() + 1)?,
        (Some(by), _) => left_before(snapshot, &from.root, table::get(snapshot, by)?.seq)?,
        (None, Some(end)) => left_at(snapshot, &from.root, end)?,
        (None, None) => record::newest_look(snapshot, &from.root)?,
    };
    let seen = seen.filter(|seen| seen.seq > from.seq);
    Ok(seen.map_or(ChangesEnd::AsItWas, |seen| ChangesEnd::At(Box::new(seen))))
}

/// The checkpoint that was taken when work ended. That of a call can also come right before the end, if the work was interrupted in a later
/// call.
fn own_end(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<CheckpointRecord>> {
    let Some(end) = work.finished_seq else { return Ok(None) };
    let before = record::of_event(snapshot, end - 1)?;
    Ok(before.filter(|look| is_of_work(look) && !look.link.of_call))
}

/// The checkpoint that shows what work left that ended with the event `end` without a capture. Changes of a call without a reported end
/// belong to it, up to the next checkpoint.
fn left_at(snapshot: &Snapshot<'_>, root: &Path, end: Seq) -> Result<Option<CheckpointRecord>> {
    let last = record::newest_of_root_until(snapshot, root, end)?;
    match last {
        // A rollback had ended the work, and was undone since: what it replaced was captured right before.
        Some(last) if last.kind == CheckpointKind::Restored => record::newest_of_root_until(snapshot, root, last.seq),
        last => Ok(record::look_since(snapshot, root, end)?.or(last)),
    }
}

/// The checkpoint that shows the tree before a rollback that began with the event `seq`: a rollback captures what it replaces.
fn left_before(snapshot: &Snapshot<'_>, root: &Path, seq: Seq) -> Result<Option<CheckpointRecord>> {
    let replaced = record::look_since(snapshot, root, seq)?.filter(|look| look.kind == CheckpointKind::Safety);
    if replaced.is_some() { Ok(replaced) } else { record::newest_of_work_until(snapshot, root, seq) }
}

/// Whether work, and not a restore, left the tree in this state.
fn is_of_work(look: &CheckpointRecord) -> bool {
    matches!(look.kind, CheckpointKind::Manual | CheckpointKind::Auto)
}

/// The newest checkpoint of the run, if it was taken after this one.
pub(super) fn newest_of(
    snapshot: &Snapshot<'_>,
    run: &Run,
    after: &CheckpointRecord,
) -> Result<Option<CheckpointRecord>> {
    let link = CheckpointLink { run_id: Some(run.id.clone()), ..CheckpointLink::default() };
    let newest = record::latest_of_lineage(snapshot, &after.root, &link)?;
    Ok(newest.filter(|newest| newest.seq > after.seq))
}
