//! The arguments and the result of a compensation.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use ic_base::{Diagnosis, RunId};
use serde::{Deserialize, Serialize};

/// The name of a task within its workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Makes an id of a text, unchecked: the executor checks it before it runs.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TaskId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl From<String> for TaskId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<&TaskId> for TaskId {
    fn from(id: &TaskId) -> Self {
        id.clone()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One execution of a task, and its outputs.
///
/// ```
/// use ic_tasks::registry::TaskContext;
///
/// let mut context = TaskContext::new("create-database");
/// context.outputs.insert("DATABASE".to_owned(), "feature_42".into());
/// context.idempotency_key = "create-database/2".to_owned();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// The task that is executed or undone.
    pub task_id: TaskId,
    /// The run that it belongs to; `None` without a ledger.
    pub run_id: Option<RunId>,
    /// The name of the step in the workflow; by default the task's id.
    pub step: String,
    /// The ids of the things that the task made, for its undo.
    pub outputs: BTreeMap<String, OsString>,
    /// The directory of commands and relative paths; by default the program's own working directory.
    pub working_directory: PathBuf,
    /// The same for every attempt to undo this execution of the task, to distinguish a retry from a new undo. By default the task's id. A
    /// program that executes a task again must give it another key.
    pub idempotency_key: String,
}

impl TaskContext {
    /// The context of a task without outputs.
    pub fn new(task_id: impl Into<TaskId>) -> Self {
        let task_id = task_id.into();
        Self {
            run_id: None,
            step: task_id.to_string(),
            outputs: BTreeMap::new(),
            working_directory: PathBuf::from("."),
            idempotency_key: task_id.to_string(),
            task_id,
        }
    }
}

/// The result of a task or a compensation that did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// It did its work, or found it done already.
    Success,
    /// It did nothing, on purpose.
    Skipped {
        /// The reason, for the person who reads the report.
        reason: String,
    },
}

/// The error of a task or a compensation.
pub type TaskError = Diagnosis;
