//! Open runs in which nobody works: those of workflows that came to their end, stopped or failed.

use ic_base::Result;
use ic_phase::Run;
use ic_saga::owner::OwnerLock;
use ic_store::Snapshot;

/// Whether an open run is that of a workflow without a living executor. One in the middle of a rollback is not idle: it waits for a
/// decision.
pub fn is_idle(store: &std::path::Path, snapshot: &Snapshot<'_>, run: &Run) -> Result<bool> {
    let sql = "SELECT 1 FROM workflows WHERE run_id = $1 AND state <> 'rolling_back'";
    let is_of_workflow = snapshot.query_opt(sql, &[&run.id.as_str()], |_| Ok(()))?.is_some();
    let is_settled = run.require_settled().is_ok();
    Ok(is_of_workflow && is_settled && OwnerLock::require_free(store, &run.id).is_ok())
}
