//! What a floor above knows of a run and this one has to ask: it reads no table of theirs.

use ic_base::{CheckpointId, Result, RunId};
use ic_phase::Run;
use ic_saga::process::ProcessIdentity;
use ic_store::Snapshot;

/// How far the workflow of a run is, as far as others must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowState {
    /// It goes back by the means of a version before rollbacks had one engine.
    RollingBack,
    /// Anything else.
    Other,
}

/// A step whose process nobody saw end, by its name.
type Worker = (String, ProcessIdentity);

/// A step of a workflow that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLeft {
    /// Its name.
    pub name: String,
    /// The phase of the run in which it runs.
    pub phase: String,
}

/// The questions about workflows and sessions. A program that has none asks nobody: [`Above::default`].
#[derive(Debug, Clone, Copy)]
pub struct Above {
    /// How far the workflow of a run is; `None`: the run is of no workflow.
    pub workflow_state: fn(&Snapshot<'_>, &RunId) -> Result<Option<WorkflowState>>,
    /// The steps of a run whose processes nobody saw end.
    pub step_workers: fn(&Snapshot<'_>, &RunId) -> Result<Vec<Worker>>,
    /// The steps of the workflow of a run that did not succeed, or were rolled back since; none, if it is of no workflow.
    pub steps_left: fn(&Snapshot<'_>, &Run) -> Result<Vec<StepLeft>>,
    /// Whether a run was made for a session of a coding agent.
    pub is_of_session: fn(&Snapshot<'_>, &RunId) -> Result<bool>,
    /// The checkpoints that unfinished workflows need.
    pub needed_checkpoints: fn(&Snapshot<'_>) -> Result<Vec<CheckpointId>>,
}

impl Default for Above {
    fn default() -> Self {
        Self {
            workflow_state: |_, _| Ok(None),
            step_workers: |_, _| Ok(Vec::new()),
            steps_left: |_, _| Ok(Vec::new()),
            is_of_session: |_, _| Ok(false),
            needed_checkpoints: |_| Ok(Vec::new()),
        }
    }
}
