//! Open runs that `@` does not mean while another is open: those of workflows that ended, stopped or failed, and those of sessions of
//! coding agents.

use std::path::Path;

use crate::owner::OwnerLock;
use ic_base::Result;
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_phase::run_reference::RunStanding;

use crate::dependents::Above;

/// How an open run stands: one of a workflow without a living executor is idle, and so is one that was made for a session. A run in the
/// middle of a rollback is not: it waits for a decision.
pub fn standing(above: &Above, store: &Path, snapshot: &Snapshot<'_>, run: &Run) -> Result<RunStanding> {
    if run.require_settled().is_err() {
        return Ok(RunStanding::Busy);
    }
    // A lock that cannot be looked at counts as held: a run that may be at work is not taken for idle.
    let is_idle = (above.is_of_session)(snapshot, &run.id)?
        || ((above.has_workflow)(snapshot, &run.id)? && OwnerLock::require_free(store, &run.id).is_ok());
    Ok(if is_idle { RunStanding::Idle } else { RunStanding::Busy })
}
