//! Runs tasks of a Rust program in the order of their needs, and undoes them in reverse when one fails (seed 004).
//!
//! The registration pattern: a task declares its undo in [`WorkflowTask::compensation`], and brings the function in
//! [`WorkflowTask::executable_compensation`]. Or the program registers one, which then counts instead of the task's own.
//! Either is registered before the task executes, so that a task that fails half-way is undone, too.
//!
//! ```
//! use ic_base::{Code, Diagnosis};
//! use ic_tasks::{
//!     ExecutableCompensation, Status, TaskContext, TaskError, TaskId, TaskResult, ToolCompensation, WorkflowExecutor,
//!     WorkflowTask,
//! };
//!
//! struct CreateBranch;
//!
//! impl WorkflowTask for CreateBranch {
//!     fn id(&self) -> TaskId {
//!         "create-branch".into()
//!     }
//!     fn execute(&self, _: &TaskContext) -> Result<TaskResult, TaskError> {
//!         Ok(TaskResult::Success)
//!     }
//!     fn executable_compensation(&self) -> Option<ExecutableCompensation> {
//!         Some(ExecutableCompensation::with_undo("delete the branch", |_| Ok(TaskResult::Success)))
//!     }
//! }
//!
//! struct Deploy;
//!
//! impl WorkflowTask for Deploy {
//!     fn id(&self) -> TaskId {
//!         "deploy".into()
//!     }
//!     fn execute(&self, _: &TaskContext) -> Result<TaskResult, TaskError> {
//!         Err(Diagnosis::new(Code::Io, "The server does not answer."))
//!     }
//!     fn needs(&self) -> Vec<TaskId> {
//!         vec!["create-branch".into()]
//!     }
//! }
//!
//! let mut executor = WorkflowExecutor::new();
//! executor.add_task(Deploy);
//! executor.add_task(CreateBranch);
//! executor.register_compensation("deploy", ToolCompensation::new("take it down", |_| Ok(TaskResult::Success)));
//!
//! let report = executor.run()?;
//! assert_eq!(report.status, Status::RolledBack);
//! assert_eq!(report.failure.unwrap().0, "deploy".into());
//! let undone = report.rollback.unwrap();
//! assert_eq!(undone.rolled_back().map(TaskId::as_str).collect::<Vec<_>>(), ["deploy", "create-branch"]);
//! # Ok::<(), Diagnosis>(())
//! ```
//!
//! [`WorkflowExecutor::on_ledger`] does the same as a run of a ledger. How long a compensation lasts then depends on its kind. A file
//! that is restored, and what is registered with [`WorkflowExecutor::register_durable_compensation`], is a row, which another process can
//! carry out if this one dies; so is the declaration that a task needs no undo. A function is lost with its process. The ledger names it
//! in the summary or error of the task's dispatch, and in the reason of the rollback that ran it. `ic compensation coverage` counts such a
//! task as undeclared.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod execution;
mod executor;
mod journal;
pub mod registry;
mod report;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub use self::registry::{
    CompensationAction, CompensationReport, CompensationType, EffectCoverage, ExecutableCompensation, RollbackOutcome,
    RollbackReport, TaskContext, TaskError, TaskId, TaskResult, TaskRollback, ToolCompensation,
};
pub use ic_undo::compensation::Declared;

pub use self::executor::WorkflowExecutor;
pub use self::report::{Status, TaskOutcome, TaskReport, WorkflowReport};

/// A piece of work that a [`WorkflowExecutor`] runs.
pub trait WorkflowTask {
    /// The name of the task, unique within the executor: one line, at most 200 bytes.
    fn id(&self) -> TaskId;

    /// Does the work. A panic counts as a failure.
    ///
    /// `context`: the same that its undo gets, without the outputs. Its idempotency key differs each time the task is run again.
    fn execute(&self, context: &TaskContext) -> Result<TaskResult, TaskError>;

    /// The declaration of its undo; `None` if it declares none. It is asked for before the task is executed.
    fn compensation(&self) -> Option<CompensationAction> {
        None
    }

    /// The declaration with the function that undoes the task; by default [`WorkflowTask::compensation`] without one.
    fn executable_compensation(&self) -> Option<ExecutableCompensation> {
        self.compensation().map(ExecutableCompensation::new)
    }

    /// The tasks that must have succeeded before it starts.
    fn needs(&self) -> Vec<TaskId> {
        Vec::new()
    }

    /// The ids of the things that it made, for its undo: the outputs of the undo's context. Asked for after it was executed, even if it
    /// failed. A command that undoes it finds those that are UTF-8 in its environment.
    fn outputs(&self) -> BTreeMap<String, OsString> {
        BTreeMap::new()
    }
}

#[cfg(test)]
mod tests;
