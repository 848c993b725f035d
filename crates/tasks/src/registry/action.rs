//! What a task says of its undo, and the function that goes with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::task::{TaskContext, TaskError, TaskResult};
use super::tool::{ToolCompensation, Undo, UndoFunction};

/// What is done about a task when its workflow is rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompensationType {
    /// Nothing: it has left nothing to undo.
    Skip,
    /// Nothing: it is better tried again than undone.
    Retry,
    /// A function undoes it.
    UndoFunction,
}

/// What a task says of its own undo. It can be written down; the function that undoes it cannot.
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
    /// What is done.
    pub action_type: CompensationType,
    /// The same for people, as an order: "delete the branch"; for the other types, why nothing is done.
    pub description: String,
}

impl CompensationAction {
    /// Nothing is to be undone.
    pub fn skip(description: impl Into<String>) -> Self {
        Self { action_type: CompensationType::Skip, description: description.into() }
    }

    /// The task is better tried again.
    pub fn retry(description: impl Into<String>) -> Self {
        Self { action_type: CompensationType::Retry, description: description.into() }
    }

    /// A function undoes it, which is given apart: [`ExecutableCompensation::with_undo`].
    pub fn undo(description: impl Into<String>) -> Self {
        Self { action_type: CompensationType::UndoFunction, description: description.into() }
    }
}

/// What a task says of its undo, together with the function that does it.
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
    /// What is done; it decides whether the function is run.
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

    /// Runs it as [`ToolCompensation::execute`] does.
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
            (CompensationType::Skip, _) => Undo::Skip,
            (CompensationType::Retry, _) => Undo::Retry,
            (CompensationType::UndoFunction, Some(function)) => Undo::Run(function),
            (CompensationType::UndoFunction, None) => Undo::Missing,
        };
        Self { description: compensation.action.description, undo }
    }
}

/// An undo function cannot be made from what is written down of it: such an action converts to a compensation that is
/// skipped, and counts as undeclared, until it is registered with its function.
impl From<CompensationAction> for ToolCompensation {
    fn from(action: CompensationAction) -> Self {
        ExecutableCompensation::new(action).into()
    }
}
