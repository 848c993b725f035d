//! The order of tasks, the execution of one, and its undo.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::registry::RollbackEngine;
use ic_base::graph::Graph;
use ic_base::{Code, Diagnosis, DispatchId, Label, Result, RollbackId};
use ic_effects::EffectAction;
use ic_undo::compensation::Declared;

use super::executor::{Executed, WorkflowExecutor};
use super::journal::Journal;
use super::registry::{
    EffectCoverage, RollbackOutcome, RollbackReport, TaskContext, TaskId, TaskResult, TaskRollback, ToolCompensation,
};
use super::report::story;

impl WorkflowExecutor<'_> {
    /// The indices of the tasks, each after those that it needs. Errors: `invalid_value` for an unknown or circular need, and for a name
    /// twice.
    pub(super) fn order(&self) -> Result<Vec<usize>> {
        let invalid = |what: String| Err(Diagnosis::new(Code::InvalidValue, what));
        let mut places: HashMap<TaskId, usize> = HashMap::new();
        for (at, task) in self.tasks.iter().enumerate() {
            let id = task.id();
            Label::parse("The id of a task", id.as_str())?;
            if places.insert(id.clone(), at).is_some() {
                return invalid(format!("Two tasks have the id {id}."));
            }
        }
        let mut needs: Vec<Vec<usize>> = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let (known, unknown): (Vec<_>, Vec<_>) = task
                .needs()
                .into_iter()
                .map(|need| places.get(&need).copied().ok_or(need))
                .partition(std::result::Result::is_ok);
            if let Some(Err(need)) = unknown.into_iter().next() {
                return invalid(format!("The task {} needs {need}, and there is no such task.", task.id()));
            }
            needs.push(known.into_iter().flatten().collect());
        }
        let graph = Graph::new(needs);
        if let Some(cycle) = graph.cycle() {
            let names: Vec<String> = cycle.iter().map(|at| self.tasks[*at].id().to_string()).collect();
            return invalid(format!("Each of these tasks needs the next, in a circle: {}.", names.join(", ")));
        }
        Ok(graph.order(|at| at))
    }

    /// Executes a task, after its undo was registered. `dispatch_id` is set to its dispatch, if there is a ledger.
    pub(super) fn execute_task(&mut self, at: usize, dispatch_id: &mut Option<DispatchId>) -> Result<TaskResult> {
        let task = &*self.tasks[at];
        // Asked for before the task runs: a task that fails half-way has to be undone, too.
        let (id, compensation) = (task.id(), self.compensation_of(task));
        let mut context = TaskContext::new(&id);
        // Without a ledger, the number of the run distinguishes executions of the same task.
        context.idempotency_key = format!("{id}/{}", self.times);
        let mut seq = 0;
        if let Some(journal) = &mut self.journal {
            let dispatch = journal.start(&id)?;
            context.idempotency_key = dispatch.id.to_string();
            context.run_id = Some(dispatch.run_id);
            context.working_directory.clone_from(&journal.run.project_dir);
            seq = dispatch.seq;
            *dispatch_id = Some(dispatch.id);
        }
        let (rows, undo) = self.rows_of(&id, compensation.as_ref());
        let mut armed = Ok(Vec::new());
        if let Some(journal) = &self.journal {
            // The first row that cannot be armed ends this. Those before it stay armed, and the rollback undoes them.
            armed = rows.into_iter().map(|(text, what)| journal.arm(&id, &text, what)).collect();
        }
        // A task whose undo cannot be registered is not executed: it could not be undone.
        let is_armed = armed.is_ok();
        let (armed, mut result) = match armed {
            Err(error) => (Vec::new(), Err(error)),
            Ok(armed) => {
                if let Some(compensation) = compensation {
                    // Registered just before it runs, so that only executed tasks are undone.
                    self.armed.register(&id, compensation);
                }
                let result = caught(|| task.execute(&context));
                // Asked for even after a failure, because a task that failed half-way may have made things. The undo has to work without
                // them, too.
                context.outputs = caught(|| Ok(task.outputs())).unwrap_or_default();
                (armed, result)
            }
        };
        if let (Some(journal), Some(dispatch)) = (&self.journal, &*dispatch_id) {
            let undo = undo.filter(|_| is_armed);
            let recorded = journal.end(dispatch, &result, undo.as_deref(), &armed, &context);
            // If the run was rolled back in the meantime, recording fails: the work counts as failed, and is undone with the rest.
            result = result.and_then(|done| recorded.map(|()| done));
        }
        if is_armed {
            // Failed tasks are undone too. Only one that was not armed did not run.
            self.executed.push(Executed { context, seq });
        }
        result
    }

    /// The compensations of a task that become rows, and the description of what only this process can run.
    fn rows_of(
        &self,
        id: &TaskId,
        compensation: Option<&ToolCompensation>,
    ) -> (Vec<(String, Declared)>, Option<String>) {
        let durable = self.durable.get(id);
        let mut rows = durable.map(|durable| durable.rows.clone()).unwrap_or_default();
        let Some(compensation) = compensation else { return (rows, None) };
        let description = compensation.description.clone();
        match compensation.coverage() {
            EffectCoverage::Compensated if durable.is_some_and(|durable| durable.is_all) => (rows, None),
            EffectCoverage::Compensated => (rows, Some(description)),
            EffectCoverage::Skip => {
                let reason = Some(description.clone());
                rows.push((description, Declared::Action(EffectAction::Skip { reason })));
                (rows, None)
            }
            EffectCoverage::Undeclared | EffectCoverage::Pivot => (rows, None),
        }
    }

    pub(super) fn undo_tasks(&mut self) -> Result<(RollbackReport, Option<RollbackId>)> {
        // Closed first: while the run rolls back, no other process can advance it.
        self.journal.as_ref().map_or(Ok(()), Journal::close)?;
        let mut report = RollbackReport::default();
        for at in (0..self.executed.len()).rev() {
            // From the first failure on, tasks are only reported: earlier work may depend on what could not be undone.
            let result = self.undo_task(at, !report.is_success())?;
            report.results.extend(result);
        }
        let story = story(self.cause.as_deref().unwrap_or("the tasks were rolled back"), &report);
        let is_success = report.is_success();
        let mut id = None;
        if let Some(journal) = &mut self.journal {
            // The run stays closed, and a later `rollback` resumes with what is left.
            if !is_success {
                journal.stopped(&story)?;
            } else if let Some(problem) = journal.undo_since(journal.run.seq)? {
                // Compensations that were declared before the first task, by the command line or another program.
                return Err(problem);
            } else {
                id = Some(journal.settle(&story)?);
            }
        }
        // After a failure all of it stays, so that a later `rollback` finds what is left.
        if is_success {
            (self.is_begun, self.cause, self.executed) = (false, None, Vec::new());
        }
        Ok((report, id))
    }

    /// Undoes a task that was executed, its rows first. `is_stopped`: an undo has failed before, so this one is only reported as left.
    fn undo_task(&mut self, at: usize, is_stopped: bool) -> Result<Vec<TaskRollback>> {
        let Executed { context, seq } = &self.executed[at];
        let known = self.armed.get(&context.task_id);
        let outcome = if is_stopped {
            known.map_or(RollbackOutcome::Undeclared, |_| RollbackOutcome::Pending)
        } else if let Some(problem) = self.journal.as_ref().map_or(Ok(None), |journal| journal.undo_since(*seq))? {
            let (code, error) = (problem.code().as_str().to_owned(), problem.message().to_owned());
            RollbackOutcome::Failed { code, error }
        } else {
            // One at a time: the rows of the next task are undone between this one's function and its own.
            let context = std::slice::from_ref(context);
            return Ok(RollbackEngine::new().execute_rollback(context, &mut self.armed).results);
        };
        let description = known.map(|known| known.description.clone());
        Ok(vec![TaskRollback { task_id: context.task_id.clone(), description, outcome }])
    }
}

/// Runs a function of a task; a panic becomes an error, because the tasks before it still have to be undone.
fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let said = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown");
        Diagnosis::new(Code::Internal, format!("The task panicked: {text}."))
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(said(payload)))
}
