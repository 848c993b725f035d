//! The run of a ledger that records tasks, and their compensations that are rows.
//!
//! The run is locked as long as the executor lives, so that no other process compensates it.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, Seq};
use ic_dispatch::Dispatch;
use ic_dispatch::dispatch::{self, DispatchEnding, DispatchWork};
use ic_dispatch::process::ProcessIdentity;
use ic_effects::compensation::{self as rows, Compensation, CompensationState, StepEnd};
use ic_effects::order::FailurePolicy;
use ic_kernel::Kernel;
use ic_ledger::events::{Cut, EventType, NewEvent};
use ic_ops::advance;
use ic_phase::gate::Gates;
use ic_phase::run::NewRun;
use ic_phase::{Chain, Run};
use ic_undo::compensation::{self, Declaration, Declared, EffectScope, Saga, Sink};
use ic_worktree::{CaptureSettings, Workspace, paths_in_root};

use super::registry::{TaskContext, TaskError, TaskId, TaskResult};

/// The chain of the run: all tasks are executed in the first phase, and the last one means that all succeeded.
const PHASES: &str = "executing,done";

/// The run in which the tasks are recorded.
pub(super) struct Journal<'k> {
    saga: Saga<'k>,
    pub(super) run: Run,
}

/// Prints nothing: the report names undone rows with their tasks.
struct Quiet;

impl Sink for Quiet {
    fn begins(&mut self, _: &Compensation) {}
    fn ended(&mut self, _: &Compensation) {}
}

impl<'k> Journal<'k> {
    /// Begins a run, and returns warnings, too.
    pub(super) fn begin(kernel: &'k Kernel, settings: &'k CaptureSettings, name: &str) -> Result<(Self, Vec<String>)> {
        let new = NewRun {
            goal: name.to_owned(),
            chain: Chain::parse(PHASES)?,
            project_dir: kernel.project.directory.clone(),
            complexity: None,
            auto_advance: true,
            gates: Gates::default(),
            scope_id: None,
            metadata: serde_json::json!({ "tasks": name }).to_string(),
        };
        // The run is created before the lock, because the lock has the name of the run.
        let created = ic_ops::run::create(kernel, &new, Some(settings))?;
        let warnings = created.warnings.into_iter().map(|warning| warning.message).collect();
        // Locked until the executor is dropped: `ic compensation run` of another process waits or is refused.
        let saga = Saga::take(kernel, settings, &created.run.id)?;
        Ok((Self { saga, run: created.run }, warnings))
    }

    /// Records that a task begins. Errors: `run_not_active` if the run was rolled back since.
    pub(super) fn start(&mut self, task: &TaskId) -> Result<Dispatch> {
        let id: DispatchId = self.saga.kernel.context.new_id();
        // The run is read anew: another process may have rolled it back since the last task.
        self.run = self.saga.run()?;
        self.run.require_active()?;
        let work = DispatchWork { name: Some(task.to_string()), ..DispatchWork::default() };
        // With the process on record, others see whether the task's worker still lives.
        let own = ProcessIdentity::of(std::process::id())?.map(|own| ic_dispatch::worker::process_of(&own));
        self.saga.write(|tx, now| {
            let made = dispatch::create(tx, now, &id, &self.run.id, self.run.epoch, &self.run.phase, &work)?;
            dispatch::start(tx, now, &made, own.as_ref())
        })
    }

    /// Registers and arms a compensation of a task, before the task is executed.
    pub(super) fn arm(&self, task: &TaskId, description: &str, declared: Declared) -> Result<Compensation> {
        let declaration =
            Declaration { run: self.run.id.as_str(), step: task.as_str(), declared, description: Some(description) };
        compensation::add(self.saga.kernel, self.saga.settings, &declaration)
    }

    /// Records the outcome of a task. `undo`: the description of an undo that only this process can run.
    ///
    /// Errors: `stale_dispatch` if the run was rolled back in the meantime.
    pub(super) fn end(
        &self,
        dispatch: &DispatchId,
        result: &std::result::Result<TaskResult, TaskError>,
        undo: Option<&str>,
        armed: &[Compensation],
        context: &TaskContext,
    ) -> Result<()> {
        let undo = undo.map(|undo| format!("undo, in its process only: {undo}"));
        let with_undo = |text: Option<String>| text.into_iter().chain(undo.clone()).collect::<Vec<_>>();
        let (end, text) = match result {
            Ok(TaskResult::Success) => (StepEnd::Succeeded, with_undo(None)),
            Ok(TaskResult::Skipped { reason }) => (StepEnd::Succeeded, with_undo(Some(format!("skipped: {reason}")))),
            Err(error) => (StepEnd::Failed, with_undo(Some(error.message().to_owned()))),
        };
        let text = text.join("; ");
        let ending = match end {
            StepEnd::Succeeded => {
                DispatchEnding::Completed { summary: Some(&*text).filter(|text| !text.is_empty()), verdict: None }
            }
            StepEnd::Failed => DispatchEnding::Failed { error: &text },
        };
        // A row holds text. Outputs in another encoding reach only an undo of this process.
        let text_of = |(key, value): (&String, &std::ffi::OsString)| Some((key.clone(), value.to_str()?.to_owned()));
        let outputs = context.outputs.iter().filter_map(text_of).collect();
        self.saga.write(|tx, now| {
            // Both are in one transaction: no undo of an ended dispatch lacks the end of its step.
            dispatch::finish(tx, now, &dispatch::get(tx, dispatch)?, &ending)?;
            armed.iter().try_for_each(|row| rows::end_step(tx, now, row, Some(end), &outputs, &row.action))
        })
    }

    /// Records that every task succeeded. Errors: `stale_phase` if the run was rolled back in the meantime.
    pub(super) fn complete(&mut self) -> Result<()> {
        advance::one_phase(self.saga.kernel, &self.run, self.saga.settings)?;
        self.run = self.saga.run()?;
        Ok(())
    }

    /// Closes the run for its rollback.
    pub(super) fn close(&self) -> Result<()> {
        self.saga.close()
    }

    /// Undoes the compensations that were armed after `seq`, newest first. Returns the error that stopped it, if one did.
    pub(super) fn undo_since(&self, seq: Seq) -> Result<Option<Diagnosis>> {
        let run = self.saga.run()?;
        let scope = EffectScope::After(Cut { run_id: run.id.clone(), seq, phases: Vec::new(), works: Vec::new() });
        let plan = self.saga.kernel.read(|snapshot| compensation::plan(snapshot, &run, &scope, false))?;
        // With nothing to undo, nothing is written. A pivot is reported anyway.
        if plan.undo().next().is_some() {
            let undoing = self.saga.undo(&plan, FailurePolicy::Stop, None, &mut Quiet)?;
            if let Some(failed) = undoing.results.iter().find(|row| row.state == CompensationState::Failed) {
                let why = failed.last_error.as_deref().unwrap_or("its undo failed");
                return Ok(Some(
                    Diagnosis::new(Code::Conflict, format!("{} could not be undone: {why}.", failed.step))
                        .detail("compensation_id", failed.id.as_str()),
                ));
            }
        }
        // The pivot is reported only now: what came after it is undone before it stops the rest.
        let beyond = |pivot: &String| format!("{pivot} cannot be undone, nor what was done before it.");
        Ok(plan.pivot.as_ref().map(|pivot| Diagnosis::new(Code::Conflict, beyond(pivot))))
    }

    /// Ends a rollback in one transaction: the run is active at its first phase again, and its work is marked as rolled back.
    pub(super) fn settle(&mut self, reason: &str) -> Result<RollbackId> {
        let id: RollbackId = self.saga.kernel.context.new_id();
        self.saga.write(|tx, now| {
            // In one transaction with the rollback of the record: no other process sees the run open at its old phase.
            self.saga.reopen_in(tx, now)?;
            let run = ic_phase::run::get(tx, &self.run.id)?;
            let first = run.chain.first().to_owned();
            ic_undo::roll_back_record(tx, now, &id, run, (&first, true), Some(reason))?;
            rows::mark_rolled_back(tx, &self.run.id, &id)
        })?;
        self.run = self.saga.run()?;
        Ok(id)
    }

    /// Records that a rollback has stopped, because an undo that only this process can run has failed.
    pub(super) fn stopped(&self, reason: &str) -> Result<()> {
        let event =
            NewEvent { reason: Some(reason), ..NewEvent::of(&self.run.id, self.run.epoch, EventType::RollbackStopped) };
        self.saga.write(|tx, now| ic_ledger::events::append(tx, now, &event).map(|_| ()))
    }

    /// Whether a row can restore this file: it is in the run's tree.
    pub(super) fn covers(&self, path: &Path) -> bool {
        // If the tree cannot be opened, the file is kept in memory, as one outside of it.
        Workspace::of_run(self.saga.kernel, &self.run, self.saga.settings)
            .is_ok_and(|workspace| paths_in_root(&workspace, &[PathBuf::from(path)]).is_ok())
    }
}
