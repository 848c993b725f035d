//! Registers tasks and their compensations, and runs the tasks as a whole.

use std::collections::BTreeMap;
use std::path::Path;

use crate::registry::CompensationRegistry;
use ic_base::{Code, Diagnosis, Label, Result, RunId, Seq};
use ic_kernel::Kernel;
use ic_undo::compensation::Declared;
use ic_worktree::CaptureSettings;

use super::WorkflowTask;
use super::journal::Journal;
use super::registry::{
    CompensationReport, EffectCoverage, RollbackReport, TaskContext, TaskId, TaskResult, ToolCompensation,
};
use super::report::{TaskOutcome, TaskReport, WorkflowReport};
use crate::report::Status;

/// Runs tasks, each after those that it needs. If one fails, it undoes what was done.
pub struct WorkflowExecutor<'k> {
    pub(super) tasks: Vec<Box<dyn WorkflowTask + 'k>>,
    /// Compensations that were registered, which count instead of those of the tasks themselves.
    compensation_registry: CompensationRegistry,
    /// Those that become rows of the ledger.
    pub(super) durable: BTreeMap<TaskId, Durable>,
    /// The compensations of the tasks that were executed.
    pub(super) armed: CompensationRegistry,
    pub(super) executed: Vec<Executed>,
    /// Whether tasks were executed and not rolled back.
    pub(super) is_begun: bool,
    /// The reason of the rollback.
    pub(super) cause: Option<String>,
    pub(super) times: u32,
    pub(super) journal: Option<Journal<'k>>,
    warnings: Vec<String>,
    warn: Box<dyn FnMut(&str) + 'k>,
}

/// The compensations of a task that become rows, each with its description.
#[derive(Default)]
pub(super) struct Durable {
    pub(super) rows: Vec<(String, Declared)>,
    /// Whether the registered function does nothing, because the rows undo everything.
    pub(super) is_all: bool,
}

pub(super) struct Executed {
    pub(super) context: TaskContext,
    /// The event at its start: compensations with a greater number undo it, or what came after it.
    pub(super) seq: Seq,
}

impl Default for WorkflowExecutor<'_> {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            compensation_registry: CompensationRegistry::new(),
            durable: BTreeMap::new(),
            armed: CompensationRegistry::new(),
            executed: Vec::new(),
            is_begun: false,
            cause: None,
            times: 0,
            journal: None,
            warnings: Vec::new(),
            warn: Box::new(|_| {}),
        }
    }
}

impl<'k> WorkflowExecutor<'k> {
    /// An executor that keeps no record.
    pub fn new() -> Self {
        Self::default()
    }

    /// An executor that records a run in a ledger, with a dispatch for each task. The run is created now, and is locked until the executor
    /// is dropped, so that no other process compensates it.
    ///
    /// If its process dies, the run stays open, with the dispatch of the task that was being executed: `ic compensation run` undoes what
    /// was durable, and `ic run rollback` rolls the run back. Errors: those of [`ic_ops::run::create`].
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// use ic_base::{Context, Diagnosis};
    /// use ic_worktree::CaptureSettings;
    /// use ic_kernel::config::Config;
    /// use ic_kernel::Kernel;
    /// use ic_phase::run_reference::ProjectScope;
    /// use ic_ledger::{Ledger, Lookup, OpenOptions};
    /// use ic_tasks::{
    ///     CompensationAction, Status, TaskContext, TaskError, TaskId, TaskResult, WorkflowExecutor, WorkflowTask,
    /// };
    ///
    /// struct Test;
    ///
    /// impl WorkflowTask for Test {
    ///     fn id(&self) -> TaskId {
    ///         "test".into()
    ///     }
    ///     fn execute(&self, _: &TaskContext) -> Result<TaskResult, TaskError> {
    ///         Ok(TaskResult::Success)
    ///     }
    ///     fn compensation(&self) -> Option<CompensationAction> {
    ///         Some(CompensationAction::skip("tests change nothing"))
    ///     }
    /// }
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let directory = directory.path();
    /// let context = Context::system();
    /// let lookup = Lookup { db: None, env_db: None, directory };
    /// let place = ic_ledger::initial_place(&lookup, None)?;
    /// let (ledger, _) = ic_ledger::create(&place, false, directory, OpenOptions::default(), &context)?;
    /// let project = ProjectScope { directory: directory.to_owned(), root: place.root };
    /// let kernel = Kernel::new(ledger, context, project);
    /// let patience = std::time::Duration::from_secs(5);
    /// let settings = CaptureSettings::of(Config::default(), directory, directory, None, patience);
    ///
    /// let mut executor = WorkflowExecutor::on_ledger(&kernel, &settings, "nightly")?;
    /// executor.add_task(Test);
    /// let report = executor.run()?;
    /// assert_eq!(report.status, Status::Completed);
    /// let run = kernel.read(|snapshot| kernel.run(snapshot, report.run_id.unwrap().as_str()))?;
    /// assert_eq!((run.goal.as_str(), run.phase.as_str()), ("nightly", "done"));
    /// # Ok::<(), Diagnosis>(())
    /// ```
    pub fn on_ledger(kernel: &'k Kernel, settings: &'k CaptureSettings, name: &str) -> Result<Self> {
        let name = Label::parse("The name of the tasks", name)?;
        let (journal, warnings) = Journal::begin(kernel, settings, name.as_str())?;
        Ok(Self { journal: Some(journal), warnings, ..Self::default() })
    }

    /// The run, if there is a ledger.
    pub fn run_id(&self) -> Option<&RunId> {
        self.journal.as_ref().map(|journal| &journal.run.id)
    }

    /// Adds a task. Those that need nothing from each other are executed in the order in which they were added.
    pub fn add_task(&mut self, task: impl WorkflowTask + 'k) {
        self.tasks.push(Box::new(task));
    }

    /// Sets the function that gets warnings; without one they are dropped.
    ///
    /// ```
    /// use ic_tasks::WorkflowExecutor;
    ///
    /// let mut executor = WorkflowExecutor::new();
    /// executor.on_warning(|warning| eprintln!("warning: {warning}"));
    /// ```
    pub fn on_warning(&mut self, warn: impl FnMut(&str) + 'k) {
        self.warn = Box::new(warn);
    }

    /// Registers the undo of a task, in place of one that was registered before or that the task itself brings.
    ///
    /// It is lost with this process. It counts for tasks that are executed from now on.
    pub fn register_compensation(&mut self, task_id: impl Into<TaskId>, compensation: impl Into<ToolCompensation>) {
        let task_id = task_id.into();
        self.durable.remove(&task_id);
        self.compensation_registry.register(task_id, compensation);
    }

    /// Registers that a task creates or changes a file: its undo deletes the file, or restores its former content.
    ///
    /// A compensation that is registered already runs, too, after this one; that of the task itself does not. On a ledger, a file in the
    /// project's tree is durable, of any size, and its content at the start of the task is restored. Elsewhere its present content is kept
    /// in this process: see [`ToolCompensation::file_compensation`] for files that then cannot be restored.
    ///
    /// ```
    /// use ic_tasks::{EffectCoverage, WorkflowExecutor};
    /// # use ic_tasks::{TaskContext, TaskError, TaskId, TaskResult, WorkflowTask};
    /// # struct Generate;
    /// # impl WorkflowTask for Generate {
    /// #     fn id(&self) -> TaskId { "generate".into() }
    /// #     fn execute(&self, _: &TaskContext) -> Result<TaskResult, TaskError> { Ok(TaskResult::Success) }
    /// # }
    ///
    /// let mut executor = WorkflowExecutor::new();
    /// executor.add_task(Generate);
    /// executor.register_file_compensation("generate", "target/generated.rs");
    /// let report = executor.validate_compensation_coverage();
    /// assert_eq!(report.steps, [("generate".to_owned(), EffectCoverage::Compensated)]);
    /// ```
    pub fn register_file_compensation(&mut self, task_id: impl Into<TaskId>, path: impl AsRef<Path>) {
        let (task_id, path) = (task_id.into(), path.as_ref());
        // The working directory may be another one by the time of the undo.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match &self.journal {
            Some(journal) if journal.covers(&absolute) => {
                let description = format!("put {} back as it was", path.display());
                self.keep(task_id, description, Declared::RestoreFiles(vec![absolute]));
            }
            // A row can only name a file of the run's tree. This one is kept in memory, with a warning.
            Some(_) => {
                let lost = "what it was is lost with this process";
                (self.warn)(&format!("{} is not in the project: {lost}", path.display()));
                self.compensation_registry.register_file_creation(task_id, path);
            }
            None => self.compensation_registry.register_file_creation(task_id, path),
        }
    }

    /// Registers the undo of a task as a row of the ledger, so that it outlives this process. A compensation that is registered already
    /// runs, too, after this one; that of the task itself does not.
    ///
    /// It is armed when the task begins, with what is known by then. Errors: `conflict` without a ledger.
    pub fn register_durable_compensation(
        &mut self,
        task_id: impl Into<TaskId>,
        description: impl Into<String>,
        declared: Declared,
    ) -> Result<()> {
        if self.journal.is_none() {
            return Err(Diagnosis::new(Code::Conflict, "There is no ledger that could keep a compensation.")
                .hint("make the executor with WorkflowExecutor::on_ledger"));
        }
        self.keep(task_id.into(), description.into(), declared);
        Ok(())
    }

    fn keep(&mut self, task_id: TaskId, description: String, declared: Declared) {
        let registered = self.compensation_registry.get(&task_id).map(ToolCompensation::coverage);
        let durable = self.durable.entry(task_id.clone()).or_default();
        // One that is registered runs, too, so it must not be replaced.
        if registered != Some(EffectCoverage::Compensated) {
            // The rows are undone just before the registry comes to this task, so there it has nothing left to do.
            let undone = ToolCompensation::new(&description, |_| Ok(TaskResult::Success));
            self.compensation_registry.register(task_id, undone);
            durable.is_all = true;
        }
        durable.rows.push((description, declared));
    }

    /// Reports which tasks declare their undo, and warns if some do not.
    pub fn validate_compensation_coverage(&mut self) -> CompensationReport {
        let coverage = |task: &dyn WorkflowTask| {
            self.compensation_of(task).map_or(EffectCoverage::Undeclared, |known| known.coverage())
        };
        let steps = self.tasks.iter().map(|task| (task.id().to_string(), coverage(&**task)));
        let report = CompensationReport::new(steps);
        if !report.is_complete() {
            (self.warn)(&format!(
                "{} % of the tasks say how they are undone; nothing is known of: {}",
                report.percentage,
                report.undeclared.join(", ")
            ));
        }
        report
    }

    pub(super) fn compensation_of(&self, task: &dyn WorkflowTask) -> Option<ToolCompensation> {
        let registered = self.compensation_registry.get(&task.id()).cloned();
        registered.or_else(|| task.executable_compensation().map(Into::into))
    }

    /// Executes all tasks. If one fails, it and the tasks before it are undone in reverse, until an undo fails. After a rollback the tasks
    /// can be run again.
    ///
    /// A failed task is no error: the report has it. Errors: `invalid_value` for tasks that need each other, need an unknown task or share
    /// a name; `conflict` if they were run already; those of writing to the ledger: [`WorkflowExecutor::rollback`] then undoes what was
    /// executed, as far as possible.
    pub fn run(&mut self) -> Result<WorkflowReport> {
        let order = self.order()?;
        // A second run would execute finished tasks again, with nothing undone in between.
        if self.is_begun {
            return Err(Diagnosis::new(Code::Conflict, "The tasks were run already.")
                .hint("roll them back first: WorkflowExecutor::rollback"));
        }
        // The warnings of creating the run are passed on only now: at that time, no function was set that gets them.
        for warning in std::mem::take(&mut self.warnings) {
            (self.warn)(&warning);
        }
        let coverage = self.validate_compensation_coverage();
        // This comes before the first task: after an error in between, `rollback` undoes what was executed.
        (self.is_begun, self.times) = (true, self.times + 1);
        // What an earlier run armed was rolled back with it.
        self.armed = CompensationRegistry::new();
        let not_started = |id| TaskReport { task_id: id, outcome: TaskOutcome::NotStarted, dispatch_id: None };
        let mut report = WorkflowReport {
            run_id: self.run_id().cloned(),
            status: Status::Completed,
            tasks: self.tasks.iter().map(|task| not_started(task.id())).collect(),
            coverage,
            failure: None,
            rollback: None,
            rollback_id: None,
        };
        for at in order {
            let task = &mut report.tasks[at];
            match self.execute_task(at, &mut task.dispatch_id) {
                Ok(result) => task.outcome = TaskOutcome::Finished(result),
                Err(error) => {
                    task.outcome = TaskOutcome::Failed;
                    report.failure = Some((task.task_id.clone(), error));
                    break;
                }
            }
        }
        let Some((failed, error)) = &report.failure else {
            self.journal.as_mut().map_or(Ok(()), Journal::complete)?;
            return Ok(report);
        };
        let cause = format!("task {failed} failed: {}", error.message());
        self.cause = Some(cause.clone());
        let (rollback, id) = self.undo_tasks().map_err(|problem| problem.detail("because", cause))?;
        report.status = if rollback.is_success() { Status::RolledBack } else { Status::RollingBack };
        (report.rollback, report.rollback_id) = (Some(rollback), id);
        Ok(report)
    }

    /// Rolls back the executed tasks, whether or not all succeeded, or resumes a rollback after an undo that failed.
    ///
    /// On a ledger the run is active again afterwards, at its first phase. While something is left it stays closed (`rolling_back`). If
    /// this process ends before, `ic compensation run` opens it again. Errors: `conflict` if nothing was run.
    pub fn rollback(&mut self) -> Result<RollbackReport> {
        if !self.is_begun {
            return Err(Diagnosis::new(Code::Conflict, "Nothing was executed that could be rolled back."));
        }
        self.undo_tasks().map(|(report, _)| report)
    }
}
