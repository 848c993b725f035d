//! What became of tasks.

use ic_base::{DispatchId, RollbackId, RunId};

use super::registry::{
    CompensationReport, RollbackOutcome, RollbackReport, TaskError, TaskId, TaskResult, TaskRollback,
};

/// What became of the tasks as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Every task ended well.
    Completed,
    /// A task failed, and what was done is undone.
    RolledBack,
    /// A task failed, and something could not be undone; it can be tried again.
    RollingBack,
}

/// How far a task came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// Its turn did not come.
    NotStarted,
    /// It ended well.
    Finished(TaskResult),
    /// It failed; [`WorkflowReport::failure`] says why.
    Failed,
}

/// A task, as far as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// The task.
    pub task_id: TaskId,
    /// How far it came.
    pub outcome: TaskOutcome,
    /// Its dispatch, if there is a ledger and it was begun.
    pub dispatch_id: Option<DispatchId>,
}

/// What became of all tasks.
#[derive(Debug)]
pub struct WorkflowReport {
    /// The run, if there is a ledger.
    pub run_id: Option<RunId>,
    /// [`Status::Completed`]; [`Status::RolledBack`] after a failure; [`Status::RollingBack`] if something could not be undone.
    pub status: Status,
    /// The tasks, in the order in which they were added.
    pub tasks: Vec<TaskReport>,
    /// How many of the tasks had declared what their undo is, before the first was executed.
    pub coverage: CompensationReport,
    /// The task that failed, and why.
    pub failure: Option<(TaskId, TaskError)>,
    /// What was undone, if one failed.
    pub rollback: Option<RollbackReport>,
    /// The rollback in the ledger, if it came to that.
    pub rollback_id: Option<RollbackId>,
}

/// Why it was rolled back and what came of it, on one line: the ledger keeps no other trace of undo functions.
pub(super) fn story(cause: &str, rollback: &RollbackReport) -> String {
    let list = |what: &str, tasks: Vec<&str>| match tasks.as_slice() {
        [] => String::new(),
        some => format!("; {what}: {}", some.join(", ")),
    };
    let undone = list("undone", rollback.rolled_back().map(TaskId::as_str).collect());
    let skipped = list("not undone, as declared", rollback.skipped().map(TaskId::as_str).collect());
    let failed: Vec<String> = rollback.results.iter().filter_map(failure).collect();
    let failed = list("could not be undone", failed.iter().map(String::as_str).collect());
    let pending = list("left", rollback.pending().map(TaskId::as_str).collect());
    format!("{cause}{undone}{skipped}{failed}{pending}")
}

fn failure(result: &TaskRollback) -> Option<String> {
    match &result.outcome {
        RollbackOutcome::Failed { error, .. } => Some(format!("{} ({error})", result.task_id)),
        _ => None,
    }
}
