//! Finding the cut: the last move that crossed the target (product.md, "The cut").

use std::ops::ControlFlow;

use ic_base::{Result, Seq};
use ic_ledger::Snapshot;
use ic_phase::Run;

/// The seq of the last advance or override that crossed `target`; the run's creation for the first phase when the
/// target is included. `None` if the run never crossed it. Skips that were walked past cross too; rollbacks never do.
pub(crate) fn find(snapshot: &Snapshot<'_>, run: &Run, target: &str, include_target: bool) -> Result<Option<Seq>> {
    // No move leads into the first phase: what was done in it begins with the run itself.
    if include_target && target == run.chain.first() {
        return Ok(Some(run.seq));
    }
    let mut cut = None;
    // The search begins at the newest event, and the first hit ends it. A run that was rolled back crosses the same
    // phase again, and only what it did since the last time goes back.
    ic_ledger::events::each_crossing_newest_first(snapshot, &run.id, |event| {
        if let (Some(from), Some(to)) = (&event.from, &event.to)
            && run.chain.crosses(from, to, target, include_target)
        {
            cut = Some(event.seq);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(cut)
}
