//! What this crate asks of the floors above it about a run: it does not read their tables.

use ic_base::{CheckpointId, Result, RunId};
use ic_dispatch::process::ProcessIdentity;
use ic_ledger::Snapshot;
use ic_phase::Run;

/// A step by its name, and its process, of which no process recorded the end.
type Worker = (String, ProcessIdentity);

/// A step of a workflow that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLeft {
    /// As the workflow's file names it.
    pub name: String,
    /// The phase of the run in which it runs.
    pub phase: String,
}

/// The questions about workflows and sessions. A program without workflows and sessions has [`Above::default`], which answers no.
// These are functions and not a trait: the answers are a constant (`ic_workflow::ABOVE`), and a kernel has a copy of it.
#[derive(Debug, Clone, Copy)]
pub struct Above {
    /// Whether the run is of a workflow.
    pub has_workflow: fn(&Snapshot<'_>, &RunId) -> Result<bool>,
    /// The steps of a run of whose processes no end was recorded.
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
            has_workflow: |_, _| Ok(false),
            step_workers: |_, _| Ok(Vec::new()),
            steps_left: |_, _| Ok(Vec::new()),
            is_of_session: |_, _| Ok(false),
            needed_checkpoints: |_| Ok(Vec::new()),
        }
    }
}
