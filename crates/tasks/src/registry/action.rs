//! The declaration of a task's undo, and the function that belongs to it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::task::{TaskContext, TaskError, TaskResult};
use super::tool::{TaskUndo, ToolCompensation, UndoFunction};

/// The way a rollback treats a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompensationType {
    /// It runs nothing, because the task left nothing to undo.
    Skip,
    /// It runs nothing, because the task is to be retried rather than undone.
    Retry,
    /// It runs a function that undoes the task.
    UndoFunction,
}

/// The declaration of a task's undo. It can be serialized; the function that undoes the task cannot.
///
/// ```
/// use ic_tasks::registry::CompensationAction;
///
/// let action = CompensationAction::undo("delete the branch");
/// let json = serde_json::to_string(&action).unwrap();
/// assert_eq!(json, r#"{"action_type":"undo_function","description":"delete the branch"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompensationAction {
    /// Whether an undo runs.
    pub action_type: CompensationType,
    /// For people: the undo as an imperative, "delete the branch"; for the other types, the reason why nothing runs.
    pub description: String,
}

impl CompensationAction {
    /// Declares that nothing has to be undone.
    pub fn skip(description: impl Into<String>) -> Self {
        Self { action_type: CompensationType::Skip, description: description.into() }
    }

    /// Declares that the task is to be retried rather than undone.
    pub fn retry(description: impl Into<String>) -> Self {
        Self { action_type: CompensationType::Retry, description: description.into() }
    }

    /// Declares a function, which is given separately: [`ExecutableCompensation::with_undo`].
    pub fn undo(description: impl Into<String>) -> Self {
        Self { action_type: CompensationType::UndoFunction, description: description.into() }
    }
}

/// The declaration of a task's undo, with its function.
///
/// ```
/// use ic_tasks::registry::{CompensationAction, ExecutableCompensation, TaskContext, TaskResult};
///
/// let undo = ExecutableCompensation::with_undo("delete the branch", |_| Ok(TaskResult::Success));
/// assert_eq!(undo.action, CompensationAction::undo("delete the branch"));
/// assert_eq!(undo.execute(&TaskContext::new("branch")).unwrap(), TaskResult::Success);
/// ```
#[derive(Clone)]
pub struct ExecutableCompensation {
    /// The declaration, which decides whether the function runs.
    pub action: CompensationAction,
    function: Option<UndoFunction>,
}

impl ExecutableCompensation {
    /// An action without a function: executing it runs nothing, and says so.
    pub fn new(action: CompensationAction) -> Self {
        Self { action, function: None }
    }

    /// An action of the type [`CompensationType::UndoFunction`], with its function.
    pub fn with_undo(
        description: impl Into<String>,
        undo: impl Fn(&TaskContext) -> Result<TaskResult, TaskError> + Send + Sync + 'static,
    ) -> Self {
        Self { action: CompensationAction::undo(description), function: Some(UndoFunction::new(undo)) }
    }

    /// Runs the function, as [`ToolCompensation::execute`] does.
    pub fn execute(&self, context: &TaskContext) -> Result<TaskResult, TaskError> {
        ToolCompensation::from(self.clone()).execute(context)
    }
}

impl fmt::Debug for ExecutableCompensation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_function = self.function.is_some();
        f.debug_struct("ExecutableCompensation")
            .field("action", &self.action)
            .field("has_function", &has_function)
            .finish()
    }
}

impl From<ExecutableCompensation> for ToolCompensation {
    fn from(compensation: ExecutableCompensation) -> Self {
        let undo = match (compensation.action.action_type, compensation.function) {
            (CompensationType::Skip, _) => TaskUndo::Skip,
            (CompensationType::Retry, _) => TaskUndo::Retry,
            (CompensationType::UndoFunction, Some(function)) => TaskUndo::Run(function),
            (CompensationType::UndoFunction, None) => TaskUndo::Missing,
        };
        Self { description: compensation.action.description, undo }
    }
}

/// The declaration of an undo function does not contain the function. So it converts to a compensation that is skipped, and that counts as
/// undeclared until it is registered with its function.
impl From<CompensationAction> for ToolCompensation {
    fn from(action: CompensationAction) -> Self {
        ExecutableCompensation::new(action).into()
    }
}
