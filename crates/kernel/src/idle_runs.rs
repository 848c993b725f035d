//! Open runs that `@` does not mean while another is open: those of workflows that ended, stopped or failed, and those of sessions of
//! coding agents.

use std::path::Path;

use ic_base::Result;
use ic_effects::owner::OwnerLock;
use ic_ledger::Snapshot;
use ic_phase::Run;

use crate::dependents::Above;

/// Whether an open run belongs to a workflow without a living executor, or was made for a session. A run in the middle of a rollback is not
/// idle: it waits for a decision.
pub fn is_idle(above: &Above, store: &Path, snapshot: &Snapshot<'_>, run: &Run) -> Result<bool> {
    if (above.is_of_session)(snapshot, &run.id)? {
        return Ok(run.require_settled().is_ok());
    }
    let is_of_workflow = (above.has_workflow)(snapshot, &run.id)?;
    let is_settled = run.require_settled().is_ok();
    Ok(is_of_workflow && is_settled && OwnerLock::require_free(store, &run.id).is_ok())
}
