//! Starting a workflow, resuming one, rolling one back.

use std::sync::atomic::Ordering::Relaxed;

use ic_base::{Code, Diagnosis, ErrorKind, Result, RunId};
use ic_effects::coverage::{CompensationReport, EffectCoverage};
use ic_kernel::Kernel;
use ic_kernel::config::FailureConfig as Configured;
use ic_ledger::Snapshot;
use ic_ops::run::create_with;
use ic_phase::gate::Gates;
use ic_phase::run::NewRun;
use ic_phase::run_reference::{self, RunStanding};
use ic_phase::{Chain, Run};
use ic_worktree::{CaptureSettings, Warning, Workspace};

use crate::begun_rollback::is_unfinished;
use crate::definition::{Definition, StepAction, StepFailurePolicy};
use crate::executor::EndedStep;
use crate::flow::{Flow, WorkflowUi};
use crate::options::{Overrides, check, check_strategy, options};
use crate::permission::{may_resume, may_roll_back};
use crate::report::{UndoneSteps, WorkflowRunReport, WorkflowStatus};
use crate::show::{show, undone_alone, waits_for};
use crate::table::{self, StepFailure, StepRow, Workflow, WorkflowRowState, WorkflowStepState};
use crate::workflow_rollback;

/// The project in which a workflow is executed, and how.
#[derive(Clone, Copy)]
pub struct WorkflowSetup<'k> {
    /// The ledger in which the run is recorded.
    pub kernel: &'k Kernel,
    /// The settings by which checkpoints are taken.
    pub settings: &'k CaptureSettings,
    /// Whether the tree is captured before each step.
    pub checkpoints: bool,
    /// The project's choice after a failure, where neither call nor file makes one.
    pub configured: &'k Configured,
}

/// A check that refuses a call.
type May<'m> = &'m dyn Fn(&Snapshot<'_>, &Run, &Workflow) -> Result<()>;

/// The coverage of a workflow: what its file declares for each step.
pub fn plan(definition: &Definition) -> CompensationReport {
    let coverage = |action: &StepAction| match action {
        StepAction::Exec { .. } | StepAction::Shell(_) | StepAction::RestoreFile(_) | StepAction::KillProcess(_) => {
            EffectCoverage::Compensated
        }
        StepAction::Skip(_) | StepAction::Retry(_) => EffectCoverage::Skip,
        StepAction::Pivot(_) => EffectCoverage::Pivot,
    };
    CompensationReport::new(definition.steps.iter().map(|step| {
        let declared = step.compensate.as_ref().map_or(EffectCoverage::Undeclared, |c| coverage(&c.action));
        (step.id.clone(), declared)
    }))
}

/// Whether [`run`] would begin now, so that a refusal comes before a run is created. Errors: those of `run`.
pub fn require_startable(
    kernel: &Kernel,
    settings: &CaptureSettings,
    definition: &Definition,
    overrides: &Overrides,
) -> Result<()> {
    check(definition, overrides)?;
    kernel.ledger.require_one_host("A workflow")?;
    Chain::parse(&definition.phases.join(","))?;
    kernel.require_current_caller()?;
    // Otherwise a run would stay behind whose steps cannot be executed.
    Workspace::here(kernel, settings).map(|_| ())
}

/// Starts a workflow and runs it until it ends or stops.
///
/// Errors: `invalid_value` for a strategy that its parallel steps do not allow, and those of opening the ledger. The failure of a step is
/// no error: it is in the report.
pub fn run(
    setup: &WorkflowSetup<'_>,
    definition: &Definition,
    overrides: &Overrides,
    ui: &mut dyn WorkflowUi,
) -> Result<WorkflowRunReport> {
    let WorkflowSetup { kernel, settings, checkpoints, .. } = *setup;
    require_startable(kernel, settings, definition, overrides)?;
    let options = options(definition, overrides, None);
    let new = NewRun {
        goal: definition.goal.clone(),
        chain: Chain::parse(&definition.phases.join(","))?,
        project_dir: kernel.project.directory.clone(),
        complexity: None,
        auto_advance: true,
        gates: Gates::default(),
        scope_id: None,
        metadata: serde_json::json!({ "workflow": definition.name }).to_string(),
    };
    let capturing = settings.clone().capturing(checkpoints).of_workflow(&definition.name);
    // One transaction makes run and workflow: no process sees the run without its steps.
    let created = create_with(kernel, &new, Some(&capturing), |tx, now, run| {
        table::insert(tx, now, &run.id, &definition.name, &definition.text, &options)
    })?;
    for warning in &created.warnings {
        ui.warn(warning);
    }
    let mut flow = Flow::take(kernel, settings, checkpoints, &created.run.id)?;
    flow.saga.interrupted = overrides.interrupted.clone();
    setup.go_on(flow, overrides, ui)
}

/// Resumes a workflow: finished steps are kept, interrupted or failed ones run again, and a rollback that was begun is finished.
///
/// Errors: `work_running` while another process executes it, `nothing_to_resume` when there is nothing to resume.
pub fn resume(
    setup: &WorkflowSetup<'_>,
    reference: &str,
    overrides: &Overrides,
    ui: &mut dyn WorkflowUi,
) -> Result<WorkflowRunReport> {
    setup.kernel.ledger.require_one_host("A workflow")?;
    let run = setup.of(reference, overrides, &may_resume)?;
    if is_unfinished(&run) {
        return setup.finish_rollback(&run, overrides, ui);
    }
    let mut flow = setup.take(&run.id, overrides, &may_resume)?;
    // Before anything is chosen: a step that a dead executor left running counts as interrupted, and runs again.
    flow.lose_running()?;
    let bad = flow.in_state(&[WorkflowStepState::Failed, WorkflowStepState::Interrupted]);
    if overrides.on_failure == Some(StepFailurePolicy::Rollback) && !bad.is_empty() {
        let failed = flow.failure(&bad.into_iter().collect::<Vec<_>>());
        // On record before the rollback, which reads from it why it is made.
        flow.set_state(WorkflowRowState::Stopped, failed.as_ref())?;
        return setup.roll_back_if_it_can_be(flow, overrides, ui);
    }
    let mut again =
        flow.in_state(&[WorkflowStepState::Failed, WorkflowStepState::Interrupted, WorkflowStepState::Skipped]);
    // A step whose effect alone was undone has to make it anew.
    again.extend(flow.undone()?);
    for at in again {
        flow.forget(at);
    }
    flow.set_state(WorkflowRowState::Running, None)?;
    setup.go_on(flow, overrides, ui)
}

/// Rolls a whole workflow back, a successful one too (seed 000: US-2, AC-4), or resumes its rollback.
///
/// Errors: `work_running`, `pivot`, `nothing_to_roll_back` when nothing was done.
pub fn rollback(
    setup: &WorkflowSetup<'_>,
    reference: &str,
    overrides: &Overrides,
    ui: &mut dyn WorkflowUi,
) -> Result<WorkflowRunReport> {
    let WorkflowSetup { kernel, settings, .. } = *setup;
    kernel.ledger.require_one_host("A workflow")?;
    let may = |snapshot: &Snapshot<'_>, run: &Run, _: &Workflow| may_roll_back(snapshot, run, overrides);
    let run = setup.of(reference, overrides, &may)?;
    if is_unfinished(&run) {
        return setup.finish_rollback(&run, overrides, ui);
    }
    // If no step runs, there is no process to end first, and the engine decides alone.
    let is_running = |row: &StepRow| row.is_running();
    if !kernel.read(|snapshot| table::steps(snapshot, &run.id, run.epoch))?.iter().any(is_running) {
        return workflow_rollback::roll_back(kernel, settings, &run.id, false, overrides, ui);
    }
    // Its executor lives, which refuses this, or died. Other refusals must come before the processes that it left are ended.
    let (_, seen) = workflow_rollback::look(kernel, settings, &run.id, overrides)?;
    if let Some(refusal) = seen.refusals.into_iter().next() {
        return Err(refusal.error);
    }
    setup.take(&run.id, overrides, &may)?.lose_running()?;
    let mut overrides = overrides.clone();
    if overrides.expect_plan.take().is_some() {
        // The caller approved the plan from before its steps were recorded as interrupted.
        overrides.expect_plan =
            Some(workflow_rollback::look(kernel, settings, &run.id, &overrides)?.1.rollback.plan_hash);
    }
    workflow_rollback::roll_back(kernel, settings, &run.id, false, &overrides, ui)
}

/// The run of a call that names none: the active one of this project, or else that of the workflow that was started last in it. Errors:
/// `ambiguous_run` if several are active, `run_not_found` if no workflow was ever started here.
pub fn last(kernel: &Kernel) -> Result<RunId> {
    let project = &kernel.project;
    kernel.read(|snapshot| {
        // The caller means a workflow, so an idle one counts like any other.
        if let Some(run) = run_reference::current(snapshot, project, &|_, _, _| Ok(RunStanding::Busy))? {
            return Ok(run.id);
        }
        let levels = project.directory.ancestors().take_while(|level| level.starts_with(&project.root));
        for level in levels {
            if let Some(run) = table::last_of_project(snapshot, level)? {
                return Ok(run);
            }
        }
        let moved = run_reference::moved_from(snapshot)?;
        Err(Diagnosis::new(Code::RunNotFound, format!("No workflow was ever started in {}.", project.root.display()))
            .hint(moved.unwrap_or_else(|| "name its run: ic run list".to_owned())))
    })
}

/// Whether a rollback of this workflow was begun and not finished, so that resuming it writes into the tree.
pub fn is_rolling_back(kernel: &Kernel, reference: &str) -> Result<bool> {
    show(kernel, reference).map(|report| report.status == WorkflowStatus::RollingBack)
}

/// Whether a failed step, and not a person, began the last rollback of this workflow.
pub fn is_rolling_back_a_failure(kernel: &Kernel, reference: &str) -> Result<bool> {
    kernel.read(|snapshot| {
        let run = kernel.run(snapshot, reference)?;
        let workflow = table::get(snapshot, &run.id)?;
        // The workflow's own row is written late: the rollback may be finished, or the run closed, before it says so.
        let begun = ic_kernel::journal::table::newest_of(snapshot, &run.id)?;
        let Some(reason) = begun.and_then(|rollback| rollback.reason) else {
            return Ok(workflow.failed_step.is_some());
        };
        let mut steps = workflow.parsed()?.steps.into_iter();
        Ok(steps.any(|step| reason.starts_with(&workflow_rollback::reason_of_failure(&step.id))))
    })
}

impl<'k> WorkflowSetup<'k> {
    /// The workflow that a call names, if `may` allows the call.
    fn of(&self, reference: &str, overrides: &Overrides, may: May<'_>) -> Result<Run> {
        self.kernel.read(|snapshot| {
            let run = self.kernel.run(snapshot, reference)?;
            let workflow = table::get(snapshot, &run.id)?;
            let definition = workflow.parsed()?;
            check_strategy(&definition, &options(&definition, overrides, Some(&workflow.options)))?;
            may(snapshot, &run, &workflow)?;
            Ok(run)
        })
    }

    /// Takes a workflow over, if `may` still allows that once the run is taken.
    fn take(&self, run: &RunId, overrides: &Overrides, may: May<'_>) -> Result<Flow<'k>> {
        let mut flow = Flow::take(self.kernel, self.settings, self.checkpoints, run)?;
        flow.saga.interrupted = overrides.interrupted.clone();
        // Asked again under the lock: another process may have resumed or rolled it back since.
        self.kernel.read(|snapshot| may(snapshot, &flow.run, &flow.workflow))?;
        let options = options(&flow.definition, overrides, Some(&flow.workflow.options));
        // A later call that names neither keeps this strategy and this number of jobs.
        flow.saga.write(|tx, _| table::set_options(tx, &flow.run.id, &options))?;
        flow.workflow.options = options;
        Ok(flow)
    }

    /// Resumes a rollback that was begun and not finished.
    fn finish_rollback(&self, run: &Run, overrides: &Overrides, ui: &mut dyn WorkflowUi) -> Result<WorkflowRunReport> {
        // `compensation run` closes a run without a journal. Every other one of a workflow has one, and is resumed by it.
        match workflow_rollback::adopt(self.kernel, self.settings, self.checkpoints, &run.id, overrides)? {
            Some(begun) => workflow_rollback::roll_back(self.kernel, self.settings, &run.id, true, &begun, ui),
            None => workflow_rollback::finish(self.kernel, self.settings, run, overrides, ui),
        }
    }

    fn go_on(&self, mut flow: Flow<'k>, overrides: &Overrides, ui: &mut dyn WorkflowUi) -> Result<WorkflowRunReport> {
        let said = flow.workflow.options.on_failure;
        // A rollback begins only once no step runs. So until then, its policy is to stop.
        let policy = if said == Some(StepFailurePolicy::Continue) {
            StepFailurePolicy::Continue
        } else {
            StepFailurePolicy::Stop
        };
        let ended = flow.execute(policy, ui).and_then(|ended| match ended {
            // If another process took the run, its decision counts.
            EndedStep::Failed(_) => self.kernel.read(|snapshot| flow.require_ours(snapshot)).map(|()| ended),
            EndedStep::Completed => Ok(ended),
        });
        if ended.is_err() {
            // The error that ended it is returned, also when the state cannot be recorded.
            let _ = flow.set_state(WorkflowRowState::Stopped, None);
        }
        let ended = match ended {
            // No step failed: the workflow waits, and its report tells for what.
            Err(error) if matches!(error.code(), Code::Paused | Code::GateBlocked) => {
                let hint = error.get_hint().unwrap_or_default();
                let message = format!("{} To resume: {hint}", error.message());
                ui.warn(&Warning { code: error.code().as_str(), message });
                let waits_for = self.kernel.read(|snapshot| {
                    // A step may have changed the run since it was read.
                    let run = ic_phase::run::get(snapshot, &flow.run.id)?;
                    waits_for(snapshot, &run, &table::get(snapshot, &run.id)?)
                })?;
                return Ok(WorkflowRunReport { waits_for, ..flow.report(WorkflowStatus::Stopped) });
            }
            ended => ended?,
        };
        let failed = match ended {
            EndedStep::Completed => {
                flow.capture("after the last step", true, ui);
                flow.set_state(WorkflowRowState::Completed, None)?;
                return Ok(flow.report(WorkflowStatus::Completed));
            }
            EndedStep::Failed(failed) => failed,
        };
        let Some(failure) = flow.failure(&failed) else {
            flow.set_state(WorkflowRowState::Stopped, None)?;
            return Ok(flow.report(WorkflowStatus::Stopped));
        };
        flow.capture(&format!("after the failure of the step {}", failure.step), true, ui);
        // An interruption stops the whole workflow, so it is no failure that others may continue after.
        let was_interrupted = !flow.in_state(&[WorkflowStepState::Interrupted]).is_empty();
        if said == Some(StepFailurePolicy::Continue) && !was_interrupted {
            flow.set_state(WorkflowRowState::Failed, Some(&failure))?;
            return Ok(flow.report(WorkflowStatus::Failed));
        }
        flow.set_state(WorkflowRowState::Stopped, Some(&failure))?;
        if !self.wants_rollback(said, &failure, overrides, ui) {
            return Ok(flow.report(WorkflowStatus::Stopped));
        }
        // The interruption was meant for the steps, and not for the rollback that was asked for after it.
        overrides.interrupted.store(false, Relaxed);
        self.roll_back_if_it_can_be(flow, overrides, ui)
    }

    /// The decision of this call or of the file; else the answer of the person; else the configuration.
    fn wants_rollback(
        &self,
        said: Option<StepFailurePolicy>,
        failure: &StepFailure,
        overrides: &Overrides,
        ui: &mut dyn WorkflowUi,
    ) -> bool {
        match said {
            Some(said) => said == StepFailurePolicy::Rollback,
            None if self.configured.auto_rollback => true,
            None if self.configured.prompt => {
                // An interruption of the question ends this process: the stop of the workflow is recorded by then.
                overrides.interrupted.store(true, Relaxed);
                ui.ask_rollback(&failure.step, &failure.error).unwrap_or(false)
            }
            None => false,
        }
    }

    /// Rolls back a workflow that this process executed. If it may not be rolled back (its last effect cannot be undone, others changed its
    /// files), it stays where it is.
    fn roll_back_if_it_can_be(
        &self,
        flow: Flow<'k>,
        overrides: &Overrides,
        ui: &mut dyn WorkflowUi,
    ) -> Result<WorkflowRunReport> {
        let (run, stopped) = (flow.run.clone(), flow.report(WorkflowStatus::Stopped));
        let strategy = flow.workflow.options.strategy;
        // The rollback takes the run itself, so the lock must be free.
        drop(flow);
        let overrides = Overrides { strategy: Some(strategy), ..overrides.clone() };
        workflow_rollback::roll_back(self.kernel, self.settings, &run.id, true, &overrides, ui).or_else(|error| {
            // Only a refusal changed nothing; after any other error the run may be closed.
            if error.code().kind() != ErrorKind::No {
                return Err(error);
            }
            let taken = UndoneSteps {
                strategy,
                compensations: Vec::new(),
                left: Vec::new(),
                restored: None,
                rows: None,
                rollback_id: None,
                to_phase: run.phase,
                before_steps: Vec::new(),
                not_undone: Vec::new(),
                error: Some(error.message().to_owned()),
                hint: error.get_hint().map(str::to_owned),
            };
            Ok(WorkflowRunReport { rollback: Some(taken), ..stopped })
        })
    }
}

impl Flow<'_> {
    /// Lets a step begin again as if it had not been begun; its dispatch and its compensation are used again.
    fn forget(&mut self, at: usize) {
        if let Some(row) = self.rows.get_mut(&at) {
            row.state = WorkflowStepState::Pending;
        }
    }

    /// The steps that succeeded and whose effects alone were, or may have been, undone since.
    fn undone(&self) -> Result<Vec<usize>> {
        let all = self.kernel.read(|snapshot| ic_effects::compensation::list(snapshot, &self.run.id))?;
        let undone = self.rows.iter().filter(|(_, row)| undone_alone(&all, row).is_some());
        Ok(undone.map(|(at, _)| *at).collect())
    }
}
