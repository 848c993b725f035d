//! Runs the compensations of the tasks that were executed.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ic_base::{Code, Diagnosis};
use serde::Serialize;

use super::CompensationRegistry;
use super::task::{TaskContext, TaskError, TaskId, TaskResult};
use super::tool::ToolCompensation;
use ic_saga::order::FailurePolicy;

/// What came of one task in a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RollbackOutcome {
    /// Its compensation was run, and said that it is undone. It is registered no more.
    RolledBack,
    /// An earlier rollback with the same registry has undone it.
    AlreadyRolledBack,
    /// Nothing was undone, on purpose or because nothing can be run. What was registered still is.
    Skipped {
        /// Why, for the person who reads the report.
        reason: String,
    },
    /// Its compensation failed. It is still registered, and can be run again.
    Failed {
        /// The code of the error.
        code: String,
        /// What went wrong.
        error: String,
    },
    /// Nothing was registered for it: if it has left anything, that is still there.
    Undeclared,
    /// Its turn did not come, because another one failed. It is still registered.
    Pending,
}

/// A task and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRollback {
    /// The task.
    pub task_id: TaskId,
    /// What its compensation does; `None` if there is none.
    pub description: Option<String>,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: RollbackOutcome,
}

/// What came of every task, in the order in which they were undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RollbackReport {
    /// One for each task that was executed, each once.
    pub results: Vec<TaskRollback>,
}

impl RollbackReport {
    /// Whether none failed and none is pending. Skipped and undeclared tasks are not failures.
    pub fn is_success(&self) -> bool {
        let is_open =
            |r: &TaskRollback| matches!(r.outcome, RollbackOutcome::Failed { .. } | RollbackOutcome::Pending);
        !self.results.iter().any(is_open)
    }

    /// The tasks that this rollback has undone.
    pub fn rolled_back(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| *outcome == RollbackOutcome::RolledBack)
    }

    /// The tasks for which nothing was run.
    pub fn skipped(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| matches!(outcome, RollbackOutcome::Skipped { .. }))
    }

    /// The tasks whose compensation failed.
    pub fn failed(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| matches!(outcome, RollbackOutcome::Failed { .. }))
    }

    /// The tasks whose turn did not come.
    pub fn pending(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks(|outcome| *outcome == RollbackOutcome::Pending)
    }

    fn tasks(&self, is_meant: impl Fn(&RollbackOutcome) -> bool) -> impl Iterator<Item = &TaskId> {
        self.results.iter().filter(move |r| is_meant(&r.outcome)).map(|r| &r.task_id)
    }
}

/// Undoes tasks by what is registered for them.
///
/// ```
/// use ic_base::{Code, Diagnosis};
/// use ic_saga::order::FailurePolicy;
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
    /// An engine that stops at the first failure: what is undone later may stand on what could not be undone.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine that does what the policy says. It does not know what depends on what: `Continue` undoes all the rest.
    pub fn with_policy(policy: FailurePolicy) -> Self {
        Self { policy }
    }

    /// Undoes tasks in reverse of the order in which they were executed.
    ///
    /// `executed`: one for each task that was started, in that order; of a task that is there more than once the last
    /// counts. What succeeds is removed from the registry, so a second call with the same tasks runs only the rest. A
    /// compensation that panics has failed.
    pub fn execute_rollback(
        &self,
        executed: &[TaskContext],
        registry: &mut CompensationRegistry,
    ) -> RollbackReport {
        let mut report = RollbackReport::default();
        let mut seen = BTreeSet::new();
        let mut is_stopped = false;
        for context in executed.iter().rev().filter(|context| seen.insert(&context.task_id)) {
            let task_id = &context.task_id;
            let compensation = registry.get(task_id);
            let description = compensation.map(|c| c.description.clone());
            let outcome = match compensation {
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
    let result = catch_unwind(AssertUnwindSafe(|| compensation.execute(context)))
        .unwrap_or_else(|p| Err(panicked(&*p)));
    match result {
        Ok(TaskResult::Success) => RollbackOutcome::RolledBack,
        Ok(TaskResult::Skipped { reason }) => RollbackOutcome::Skipped { reason },
        Err(e) => {
            RollbackOutcome::Failed { code: e.code().as_str().to_owned(), error: e.message().to_owned() }
        }
    }
}

fn panicked(payload: &(dyn Any + Send)) -> TaskError {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown");
    Diagnosis::new(Code::Internal, format!("The compensation panicked: {text}."))
}
