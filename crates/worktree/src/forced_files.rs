//! Files outside of the project that a rollback replaced by force. The journal of its step names what stood there, which a redo brings
//! back.

use ic_base::Result;
use ic_checkpoint::record;
use ic_kernel::journal::{LayerName, steps, table};
use ic_ledger::Snapshot;
use ic_ledger::events::Hash;

/// The contents that redos need, with their paths: of rollbacks that are as young as the oldest checkpoint that is kept.
pub(super) fn contents(snapshot: &Snapshot<'_>) -> Result<Vec<(String, Hash)>> {
    let oldest = record::oldest_kept(snapshot, 1)?;
    // Contents outside of the tree live as long as the oldest checkpoint that is kept. Without one, none is needed.
    let Some(since) = oldest.first().map(|oldest| oldest.created_at) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let is_meant = |one: &table::RollbackRecord| one.created_at >= since && one.layers.contains(&LayerName::Files);
    for one in table::all(snapshot)?.into_iter().filter(is_meant) {
        for step in steps::of_rollback(snapshot, &one.id)? {
            let forced = step.detail.outside_forced.into_iter();
            found.extend(forced.filter_map(|(path, standing)| Some((path, standing.content()?))));
        }
    }
    Ok(found)
}
