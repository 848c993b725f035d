//! The answers of this crate to questions of the floors below.

use ic_base::{CheckpointId, Result, RunId};
use ic_dispatch::process::ProcessIdentity;
use ic_kernel::{Above, StepLeft};
use ic_ledger::Snapshot;
use ic_phase::Run;

use crate::table::{self, WorkflowStepState};

/// The answers of this crate, for a kernel whose runs may be of workflows.
pub const ABOVE: Above =
    Above { has_workflow, step_workers, steps_left, is_of_session: |_, _| Ok(false), needed_checkpoints };

fn has_workflow(snapshot: &Snapshot<'_>, run: &RunId) -> Result<bool> {
    // No column of the row is read, because this is asked in every call that names no run.
    let sql = "SELECT 1 FROM workflows WHERE run_id = $1";
    Ok(snapshot.query_opt(sql, &[&run.as_str()], |_| Ok(()))?.is_some())
}

fn step_workers(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<(String, ProcessIdentity)>> {
    // The rows of every epoch count: a row keeps its process until an executor records that the attempt has ended.
    let sql = "SELECT step, child FROM workflow_steps WHERE run_id = $1 AND child IS NOT NULL ORDER BY epoch, step";
    snapshot.query_all(sql, &[&run.as_str()], |row| {
        let child = row.parse(1, "workflow_steps", |text| serde_json::from_str(text).ok())?;
        Ok((row.get(0)?, child))
    })
}

fn steps_left(snapshot: &Snapshot<'_>, run: &Run) -> Result<Vec<StepLeft>> {
    let Some(workflow) = table::find(snapshot, &run.id)? else { return Ok(Vec::new()) };
    let standing = table::steps(snapshot, &run.id, run.epoch)?;
    let is_done = |step: &str| standing.iter().any(|row| row.step == step && row.state == WorkflowStepState::Succeeded);
    let left = workflow.parsed()?.steps.into_iter().filter(|step| !is_done(&step.id));
    Ok(left.map(|step| StepLeft { name: step.id, phase: step.phase }).collect())
}

/// The checkpoints from before the steps of unfinished workflows, except steps that were rolled back.
fn needed_checkpoints(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointId>> {
    snapshot.query_all(
        "SELECT s.checkpoint_id FROM workflow_steps s JOIN runs r ON r.id = s.run_id \
         JOIN dispatches d ON d.id = s.dispatch_id \
         WHERE r.status IN ('active', 'rolling_back') AND d.rolled_back_by IS NULL AND s.checkpoint_id IS NOT NULL",
        &[],
        |row| row.get(0).map(CheckpointId::from_ledger),
    )
}
