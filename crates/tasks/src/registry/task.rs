//! What a compensation is told, and what it answers.

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
    /// The id of this text.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Its text.
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

/// Which execution of a task is run or undone, and what it left.
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
    /// The task.
    pub task_id: TaskId,
    /// The run that it belongs to, when there is one.
    pub run_id: Option<RunId>,
    /// The step of the workflow that it is; the task's id unless it is said otherwise.
    pub step: String,
    /// What the task wrote down for its undo: the ids of the things that it made.
    pub outputs: BTreeMap<String, OsString>,
    /// Where commands are run and relative paths begin; the program's own working directory unless it is said otherwise.
    pub working_directory: PathBuf,
    /// The same for every attempt to undo this execution of the task, so that doing it twice can be told from doing it
    /// anew. The task's id unless it is said otherwise: who redoes a task gives each time a key of its own.
    pub idempotency_key: String,
}

impl TaskContext {
    /// The context of a task that has left nothing.
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

/// How a task or a compensation ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// It did what it had to do, or found it done already.
    Success,
    /// It did nothing, on purpose.
    Skipped {
        /// Why, for the person who reads the report.
        reason: String,
    },
}

/// Why a task or a compensation failed.
pub type TaskError = Diagnosis;
