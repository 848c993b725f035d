//! What became of a workflow.

use std::path::PathBuf;

use ic_base::{CheckpointId, CompensationId, RollbackId, RunId};
use ic_ops::status::Held;
use ic_rollback::Data;
use ic_saga::Compensation;

use crate::definition::Strategy;
use crate::flow::Flow;
use crate::table::{State, StepRow, StepState, Workflow};

ic_base::words! {
    /// What became of it as a whole.
    pub enum Status {
        /// It goes on, or its executor died.
        Running = "running",
        /// Every step succeeded.
        Completed = "completed",
        /// It came to its end, without the steps that failed and those that need them.
        Failed = "failed",
        /// It was taken back.
        RolledBack = "rolled_back",
        /// It was rolled back, and something of it stays.
        RolledBackInPart = "rolled_back_in_part",
        /// It is taken back in part; what is left can be resumed.
        RollingBack = "rolling_back",
        /// It waits where it is.
        Stopped = "stopped",
        /// Its run was cancelled.
        Cancelled = "cancelled",
    }
}

/// Whether an effect is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectUndone {
    /// Its undo ended well.
    Yes,
    /// The process of its undo died in its midst: nobody knows.
    Perhaps,
}

/// A step, as far as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// Its name.
    pub id: String,
    /// Its phase.
    pub phase: String,
    /// How far it came.
    pub state: StepState,
    /// It ended well and was rolled back since, or its effect is undone and the rest of its rollback is to come.
    pub is_rolled_back: bool,
    /// A rollback took its work back, and it was not begun again since.
    pub is_undone: bool,
    /// It is undone, and what it did outside of the project is not: its effect was passed over.
    pub is_effect_left: bool,
    /// It ended well and stands, and its effect alone was undone since, or perhaps: resuming the workflow runs it again.
    pub effect_undone: Option<EffectUndone>,
    /// What is known of it, if it was begun.
    pub row: Option<StepRow>,
}

impl StepReport {
    /// What it is, in text and in JSON.
    pub fn shown(&self) -> &'static str {
        if self.is_rolled_back { "rolled_back" } else { self.state.as_str() }
    }
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// How many changes of files that took.
    pub changes: usize,
    /// Whether git's state was changed.
    pub git: bool,
    /// Paths that could not be changed, and why.
    pub failed: Vec<(PathBuf, String)>,
    /// Paths that are left alone, and why.
    pub skipped: Vec<(PathBuf, String)>,
    /// Paths that stay as they are because nobody can compare them with the checkpoint, and why.
    pub not_compared: Vec<(PathBuf, String)>,
    /// What the checkpoint's tree had at a path and does not come back with it.
    pub not_kept: Vec<(PathBuf, String)>,
    /// What is not as the checkpoint has it after the restore, and why; git's state is named `.git`.
    pub differs: Vec<(PathBuf, String)>,
    /// Other work trees that were made or removed since, or that the checkpoint holds files of; they stay as they are.
    pub work_trees: Vec<(PathBuf, String)>,
    /// Repositories of which files go back and history stays, with the command that moves it.
    pub repositories: Vec<(PathBuf, String)>,
}

/// How a workflow was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBack {
    /// What was restored.
    pub strategy: Strategy,
    /// The undone effects, in the order of undoing.
    pub compensations: Vec<Compensation>,
    /// Effects that are not undone.
    pub left: Vec<CompensationId>,
    /// What was put back, if it came to that.
    pub restored: Option<Restored>,
    /// Rows of the application's tables that went.
    pub rows: Option<Data>,
    /// The rollback of the run, if it came to that.
    pub rollback_id: Option<RollbackId>,
    /// Where the run is then.
    pub to_phase: String,
    /// The steps before which it is then; none: before the first one, or where it was.
    pub before_steps: Vec<String>,
    /// The undone steps whose files stay: no checkpoint has the tree from before them, and they declare no undo.
    pub not_undone: Vec<String>,
    /// Why it came no further.
    pub error: Option<String>,
    /// What can be done about that.
    pub hint: Option<String>,
}

/// What became of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its run.
    pub run_id: RunId,
    /// Its name.
    pub workflow: String,
    /// What became of it.
    pub status: Status,
    /// Its steps, in the order of its file.
    pub steps: Vec<StepReport>,
    /// The step that failed first.
    pub failed_step: Option<String>,
    /// Why.
    pub error: Option<String>,
    /// The step that it begins with when it is resumed after a rollback that left earlier ones standing.
    pub ahead: Option<String>,
    /// What holds its run before the phase of its next step, if it waits for that.
    pub waits_for: Option<Held>,
    /// How it was taken back, if it was.
    pub rollback: Option<TakenBack>,
}

impl From<State> for Status {
    fn from(state: State) -> Self {
        match state {
            State::Running => Self::Running,
            State::Stopped => Self::Stopped,
            State::Failed => Self::Failed,
            State::Completed => Self::Completed,
        }
    }
}

impl Report {
    /// The report on a workflow whose steps came so far.
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
    /// The report on the steps of this epoch.
    pub(crate) fn report(&self, status: Status) -> Report {
        let steps = self.definition.steps.iter().map(|step| {
            let row = self.rows.values().find(|row| row.step == step.id).cloned();
            let state = row.as_ref().map_or(StepState::Pending, |row| row.state);
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
        Report { status, ..Report::of(&self.workflow, steps.collect()) }
    }
}
