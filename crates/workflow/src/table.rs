//! The tables `workflows` and `workflow_steps`.
//!
//! ```text
//!   pending ──▶ running ──▶ succeeded
//!     │            ├──────▶ failed ────────▶ running (a retry, or resume)
//!     │            └──────▶ interrupted ───▶ running (resume)
//!     └──▶ skipped: something that it needs failed
//! ```
//!
//! A step is `running` in the transaction that arms its undo, before its command starts. An executor that died leaves it so; the next
//! executor ends the process that the row names before it tries the step again.
//!
//! Compatibility: a workflow is resumed with the definition and the options in its row. The run says whether it is being rolled back; the
//! marks on the work of its steps say whether it was. An unknown word in a row is `corrupt`.

mod attempts;

use std::path::{Path, PathBuf};

use ic_base::mask::mask_optional;
use ic_base::{CheckpointId, Code, CompensationId, Diagnosis, DispatchId, Result, RunId, Timestamp};
use ic_dispatch::process::ProcessIdentity;
use ic_ledger::{LedgerRow, Snapshot, Transaction, path_bytes};
use serde::{Deserialize, Serialize};

use crate::definition::{Definition, StepFailurePolicy, Strategy};
pub(crate) use attempts::{Tried, tried};

ic_base::words! {
    /// How far a workflow is.
    pub enum WorkflowRowState {
        /// It runs, or its executor died.
        Running = "running",
        /// A step failed or it was interrupted, and it can be resumed.
        Stopped = "stopped",
        /// It ended without the steps that failed.
        Failed = "failed",
        /// Every step succeeded, and the run is at its end.
        Completed = "completed",
    }
}

ic_base::words! {
    /// How far a step is.
    pub enum WorkflowStepState {
        /// No attempt was begun.
        Pending = "pending",
        /// An attempt runs, or its executor died.
        Running = "running",
        /// Its command ended with exit code 0.
        Succeeded = "succeeded",
        /// Its last attempt failed.
        Failed = "failed",
        /// It was ended by an interruption or a crash.
        Interrupted = "interrupted",
        /// A step that it needs failed.
        Skipped = "skipped",
    }
}

/// The decisions when the workflow was started, as JSON in its row. A word that is not known makes the row `corrupt`: a guess at its
/// meaning would make a rollback restore more or less than was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowOptions {
    /// What a failed step leads to; `None`: neither call nor file decided it.
    pub on_failure: Option<StepFailurePolicy>,
    /// The part of the tree that a rollback restores.
    pub strategy: Strategy,
    /// The number of steps that may run at once.
    pub jobs: usize,
}

/// A row of `workflows`: a workflow that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The run that it is.
    pub run_id: RunId,
    /// The name in its file.
    pub name: String,
    /// The text of its file when it was started.
    pub definition: String,
    /// The decisions when it was started or last resumed.
    pub options: WorkflowOptions,
    /// How far it is.
    pub state: WorkflowRowState,
    /// The step that failed; `None`: none did, or it was resumed since.
    pub failed_step: Option<String>,
    /// The reason of that failure, masked.
    pub error: Option<String>,
}

impl Workflow {
    /// The definition in its file. Errors: `invalid_workflow` if this version cannot parse it any longer.
    pub(crate) fn parsed(&self) -> Result<Definition> {
        Definition::parse(self.definition.as_bytes(), Path::new(&self.name))
    }

    fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        Ok(Self {
            run_id: RunId::from_ledger(row.get(0)?),
            name: row.get(1)?,
            definition: row.get(2)?,
            options: row.parse(3, "workflows", |text| serde_json::from_str(text).ok())?,
            state: row.parse(4, "workflows", WorkflowRowState::parse)?,
            failed_step: row.get(5)?,
            error: row.get(6)?,
        })
    }
}

/// A row of `workflow_steps`: a step that was begun, or is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRow {
    /// The name of the step.
    pub step: String,
    /// How far it is.
    pub state: WorkflowStepState,
    /// Its place in the order in which steps began, from 1.
    pub started: i64,
    /// The dispatch that is its work.
    pub dispatch_id: Option<DispatchId>,
    /// The checkpoint of the tree from before it.
    pub checkpoint_id: Option<CheckpointId>,
    /// The compensation that undoes its effect; `None`: its file declares none.
    pub compensation_id: Option<CompensationId>,
    /// The number of attempts that were begun.
    pub attempts: i64,
    /// The exit code of its last attempt, if that ended by itself.
    pub exit_code: Option<i64>,
    /// Why its last attempt failed, masked.
    pub error: Option<String>,
    /// The duration of the last attempt, in milliseconds.
    pub duration_ms: Option<i64>,
    /// The file with its output.
    pub log: Option<PathBuf>,
    /// The commit that was checked out when it began.
    pub head: Option<String>,
    /// The process of the present attempt.
    pub child: Option<ProcessIdentity>,
}

impl StepRow {
    /// Whether an attempt runs, or its executor died in it.
    pub(crate) fn is_running(&self) -> bool {
        self.state == WorkflowStepState::Running
    }

    /// The row of a step that was not begun.
    pub(crate) fn pending(step: &str) -> Self {
        Self {
            step: step.to_owned(),
            state: WorkflowStepState::Pending,
            started: 0,
            dispatch_id: None,
            checkpoint_id: None,
            compensation_id: None,
            attempts: 0,
            exit_code: None,
            error: None,
            duration_ms: None,
            log: None,
            head: None,
            child: None,
        }
    }

    fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        // `parse` names table and row in its error, and takes no NULL.
        let child = match row.get::<Option<String>>(12)? {
            Some(_) => Some(row.parse(12, "workflow_steps", |text| serde_json::from_str(text).ok())?),
            None => None,
        };
        Ok(Self {
            step: row.get(0)?,
            state: row.parse(1, "workflow_steps", WorkflowStepState::parse)?,
            started: row.get(2)?,
            dispatch_id: row.get::<Option<String>>(3)?.map(DispatchId::from_ledger),
            checkpoint_id: row.get::<Option<String>>(4)?.map(CheckpointId::from_ledger),
            compensation_id: row.get::<Option<String>>(5)?.map(CompensationId::from_ledger),
            attempts: row.get(6)?,
            exit_code: row.get(7)?,
            error: row.get(8)?,
            duration_ms: row.get(9)?,
            log: row.optional_path(10)?,
            head: row.get(11)?,
            child,
        })
    }
}

/// Records a workflow as running.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &RunId,
    name: &str,
    definition: &str,
    options: &WorkflowOptions,
) -> Result<()> {
    tx.execute_one(
        "INSERT INTO workflows (run_id, name, definition, options, state, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, 'running', $5, $5)",
        &[&run.as_str(), &name, &definition, &to_text(options)?, &now.millis()],
    )
}

/// The workflow of a run. Errors: `no_workflow` if the run is none.
pub(crate) fn get(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Workflow> {
    find(snapshot, run)?.ok_or_else(|| {
        Diagnosis::new(Code::NoWorkflow, format!("The run {} was not started by a workflow.", run.short()))
            .hint("start one: ic workflow run FILE")
            .detail("run_id", run.as_str())
    })
}

/// The workflow of a run, if it is one.
pub fn find(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Option<Workflow>> {
    snapshot.query_opt(
        "SELECT run_id, name, definition, options, state, failed_step, error FROM workflows WHERE run_id = $1",
        &[&run.as_str()],
        Workflow::from_row,
    )
}

/// The run of the workflow that was started last in this project directory.
pub(crate) fn last_of_project(snapshot: &Snapshot<'_>, directory: &Path) -> Result<Option<RunId>> {
    snapshot.query_opt(
        "SELECT w.run_id FROM runs r JOIN workflows w ON w.run_id = r.id WHERE r.project_dir = $1 \
         ORDER BY r.seq DESC LIMIT 1",
        &[&path_bytes(directory)],
        |row| Ok(RunId::from_ledger(row.get(0)?)),
    )
}

/// A failure of a workflow: the step, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepFailure {
    pub(crate) step: String,
    pub(crate) error: String,
}

/// Records the state of a workflow.
pub(crate) fn set_state(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &RunId,
    state: WorkflowRowState,
    failed: Option<&StepFailure>,
) -> Result<()> {
    let step = failed.map(|failed| failed.step.as_str());
    let error = mask_optional(failed.map(|failed| failed.error.as_str()));
    tx.execute_one(
        "UPDATE workflows SET state = $1, failed_step = $2, error = $3, updated_at = $4 WHERE run_id = $5",
        &[&state.as_str(), &step, &error.as_deref(), &now.millis(), &run.as_str()],
    )
}

/// Records the options of a later call.
pub(crate) fn set_options(tx: &Transaction<'_>, run: &RunId, options: &WorkflowOptions) -> Result<()> {
    tx.execute_one("UPDATE workflows SET options = $1 WHERE run_id = $2", &[&to_text(options)?, &run.as_str()])
}

/// The steps that stand in an epoch, in the order of beginning: those of that epoch, and those that ended in an earlier one and that no
/// rollback undid.
pub(crate) fn steps(snapshot: &Snapshot<'_>, run: &RunId, epoch: i64) -> Result<Vec<StepRow>> {
    // This selects the row of the newest epoch in which each step stands. A row of this epoch stands in any state. An
    // older one stands if its step ended, and no rollback marked its dispatch.
    let mut steps = snapshot.query_all(
        "SELECT s.step, s.state, s.started, s.dispatch_id, s.checkpoint_id, s.compensation_id, s.attempts, s.exit_code, \
         s.error, s.duration_ms, s.log, s.head, s.child FROM workflow_steps s WHERE s.run_id = $1 AND s.epoch = \
         (SELECT max(l.epoch) FROM workflow_steps l LEFT JOIN dispatches d ON d.id = l.dispatch_id \
          WHERE l.run_id = s.run_id AND l.step = s.step AND (l.epoch = $2 OR \
          (l.epoch < $2 AND l.state IN ('succeeded', 'failed', 'interrupted') AND d.id IS NOT NULL AND d.rolled_back_by IS NULL)))",
        &[&run.as_str(), &epoch],
        StepRow::from_row,
    )?;
    // Sorted here: the rows come from several epochs, and no index has them in this order.
    steps.sort_by_key(|row| row.started);
    Ok(steps)
}

/// The first dispatch of a step that stands in an epoch, if it was begun: an undone rollback left an earlier one standing.
pub(crate) fn first_dispatch(
    snapshot: &Snapshot<'_>,
    run: &RunId,
    epoch: i64,
    step: &str,
) -> Result<Option<DispatchId>> {
    snapshot.query_opt(
        "SELECT id FROM dispatches WHERE run_id = $1 AND name = $2 AND (epoch = $3 OR \
         (epoch < $3 AND rolled_back_by IS NULL)) ORDER BY seq LIMIT 1",
        &[&run.as_str(), &step, &epoch],
        |row| row.get(0).map(DispatchId::from_ledger),
    )
}

/// Writes the whole row of a step, and returns its place in the order of beginning, which it got when it was first written.
pub(crate) fn put_step(tx: &Transaction<'_>, now: Timestamp, run: &RunId, epoch: i64, row: &StepRow) -> Result<i64> {
    let child = row.child.as_ref().map(to_text).transpose()?;
    let error = mask_optional(row.error.as_deref());
    // A step keeps the place that it had when it first began, so `started` is not in the UPDATE. Places are counted over
    // all epochs, because steps of several epochs may stand together.
    tx.execute_one(
        "INSERT INTO workflow_steps (run_id, epoch, step, state, started, dispatch_id, checkpoint_id, compensation_id, \
         attempts, exit_code, error, duration_ms, log, head, child, updated_at) \
         VALUES ($1, $2, $3, $4, (SELECT coalesce(max(started), 0) + 1 FROM workflow_steps WHERE run_id = $1), \
         $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
         ON CONFLICT (run_id, epoch, step) DO UPDATE SET state = excluded.state, dispatch_id = excluded.dispatch_id, \
         checkpoint_id = excluded.checkpoint_id, compensation_id = excluded.compensation_id, \
         attempts = excluded.attempts, exit_code = excluded.exit_code, error = excluded.error, \
         duration_ms = excluded.duration_ms, log = excluded.log, head = excluded.head, child = excluded.child, updated_at = excluded.updated_at",
        &[
            &run.as_str(),
            &epoch,
            &row.step,
            &row.state.as_str(),
            &row.dispatch_id.as_ref().map(DispatchId::as_str),
            &row.checkpoint_id.as_ref().map(CheckpointId::as_str),
            &row.compensation_id.as_ref().map(CompensationId::as_str),
            &row.attempts,
            &row.exit_code,
            &error.as_deref(),
            &row.duration_ms,
            &row.log.as_deref().map(path_bytes),
            &row.head,
            &child,
            &now.millis(),
        ],
    )?;
    let sql = "SELECT started FROM workflow_steps WHERE run_id = $1 AND epoch = $2 AND step = $3";
    let started = tx.query_opt(sql, &[&run.as_str(), &epoch, &row.step], |row| row.get(0))?;
    started.ok_or_else(|| Diagnosis::new(Code::Internal, "A step that was written is not there."))
}

fn to_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("A workflow cannot be written: {e}.")))
}
