//! The compensations of one program, as functions and small undos in memory, and the rollback that runs them (seed 004).
//!
//! They are lost with the process. A compensation that has to survive it is a row in the ledger.
//!
//! ```
//! use ic_tasks::registry::{CompensationRegistry, RollbackEngine, TaskContext, TaskResult, ToolCompensation};
//!
//! let mut registry = CompensationRegistry::new();
//! // Registered before the task runs, so that a task that fails half-way is undone too.
//! registry.register("create-database", ToolCompensation::new("drop the database", |context| {
//!     // ... drop `context.outputs["DATABASE"]` ...
//!     Ok(TaskResult::Success)
//! }));
//! registry.register("run-tests", ToolCompensation::skip("tests change nothing"));
//!
//! let executed = [TaskContext::new("create-database"), TaskContext::new("run-tests")];
//! let report = RollbackEngine::new().execute_rollback(&executed, &mut registry);
//! assert!(report.is_success());
//! assert_eq!(report.rolled_back().collect::<Vec<_>>(), [&"create-database".into()]);
//! assert_eq!(report.skipped().collect::<Vec<_>>(), [&"run-tests".into()]);
//! ```

mod action;
mod file;
mod rollback;
mod task;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use self::action::{CompensationAction, CompensationType, ExecutableCompensation};
pub use self::rollback::{RollbackEngine, RollbackOutcome, RollbackReport, TaskRollback};
pub use self::task::{TaskContext, TaskError, TaskId, TaskResult};
pub use self::tool::ToolCompensation;
pub use ic_effects::coverage::{CompensationReport, EffectCoverage};

/// The compensation of each task, and the tasks that are undone already.
#[derive(Debug, Clone, Default)]
pub struct CompensationRegistry {
    compensations: BTreeMap<TaskId, ToolCompensation>,
    rolled_back: BTreeSet<TaskId>,
}

impl CompensationRegistry {
    /// A registry without compensations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the undo of a task, and returns the one that was registered before, which will not run.
    ///
    /// It must be registered before the task starts. A [`CompensationAction`] can be registered directly.
    ///
    /// ```
    /// use ic_tasks::registry::{CompensationAction, CompensationRegistry, ToolCompensation};
    ///
    /// let mut registry = CompensationRegistry::new();
    /// assert!(registry.register("lint", CompensationAction::skip("reads only")).is_none());
    /// let before = registry.register("lint", ToolCompensation::retry("the network is slow"));
    /// assert_eq!(before.unwrap().description, "reads only");
    /// ```
    pub fn register(
        &mut self,
        task_id: impl Into<TaskId>,
        compensation: impl Into<ToolCompensation>,
    ) -> Option<ToolCompensation> {
        let task_id = task_id.into();
        // The task is about to be executed again, so it counts as undone no longer.
        self.rolled_back.remove(&task_id);
        self.compensations.insert(task_id, compensation.into())
    }

    /// The compensation of a task; `None` if none is registered.
    pub fn get(&self, task_id: &TaskId) -> Option<&ToolCompensation> {
        self.compensations.get(task_id)
    }

    /// Whether anything is registered for a task, even that it needs no undo.
    pub fn has_compensation(&self, task_id: &TaskId) -> bool {
        self.compensations.contains_key(task_id)
    }

    /// Removes the compensation of a task, and returns it.
    pub fn remove(&mut self, task_id: &TaskId) -> Option<ToolCompensation> {
        self.compensations.remove(task_id)
    }

    /// Reports which of these tasks declare their undo.
    ///
    /// ```
    /// use ic_tasks::registry::{CompensationRegistry, ToolCompensation};
    ///
    /// let mut registry = CompensationRegistry::new();
    /// registry.register("lint", ToolCompensation::skip("reads only"));
    /// let report = registry.validate_coverage(&["lint".into(), "deploy".into()]);
    /// assert_eq!(report.percentage, 50);
    /// assert_eq!(report.undeclared, ["deploy"]);
    /// ```
    pub fn validate_coverage(&self, tasks: &[TaskId]) -> CompensationReport {
        CompensationReport::new(tasks.iter().map(|task| {
            let coverage = self.get(task).map_or(EffectCoverage::Undeclared, ToolCompensation::coverage);
            (task.to_string(), coverage)
        }))
    }

    /// Registers that a task is about to create this file: see [`ToolCompensation::file_compensation`].
    ///
    /// A compensation that is registered already runs, too, after this one.
    ///
    /// ```
    /// use ic_tasks::registry::{CompensationRegistry, RollbackEngine, TaskContext};
    ///
    /// let directory = tempfile::tempdir().unwrap();
    /// let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    /// let mut registry = CompensationRegistry::new();
    /// registry.register_file_creation("generate", &one);
    /// registry.register_file_creation("generate", &two);
    /// std::fs::write(&one, "1").unwrap();
    /// std::fs::write(&two, "2").unwrap();
    ///
    /// let report = RollbackEngine::new().execute_rollback(&[TaskContext::new("generate")], &mut registry);
    /// assert!(report.is_success());
    /// assert!(!one.exists() && !two.exists());
    /// ```
    pub fn register_file_creation(&mut self, task_id: impl Into<TaskId>, file_path: impl AsRef<Path>) {
        self.add(task_id.into(), ToolCompensation::file_compensation(file_path));
    }

    /// Registers that a task has just started this process: see [`ToolCompensation::process_compensation`].
    ///
    /// A compensation that is registered already runs, too, after this one.
    pub fn register_process_spawn(&mut self, task_id: impl Into<TaskId>, pid: u32) {
        self.add(task_id.into(), ToolCompensation::process_compensation(pid));
    }

    /// Adds a compensation in front of the registered one: a task makes several things, and replacing would forget all but the last.
    fn add(&mut self, task_id: TaskId, newest: ToolCompensation) {
        let compensation = match self.compensations.remove(&task_id) {
            // The order is reversed: what the task made last is undone first.
            Some(earlier) if earlier.coverage() == EffectCoverage::Compensated => newest.then(earlier),
            _ => newest,
        };
        self.register(task_id, compensation);
    }

    fn is_rolled_back(&self, task_id: &TaskId) -> bool {
        self.rolled_back.contains(task_id)
    }

    fn roll_back(&mut self, task_id: &TaskId) {
        self.compensations.remove(task_id);
        self.rolled_back.insert(task_id.clone());
    }
}

#[cfg(test)]
mod tests;
