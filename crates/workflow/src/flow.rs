//! A workflow that this process executes: its run, its definition, and the state of each step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ic_base::{Code, Diagnosis, Result, RunId};
use ic_checkpoint::git;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointLink;
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, path_bytes};
use ic_phase::Run;
use ic_undo::compensation::{Saga, Sink};
use ic_worktree::{CaptureSettings, StepShot, Warning, Workspace};

use crate::definition::Definition;
use crate::graph::StepOrder;
use crate::table::{self, StepFailure, StepRow, Workflow, WorkflowRowState, WorkflowStepState};

/// The caller's view of a workflow, which also answers questions.
pub trait WorkflowUi: Sink {
    /// An attempt of a step begins: the `at`-th of `of` steps.
    fn step_begins(&mut self, step: &str, attempt: i64, at: usize, of: usize);
    /// A step wrote output.
    fn output(&mut self, step: &str, bytes: &[u8]);
    /// An attempt of a step ended; another one follows if the row is still `running`.
    fn step_ended(&mut self, row: &StepRow);
    /// Something went less well than it should have, but is no failure.
    fn warn(&mut self, warning: &Warning);
    /// Files, or git's state, are about to be restored.
    fn restoring(&mut self, what: &str);
    /// Whether to roll back; `None` if no person can be asked.
    fn ask_rollback(&mut self, step: &str, error: &str) -> Option<bool>;
}

/// A workflow that this process executes.
pub(crate) struct Flow<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) settings: &'k CaptureSettings,
    /// Whether checkpoints are taken before the steps.
    pub(crate) checkpoints: bool,
    pub(crate) saga: Saga<'k>,
    pub(crate) workspace: Workspace<'k>,
    pub(crate) workflow: Workflow,
    pub(crate) definition: Definition,
    pub(crate) plan: StepOrder,
    pub(crate) run: Run,
    /// The steps that were begun or skipped in this epoch, by their index in the definition.
    pub(crate) rows: BTreeMap<usize, StepRow>,
    /// The commit that was checked out when HEAD was read last.
    pub(crate) head: Option<String>,
}

/// The working tree of a workflow's run. Errors: `foreign_root` when the caller is in another one.
pub(crate) fn workspace_here<'k>(
    kernel: &'k Kernel,
    settings: &'k CaptureSettings,
    run: &Run,
) -> Result<Workspace<'k>> {
    let workspace = Workspace::of_run(kernel, run, settings)?;
    if workspace.root == kernel.project.root {
        return Ok(workspace);
    }
    let root = workspace.root.display();
    Err(Diagnosis::new(Code::ForeignRoot, format!("The workflow works in {root}, not here."))
        .hint(format!("go there: ic -C {root} ...")))
}

impl<'k> Flow<'k> {
    /// Takes a workflow over, at the step that it has reached.
    ///
    /// Errors: `work_running` while another process executes it, `foreign_root` when the caller is in another tree.
    pub(crate) fn take(
        kernel: &'k Kernel,
        settings: &'k CaptureSettings,
        checkpoints: bool,
        run_id: &RunId,
    ) -> Result<Self> {
        let run = kernel.read(|snapshot| ic_phase::run::get(snapshot, run_id))?;
        let workspace = workspace_here(kernel, settings, &run)?;
        let saga = Saga::take(kernel, settings, run_id)?;
        // What a dead executor left running would work beside the steps that begin now.
        saga.end_children()?;
        // Read again: the process that had the run until now may have changed it.
        let run = saga.run()?;
        let workflow = kernel.read(|snapshot| table::get(snapshot, run_id))?;
        let definition = workflow.parsed()?;
        let plan = StepOrder::of(&definition);
        let head = git::head(&workspace.root);
        let mut flow = Self {
            kernel,
            settings,
            checkpoints,
            saga,
            workspace,
            workflow,
            definition,
            plan,
            run,
            rows: BTreeMap::new(),
            head,
        };
        flow.read_rows()?;
        Ok(flow)
    }

    fn read_rows(&mut self) -> Result<()> {
        let rows = self.kernel.read(|snapshot| table::steps(snapshot, &self.run.id, self.run.epoch))?;
        let place = |row: &StepRow| self.definition.steps.iter().position(|step| step.id == row.step);
        // The definition is the one in the workflow's row, so every step on record has its place in it.
        self.rows = rows.into_iter().filter_map(|row| Some((place(&row)?, row))).collect();
        Ok(())
    }

    /// Errors: `stale_phase` if the run was rolled back since it was taken, `run_not_active` if it was cancelled.
    pub(crate) fn require_ours(&self, snapshot: &Snapshot<'_>) -> Result<()> {
        let run = ic_phase::run::get(snapshot, &self.run.id)?;
        // A cancelled run keeps its epoch, so its status is asked for as well.
        run.require_active()?;
        if run.epoch == self.run.epoch {
            return Ok(());
        }
        let short = run.id.short();
        Err(Diagnosis::new(
            Code::StalePhase,
            format!("The run {short} was rolled back while its workflow was executed: no further step is started."),
        )
        .hint(format!("to resume from {}: ic workflow resume {short}", run.phase))
        .detail("run_id", run.id.as_str()))
    }

    pub(crate) fn in_state(&self, states: &[WorkflowStepState]) -> BTreeSet<usize> {
        self.rows.iter().filter(|(_, row)| states.contains(&row.state)).map(|(at, _)| *at).collect()
    }

    /// The link of a checkpoint around a step.
    pub(crate) fn link(&self, at: usize, message: String) -> CheckpointLink {
        let step = &self.definition.steps[at];
        CheckpointLink {
            message: Some(message),
            workflow: Some(self.definition.name.clone()),
            run_id: Some(self.run.id.clone()),
            phase: Some(step.phase.clone()),
            step: i64::try_from(at + 1).ok(),
            step_name: Some(step.id.clone()),
            ..CheckpointLink::default()
        }
    }

    /// Captures the tree before a step; `None` if no checkpoints are taken.
    pub(crate) fn shoot(&self, at: usize, message: String) -> Result<Option<StepShot>> {
        if !self.checkpoints {
            return Ok(None);
        }
        StepShot::take(&self.workspace, self.link(at, message)).map(Some)
    }

    /// Captures the tree where no step runs. `is_end`: later changes are not the workflow's. A capture that fails is a warning.
    pub(crate) fn capture(&self, message: &str, is_end: bool, ui: &mut dyn WorkflowUi) {
        if !self.checkpoints {
            return;
        }
        let link = CheckpointLink {
            message: Some(message.to_owned()),
            workflow: Some(self.definition.name.clone()),
            run_id: Some(self.run.id.clone()),
            phase: Some(self.run.phase.clone()),
            ..CheckpointLink::default()
        };
        let take = if is_end { StepShot::take_settled } else { StepShot::take };
        let captured = take(&self.workspace, link)
            .and_then(|shot| self.saga.write(|tx, now| shot.record(tx, now, self.run.epoch).map(|_| ())));
        if let Err(problem) = captured {
            let message = format!("the tree was not captured {message}: {}", problem.message());
            ui.warn(&Warning { code: "not_captured", message });
        }
    }

    /// The path from the top of the tree, of a path in the definition, which starts at the project's directory.
    pub(crate) fn below_root(&self, path: &Path) -> PathText {
        let project = std::fs::canonicalize(&self.run.project_dir).unwrap_or_else(|_| self.run.project_dir.clone());
        let below = project.strip_prefix(&self.workspace.root).unwrap_or(Path::new("")).join(path);
        PathText(path_bytes(&below).to_vec())
    }

    pub(crate) fn set_state(&mut self, state: WorkflowRowState, failed: Option<&StepFailure>) -> Result<()> {
        self.saga.write(|tx, now| table::set_state(tx, now, &self.run.id, state, failed))?;
        self.workflow.state = state;
        self.workflow.failed_step = failed.map(|failed| failed.step.clone());
        self.workflow.error = failed.map(|failed| failed.error.clone());
        Ok(())
    }

    /// The first step that failed or was interrupted, and the reason.
    pub(crate) fn failure(&self, steps: &[usize]) -> Option<StepFailure> {
        let is_bad = |state| {
            matches!(state, WorkflowStepState::Failed | WorkflowStepState::Interrupted | WorkflowStepState::Running)
        };
        let row = steps.iter().filter_map(|at| self.rows.get(at)).find(|row| is_bad(row.state))?;
        let error = row.error.clone().unwrap_or_else(|| "it was interrupted".to_owned());
        Some(StepFailure { step: row.step.clone(), error })
    }
}
