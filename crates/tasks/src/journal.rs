//! The run of a ledger that tells the story of tasks, and the compensations of theirs that are rows.
//!
//! The run's lock and token are held as long as the executor lives: nobody else compensates the run meanwhile.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, Seq};
use ic_dispatch::Dispatch;
use ic_dispatch::dispatch::{self, Ending, Work};
use ic_events::{Cut, EventType, NewEvent};
use ic_kernel::Kernel;
use ic_ops::advance;
use ic_phase::gate::Gates;
use ic_phase::run::NewRun;
use ic_phase::{Chain, Run};
use ic_rollback::compensation::{self, Declaration, Declared, Saga, Scope, Sink};
use ic_saga::compensation::{self as rows, Compensation, State, StepEnd};
use ic_saga::order::FailurePolicy;
use ic_saga::process::ProcessIdentity;
use ic_worktree::{Settings, Workspace, paths_in_root};

use super::registry::{TaskContext, TaskError, TaskId, TaskResult};

/// All tasks are executed in one phase; the end of the chain is that all of them ended well.
const PHASES: &str = "executing,done";

/// The run that tasks are recorded in.
pub(super) struct Journal<'k> {
    saga: Saga<'k>,
    pub(super) run: Run,
}

/// Undone rows are reported with their task.
struct Quiet;

impl Sink for Quiet {
    fn begins(&mut self, _: &Compensation) {}
    fn ended(&mut self, _: &Compensation) {}
}

impl<'k> Journal<'k> {
    /// Begins a run; returns what went less well, too.
    pub(super) fn begin(
        kernel: &'k Kernel,
        settings: &'k Settings,
        name: &str,
    ) -> Result<(Self, Vec<String>)> {
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
        let created = ic_ops::run::create(kernel, &new, Some(settings))?;
        let warnings = created.warnings.into_iter().map(|warning| warning.message).collect();
        let saga = Saga::take(kernel, settings, &created.run.id)?;
        Ok((Self { saga, run: created.run }, warnings))
    }

    /// Records that a task begins.
    pub(super) fn start(&mut self, task: &TaskId) -> Result<Dispatch> {
        let id: DispatchId = self.saga.kernel.context.new_id();
        // Others may have taken it back since.
        self.run = self.saga.run()?;
        self.run.require_active()?;
        let work = Work { name: Some(task.to_string()), ..Work::default() };
        let own = ProcessIdentity::of(std::process::id())?.map(|own| ic_kernel::worker::process_of(&own));
        self.saga.write(|tx, now| {
            let made = dispatch::create(tx, now, &id, &self.run.id, self.run.epoch, &self.run.phase, &work)?;
            dispatch::start(tx, now, &made, own.as_ref())
        })
    }

    /// Registers and arms a compensation of a task that is about to be executed.
    pub(super) fn arm(&self, task: &TaskId, description: &str, declared: Declared) -> Result<Compensation> {
        let declaration = Declaration {
            run: self.run.id.as_str(),
            step: task.as_str(),
            declared,
            description: Some(description),
        };
        compensation::add(self.saga.kernel, self.saga.settings, &declaration)
    }

    /// Records how a task ended. `undo`: what only this process can run to undo it.
    ///
    /// Errors: `stale_dispatch` if somebody took the run back meanwhile.
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
            Ok(TaskResult::Skipped { reason }) => {
                (StepEnd::Succeeded, with_undo(Some(format!("skipped: {reason}"))))
            }
            Err(error) => (StepEnd::Failed, with_undo(Some(error.message().to_owned()))),
        };
        let text = text.join("; ");
        let ending = match end {
            StepEnd::Succeeded => {
                Ending::Completed { summary: Some(&*text).filter(|text| !text.is_empty()), verdict: None }
            }
            StepEnd::Failed => Ending::Failed { error: &text },
        };
        let text_of =
            |(key, value): (&String, &std::ffi::OsString)| Some((key.clone(), value.to_str()?.to_owned()));
        let outputs = context.outputs.iter().filter_map(text_of).collect();
        self.saga.write(|tx, now| {
            dispatch::finish(tx, now, &dispatch::get(tx, dispatch)?, &ending)?;
            armed.iter().try_for_each(|row| rows::end_step(tx, now, row, Some(end), &outputs, &row.action))
        })
    }

    /// Records that every task ended well. Errors: `stale_phase` if somebody took the run back meanwhile.
    pub(super) fn complete(&mut self) -> Result<()> {
        advance::one_phase(self.saga.kernel, &self.run, self.saga.settings)?;
        self.run = self.saga.run()?;
        Ok(())
    }

    /// Closes the run: it is taken back.
    pub(super) fn close(&self) -> Result<()> {
        self.saga.close()
    }

    /// Undoes what was armed after `seq`, newest first. Returns why it came no further, if it did not.
    pub(super) fn undo_since(&self, seq: Seq) -> Result<Option<Diagnosis>> {
        let run = self.saga.run()?;
        let scope = Scope::After(Cut {
            run_id: run.id.clone(),
            seq,
            phases: Vec::new(),
            only: None,
            descendants: Vec::new(),
        });
        let plan = self.saga.kernel.read(|snapshot| compensation::plan(snapshot, &run, &scope, false))?;
        if plan.undo().next().is_some() {
            let undoing = self.saga.undo(&plan, FailurePolicy::Stop, None, &mut Quiet)?;
            if let Some(failed) = undoing.results.iter().find(|row| row.state == State::Failed) {
                let why = failed.last_error.as_deref().unwrap_or("its undo failed");
                return Ok(Some(
                    Diagnosis::new(Code::Conflict, format!("{} could not be undone: {why}.", failed.step))
                        .detail("compensation_id", failed.id.as_str()),
                ));
            }
        }
        let beyond = |pivot: &String| format!("{pivot} cannot be undone, nor what was done before it.");
        Ok(plan.pivot.as_ref().map(|pivot| Diagnosis::new(Code::Conflict, beyond(pivot))))
    }

    /// The end of a rollback, in one transaction: the run is open again at its first phase, and what it did is marked.
    pub(super) fn settle(&mut self, reason: &str) -> Result<RollbackId> {
        let id: RollbackId = self.saga.kernel.context.new_id();
        self.saga.write(|tx, now| {
            self.saga.reopen_in(tx, now)?;
            let run = ic_phase::run::get(tx, &self.run.id)?;
            let first = run.chain.first().to_owned();
            ic_rollback::take_back(tx, now, &id, run, (&first, true), Some(reason))?;
            rows::mark_rolled_back(tx, &self.run.id, &id)
        })?;
        self.run = self.saga.run()?;
        Ok(id)
    }

    /// Records that a rollback waits: what only this process can undo, it has failed to undo.
    pub(super) fn stopped(&self, reason: &str) -> Result<()> {
        let event = NewEvent {
            reason: Some(reason),
            ..NewEvent::of(&self.run.id, self.run.epoch, EventType::RollbackStopped)
        };
        self.saga.write(|tx, now| ic_events::append(tx, now, &event).map(|_| ()))
    }

    /// Whether a row can say how a file is put back: it lies in the run's tree.
    pub(super) fn covers(&self, path: &Path) -> bool {
        Workspace::of_run(self.saga.kernel, &self.run, self.saga.settings)
            .is_ok_and(|workspace| paths_in_root(&workspace, &[PathBuf::from(path)]).is_ok())
    }
}
