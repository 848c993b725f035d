//! Open runs in which nobody works: those of workflows that came to their end, stopped or failed.

use std::path::Path;

use ic_base::Result;
use ic_phase::Run;
use ic_saga::owner::OwnerLock;
use ic_store::Snapshot;

use crate::above::{Above, WorkflowState};

/// Whether an open run is that of a workflow without a living executor. One in the middle of a rollback is not idle: it waits for a
/// decision.
pub fn is_idle(above: &Above, store: &Path, snapshot: &Snapshot<'_>, run: &Run) -> Result<bool> {
    let is_of_workflow = (above.workflow_state)(snapshot, &run.id)? == Some(WorkflowState::Other);
    let is_settled = run.require_settled().is_ok();
    Ok(is_of_workflow && is_settled && OwnerLock::require_free(store, &run.id).is_ok())
}
