//! One compensation, and its execution.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ic_base::Diagnosis;

use super::file::FileBeforeTask;
use super::task::{TaskContext, TaskError, TaskResult};
use ic_dispatch::process::{self, ProcessIdentity};
use ic_effects::coverage::EffectCoverage;

/// How long a process may take to end after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

type Function = dyn Fn(&TaskContext) -> Result<TaskResult, TaskError> + Send + Sync;

/// A function that undoes a task; clones share it.
#[derive(Clone)]
pub(super) struct UndoFunction(Arc<Function>);

impl UndoFunction {
    pub(super) fn new(
        function: impl Fn(&TaskContext) -> Result<TaskResult, TaskError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(function))
    }
}

impl Deref for UndoFunction {
    type Target = Function;

    fn deref(&self) -> &Function {
        &*self.0
    }
}

/// The way a compensation is executed.
#[derive(Clone)]
pub(super) enum TaskUndo {
    Run(UndoFunction),
    Skip,
    Retry,
    /// A function was declared and not given.
    Missing,
}

/// The undo of the outside effects of one task; clones share the function.
///
/// It may run more than once, and it may run before the task did anything: then it must succeed.
///
/// ```
/// use ic_tasks::registry::{TaskContext, TaskResult, ToolCompensation};
///
/// let delete = ToolCompensation::new("delete the bucket", |context| {
///     // What the task has noted down is what it has made; without it there is nothing to delete.
///     if let Some(bucket) = context.outputs.get("BUCKET") {
///         println!("deleting {}", bucket.display());
///     }
///     Ok(TaskResult::Success)
/// });
/// assert_eq!(delete.execute(&TaskContext::new("bucket")).unwrap(), TaskResult::Success);
/// ```
#[derive(Clone)]
pub struct ToolCompensation {
    /// Its description, as an imperative: "delete the bucket".
    pub description: String,
    pub(super) undo: TaskUndo,
}

impl ToolCompensation {
    /// A compensation that runs a function.
    pub fn new(
        description: impl Into<String>,
        undo: impl Fn(&TaskContext) -> Result<TaskResult, TaskError> + Send + Sync + 'static,
    ) -> Self {
        Self { description: description.into(), undo: TaskUndo::Run(UndoFunction::new(undo)) }
    }

    /// Declares that a task needs no undo; `description` is the reason.
    pub fn skip(description: impl Into<String>) -> Self {
        Self { description: description.into(), undo: TaskUndo::Skip }
    }

    /// Declares that a task is to be retried rather than undone; `description` is the reason. A rollback runs nothing for it.
    pub fn retry(description: impl Into<String>) -> Self {
        Self { description: description.into(), undo: TaskUndo::Retry }
    }

    /// Restores a file: deletes it if it does not exist now, else restores its present content and permissions.
    ///
    /// Call it before the task starts. A file that exists now is never deleted. A file that cannot be restored (over 1 MiB, unreadable, a
    /// link, a directory) is not touched: executing is refused with `conflict`. It is also refused if a directory has taken the file's
    /// place, or the path leads elsewhere. A relative path begins at the present working directory. A directory that the task makes for the
    /// file stays.
    ///
    /// ```
    /// use ic_tasks::registry::{TaskContext, ToolCompensation};
    ///
    /// let directory = tempfile::tempdir().unwrap();
    /// let (new, old) = (directory.path().join("new"), directory.path().join("old"));
    /// std::fs::write(&old, "precious").unwrap();
    /// let undos = [&new, &old].map(ToolCompensation::file_compensation);
    ///
    /// std::fs::write(&new, "generated").unwrap();
    /// std::fs::write(&old, "overwritten").unwrap();
    /// for undo in undos {
    ///     undo.execute(&TaskContext::new("generate")).unwrap();
    /// }
    /// assert!(!new.exists());
    /// assert_eq!(std::fs::read_to_string(&old).unwrap(), "precious");
    /// ```
    pub fn file_compensation(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let before = FileBeforeTask::of(path);
        let description = format!("put {} back as it was", path.display());
        Self::new(description, move |_| before.put_back().map(|()| TaskResult::Success))
    }

    /// Ends the process that has this id now, if it still runs: with SIGTERM, and with SIGKILL after five seconds.
    ///
    /// Call it when the process is started, before its parent waits for it. Another process that gets the same id later is not touched.
    /// Executing is refused with `invalid_value` for the calling process itself.
    ///
    /// ```
    /// use ic_tasks::registry::{TaskContext, ToolCompensation};
    ///
    /// let mut server = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    /// let undo = ToolCompensation::process_compensation(server.id());
    /// undo.execute(&TaskContext::new("serve")).unwrap();
    /// assert!(!server.wait().unwrap().success());
    /// ```
    pub fn process_compensation(pid: u32) -> Self {
        // Read now, while the number still belongs to this process.
        let identity = ProcessIdentity::of(pid);
        Self::new(format!("end the process {pid}"), move |_| match &identity {
            Ok(Some(identity)) => process::end(identity, GRACE).map(|_| TaskResult::Success),
            Ok(None) => Ok(TaskResult::Success),
            Err(e) => {
                let unknown = format!("It was not known which process {pid} was when it was registered: {e}");
                Err(Diagnosis::new(e.code(), unknown).hint("end it by hand if it still runs"))
            }
        })
    }

    /// This compensation, followed by `next` if this one does not fail.
    ///
    /// If either is skipped, the whole counts as skipped: only what was done entirely counts as done.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let description = format!("{}; {}", self.description, next.description);
        Self::new(description, move |context| {
            // An error ends it here: what was made before must not be undone under what still stands on it.
            let first = self.execute(context)?;
            let second = next.execute(context)?;
            Ok(if first == TaskResult::Success { second } else { first })
        })
    }

    /// Runs it. A skip or a retry returns [`TaskResult::Skipped`], and so does a declared undo without its function.
    ///
    /// Errors: those of the function; the compensation can be executed again.
    pub fn execute(&self, context: &TaskContext) -> Result<TaskResult, TaskError> {
        let reason = match &self.undo {
            TaskUndo::Run(function) => return function(context),
            TaskUndo::Skip => format!("It needs no undo: {}.", self.description),
            TaskUndo::Retry => format!("It is to be tried again, not undone: {}.", self.description),
            TaskUndo::Missing => {
                format!("There is no function that can be run to {}: register it with one.", self.description)
            }
        };
        Ok(TaskResult::Skipped { reason })
    }

    /// Its coverage. A retry counts as declared to need no undo; an undo without its function as undeclared.
    pub fn coverage(&self) -> EffectCoverage {
        match self.undo {
            TaskUndo::Run(_) => EffectCoverage::Compensated,
            TaskUndo::Skip | TaskUndo::Retry => EffectCoverage::Skip,
            TaskUndo::Missing => EffectCoverage::Undeclared,
        }
    }
}

impl fmt::Debug for ToolCompensation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCompensation")
            .field("description", &self.description)
            .field("coverage", &self.coverage())
            .finish_non_exhaustive()
    }
}
