//! Runs the compensations of the tasks that were executed.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ic_base::{Code, Diagnosis};
use serde::Serialize;

use super::CompensationRegistry;
use super::task::{TaskContext, TaskError, TaskId, TaskResult};
use super::tool::ToolCompensation;
use ic_effects::order::FailurePolicy;

/// The outcome of one task in a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RollbackOutcome {
    /// Its compensation succeeded, and is no longer registered.
    RolledBack,
    /// An earlier rollback with the same registry undid it.
    AlreadyRolledBack,
    /// Nothing ran, as declared or because there is no function. The compensation is still registered.
    Skipped {
        /// The reason, for the person who reads the report.
        reason: String,
    },
    /// Its compensation failed. It is still registered, and can be run again.
    Failed {
        /// The code of the error, as `io_error`.
        code: String,
        /// The message of the error.
        error: String,
    },
    /// No compensation was registered. If the task left anything, it is still there.
    Undeclared,
    /// It was not tried, because another one failed before. It is still registered.
    Pending,
}

/// A task and its outcome in a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRollback {
    /// The task that was executed.
    pub task_id: TaskId,
    /// The description of its compensation; `None` if there is none.
    pub description: Option<String>,
    /// The outcome of the compensation.
    #[serde(flatten)]
    pub outcome: RollbackOutcome,
}

/// The outcomes of all tasks, in the order in which they were undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RollbackReport {
    /// One for each executed task, each task once.
    pub results: Vec<TaskRollback>,
}

impl RollbackReport {
    /// Whether no compensation failed or is pending. Skipped and undeclared tasks are not failures.
    pub fn is_success(&self) -> bool {
        let is_open = |r: &TaskRollback| matches!(r.outcome, RollbackOutcome::Failed { .. } | RollbackOutcome::Pending);
        !self.results.iter().any(is_open)
    }

    /// The tasks that this rollback undid.
    pub fn rolled_back(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| *outcome == RollbackOutcome::RolledBack)
    }

    /// The tasks for which nothing ran.
    pub fn skipped(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| matches!(outcome, RollbackOutcome::Skipped { .. }))
    }

    /// The tasks whose compensation failed.
    pub fn failed(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| matches!(outcome, RollbackOutcome::Failed { .. }))
    }

    /// The tasks that were not tried, because another one failed before.
    pub fn pending(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| *outcome == RollbackOutcome::Pending)
    }

    fn tasks(&self, is_meant: impl Fn(&RollbackOutcome) -> bool) -> impl Iterator<Item = &TaskId> {
        self.results.iter().filter(move |r| is_meant(&r.outcome)).map(|r| &r.task_id)
    }
}

/// Undoes tasks with their registered compensations.
///
/// ```
/// use ic_base::{Code, Diagnosis};
/// use ic_effects::order::FailurePolicy;
/// use ic_tasks::registry::{CompensationRegistry, RollbackEngine, TaskContext, TaskResult, ToolCompensation};
///
/// let mut registry = CompensationRegistry::new();
/// registry.register("first", ToolCompensation::new("undo the first", |_| Ok(TaskResult::Success)));
/// registry.register("second", ToolCompensation::new("undo the second", |_| {
///     Err(Diagnosis::new(Code::Io, "The server does not answer."))
/// }));
/// let executed = ["first", "second"].map(TaskContext::new);
///
/// let report = RollbackEngine::new().execute_rollback(&executed, &mut registry);
/// assert!(!report.is_success());
/// assert_eq!(report.pending().collect::<Vec<_>>(), [&"first".into()]);
///
/// let engine = RollbackEngine::with_policy(FailurePolicy::Continue);
/// let report = engine.execute_rollback(&executed, &mut registry);
/// assert_eq!(report.rolled_back().collect::<Vec<_>>(), [&"first".into()]);
/// assert!(registry.has_compensation(&"second".into()));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RollbackEngine {
    policy: FailurePolicy,
}

impl RollbackEngine {
    /// An engine that stops at the first failure, because earlier work may depend on what could not be undone.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine with this policy. It knows no dependencies, so `Continue` undoes all other tasks.
    pub fn with_policy(policy: FailurePolicy) -> Self {
        Self { policy }
    }

    /// Undoes tasks in reverse of the order in which they were executed.
    ///
    /// `executed`: the context of each task that was started, in that order. If a task is there more than once, its last one counts. What
    /// succeeds is removed from the registry, so a second call with the same tasks runs only the rest. A compensation that panics has
    /// failed.
    pub fn execute_rollback(&self, executed: &[TaskContext], registry: &mut CompensationRegistry) -> RollbackReport {
        let mut report = RollbackReport::default();
        let mut seen = BTreeSet::new();
        let mut is_stopped = false;
        // The newest attempt at a task comes first in reverse, and knows all that the task noted.
        for context in executed.iter().rev().filter(|context| seen.insert(&context.task_id)) {
            let task_id = &context.task_id;
            let compensation = registry.get(task_id);
            let description = compensation.map(|c| c.description.clone());
            let outcome = match compensation {
                // This is asked before the stop: what has no compensation is not pending.
                None if registry.is_rolled_back(task_id) => RollbackOutcome::AlreadyRolledBack,
                None => RollbackOutcome::Undeclared,
                Some(_) if is_stopped => RollbackOutcome::Pending,
                Some(compensation) => run(compensation, context),
            };
            match outcome {
                RollbackOutcome::RolledBack => registry.roll_back(task_id),
                RollbackOutcome::Failed { .. } => is_stopped = self.policy == FailurePolicy::Stop,
                RollbackOutcome::AlreadyRolledBack
                | RollbackOutcome::Skipped { .. }
                | RollbackOutcome::Undeclared
                | RollbackOutcome::Pending => {}
            }
            report.results.push(TaskRollback { task_id: task_id.clone(), description, outcome });
        }
        report
    }
}

fn run(compensation: &ToolCompensation, context: &TaskContext) -> RollbackOutcome {
    // A panic must not end the rollback: the tasks before this one still have to be undone.
    let result =
        catch_unwind(AssertUnwindSafe(|| compensation.execute(context))).unwrap_or_else(|p| Err(panicked(&*p)));
    match result {
        Ok(TaskResult::Success) => RollbackOutcome::RolledBack,
        Ok(TaskResult::Skipped { reason }) => RollbackOutcome::Skipped { reason },
        Err(e) => RollbackOutcome::Failed { code: e.code().as_str().to_owned(), error: e.message().to_owned() },
    }
}

fn panicked(payload: &(dyn Any + Send)) -> TaskError {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown");
    Diagnosis::new(Code::Internal, format!("The compensation panicked: {text}."))
}
