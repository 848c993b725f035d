//! Rollbacks of a workflow that were begun and not finished.

use ic_base::{Code, Diagnosis, Result};
use ic_kernel::journal::table as rollbacks;
use ic_ledger::Snapshot;
use ic_phase::{Run, RunStatus, point as points};

use crate::options::Overrides;

/// Whether a rollback of the workflow of this run was begun and not finished.
pub(crate) fn is_unfinished(run: &Run) -> bool {
    run.status == RunStatus::RollingBack
}

/// Errors: `not_finished` if a call names another point than the unfinished rollback: half of that rollback is done.
pub(crate) fn require_same_point(snapshot: &Snapshot<'_>, run: &Run, overrides: &Overrides) -> Result<()> {
    let Some(to) = &overrides.to else { return Ok(()) };
    let begun = match rollbacks::unfinished_of(snapshot, &run.id)? {
        Some(rollback) => points::checkpoint_at(snapshot, &run.id, rollback.cut_seq)?,
        // The undo of effects alone closed the run, and that goes to no point.
        None => None,
    };
    if begun.as_ref() == Some(to) {
        return Ok(());
    }
    Err(Diagnosis::new(Code::NotFinished, "A rollback of this workflow to another point is not finished.")
        .hint(format!("finish it first: ic workflow resume {} --yes", run.id.short()))
        .detail("run_id", run.id.as_str()))
}
