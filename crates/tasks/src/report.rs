//! The outcome of tasks.

use ic_base::{DispatchId, RollbackId, RunId};

use super::registry::{
    CompensationReport, RollbackOutcome, RollbackReport, TaskError, TaskId, TaskResult, TaskRollback,
};

/// The outcome of all tasks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Every task succeeded, and nothing was undone.
    Completed,
    /// A task failed, and everything was undone.
    RolledBack,
    /// A task failed, and something could not be undone; that can be tried again.
    RollingBack,
}

/// The outcome of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// It was not executed, because another one failed before.
    NotStarted,
    /// It succeeded: it did its work, or skipped it.
    Finished(TaskResult),
    /// It failed; [`WorkflowReport::failure`] has the error.
    Failed,
}

/// A task and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// The id that the task itself gave.
    pub task_id: TaskId,
    /// Its outcome, before any undo.
    pub outcome: TaskOutcome,
    /// Its dispatch, if there is a ledger and the task began.
    pub dispatch_id: Option<DispatchId>,
}

/// The outcome of all tasks.
#[derive(Debug)]
pub struct WorkflowReport {
    /// The run, if there is a ledger.
    pub run_id: Option<RunId>,
    /// [`Status::Completed`]; [`Status::RolledBack`] after a failure; [`Status::RollingBack`] if something could not be undone.
    pub status: Status,
    /// The tasks, in the order in which they were added.
    pub tasks: Vec<TaskReport>,
    /// The tasks that had declared their undo before the first one was executed.
    pub coverage: CompensationReport,
    /// The task that failed, and its error.
    pub failure: Option<(TaskId, TaskError)>,
    /// The undo of the tasks, if one failed.
    pub rollback: Option<RollbackReport>,
    /// The rollback in the ledger, if it was finished.
    pub rollback_id: Option<RollbackId>,
}

/// The reason and the outcome of a rollback, on one line: the ledger has no other trace of undo functions.
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
