//! The outcome of a workflow.

use std::path::PathBuf;

use ic_base::{CheckpointId, CompensationId, RollbackId, RunId};
use ic_effects::Compensation;
use ic_ops::status::HeldPhase;
use ic_undo::Data;

use crate::definition::Strategy;
use crate::flow::Flow;
use crate::table::{StepRow, Workflow, WorkflowRowState, WorkflowStepState};

ic_base::words! {
    /// The outcome of the workflow as a whole.
    pub enum WorkflowStatus {
        /// It runs, or its executor died.
        Running = "running",
        /// Every step succeeded, and the run is at its end.
        Completed = "completed",
        /// It ended without the steps that failed and those that need them.
        Failed = "failed",
        /// It was rolled back as a whole.
        RolledBack = "rolled_back",
        /// It was rolled back, and a part of its changes stays.
        RolledBackInPart = "rolled_back_in_part",
        /// It is rolled back in part; the rest can be resumed.
        RollingBack = "rolling_back",
        /// It waits before its next step.
        Stopped = "stopped",
        /// Its run was cancelled.
        Cancelled = "cancelled",
    }
}

/// Whether an effect was undone by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectUndone {
    /// Its undo was carried out with success.
    Yes,
    /// The process of its undo died in the middle, so it is not known.
    Perhaps,
}

/// A step, with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// The name of the step.
    pub id: String,
    /// The phase in which it runs.
    pub phase: String,
    /// How far it came.
    pub state: WorkflowStepState,
    /// Whether it succeeded and was rolled back since, or its effect is undone and the rest of its rollback is to come.
    pub is_rolled_back: bool,
    /// Whether a rollback undid its work, and it was not begun again since.
    pub is_undone: bool,
    /// Whether it is undone except for its effect outside of the project, which was skipped.
    pub is_effect_left: bool,
    /// It succeeded and stands, and only its effect was, or may have been, undone since: a resume of the workflow runs it again. `None`: it
    /// is not so.
    pub effect_undone: Option<EffectUndone>,
    /// The row of its last attempt; `None`: it was never begun.
    pub row: Option<StepRow>,
}

impl StepReport {
    /// The word for its state in text and in JSON.
    pub fn shown(&self) -> &'static str {
        if self.is_rolled_back { "rolled_back" } else { self.state.as_str() }
    }
}

/// The changes of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint that was restored.
    pub checkpoint_id: CheckpointId,
    /// The number of changed files.
    pub changes: usize,
    /// Whether git's state was changed.
    pub git: bool,
    /// Paths that could not be changed, and why.
    pub failed: Vec<(PathBuf, String)>,
    /// Paths that were left, and why.
    pub skipped: Vec<(PathBuf, String)>,
    /// Paths that were left because they cannot be compared with the checkpoint, and why.
    pub not_compared: Vec<(PathBuf, String)>,
    /// What the checkpoint's tree had at a path and is not restored.
    pub not_kept: Vec<(PathBuf, String)>,
    /// Paths that differ from the checkpoint after the restore, and why; git's state is named `.git`.
    pub differs: Vec<(PathBuf, String)>,
    /// Other work trees that were made or removed since, or whose files the checkpoint has. They are not changed.
    pub work_trees: Vec<(PathBuf, String)>,
    /// Repositories whose files are restored and whose history is not, with the command that moves it.
    pub repositories: Vec<(PathBuf, String)>,
}

/// The rollback of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneSteps {
    /// The part of the tree that was to be restored.
    pub strategy: Strategy,
    /// The undone effects, in the order of undoing.
    pub compensations: Vec<Compensation>,
    /// Effects that were not undone.
    pub left: Vec<CompensationId>,
    /// The changes to the tree; `None`: the rollback did not reach it.
    pub restored: Option<Restored>,
    /// Rows of the application's tables that were removed.
    pub rows: Option<Data>,
    /// The rollback of the run; `None`: none was begun.
    pub rollback_id: Option<RollbackId>,
    /// The phase of the run after it.
    pub to_phase: String,
    /// The steps before which the workflow is after it; empty: before the first one, or where it was.
    pub before_steps: Vec<String>,
    /// The undone steps whose files stay, because no checkpoint has the tree from before them and they declare no undo.
    pub not_undone: Vec<String>,
    /// Why it stopped; `None`: it did not.
    pub error: Option<String>,
    /// The commands that can follow a stop.
    pub hint: Option<String>,
}

/// The outcome of a workflow, with its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRunReport {
    /// The run of the workflow.
    pub run_id: RunId,
    /// The name in the workflow's file.
    pub workflow: String,
    /// The outcome as a whole.
    pub status: WorkflowStatus,
    /// Its steps, in the order of its file.
    pub steps: Vec<StepReport>,
    /// The step that failed first; `None`: none failed.
    pub failed_step: Option<String>,
    /// The reason of that failure.
    pub error: Option<String>,
    /// The step with which a resume begins after a rollback that left earlier steps standing.
    pub ahead: Option<String>,
    /// What blocks its run before the phase of its next step, if it waits for that.
    pub waits_for: Option<HeldPhase>,
    /// Its rollback, where this call made or resumed one.
    pub rollback: Option<UndoneSteps>,
}

impl From<WorkflowRowState> for WorkflowStatus {
    fn from(state: WorkflowRowState) -> Self {
        match state {
            WorkflowRowState::Running => Self::Running,
            WorkflowRowState::Stopped => Self::Stopped,
            WorkflowRowState::Failed => Self::Failed,
            WorkflowRowState::Completed => Self::Completed,
        }
    }
}

impl WorkflowRunReport {
    /// The report on a workflow with these steps.
    pub(crate) fn of(workflow: &Workflow, steps: Vec<StepReport>) -> Self {
        Self {
            run_id: workflow.run_id.clone(),
            workflow: workflow.name.clone(),
            status: workflow.state.into(),
            steps,
            failed_step: workflow.failed_step.clone(),
            error: workflow.error.clone(),
            ahead: None,
            waits_for: None,
            rollback: None,
        }
    }
}

impl Flow<'_> {
    /// The report on the steps of this epoch, with `status`.
    pub(crate) fn report(&self, status: WorkflowStatus) -> WorkflowRunReport {
        let steps = self.definition.steps.iter().map(|step| {
            let row = self.rows.values().find(|row| row.step == step.id).cloned();
            let state = row.as_ref().map_or(WorkflowStepState::Pending, |row| row.state);
            // The rows of an executor are those that stand, so none of them is rolled back.
            StepReport {
                id: step.id.clone(),
                phase: step.phase.clone(),
                state,
                is_rolled_back: false,
                is_undone: false,
                effect_undone: None,
                is_effect_left: false,
                row,
            }
        });
        WorkflowRunReport { status, ..WorkflowRunReport::of(&self.workflow, steps.collect()) }
    }
}
