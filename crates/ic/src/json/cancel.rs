//! A run that was cancelled, and one that was reopened.

use ic_ops::run::{Cancelled, Part, Reopened, Worker};
use serde::Serialize;

use super::{AgentJson, DispatchJson, RunJson};

/// A cancelled run, and what ended with it, as it was before (`run cancel`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CancelJson {
    #[serde(flatten)]
    run: RunJson,
    /// False if it was cancelled before (`--stop`).
    changed: bool,
    cancelled_dispatches: Vec<DispatchJson>,
    failed_agents: Vec<AgentJson>,
    /// The processes that `--stop` ended.
    stopped: Vec<WorkerJson>,
    /// The processes that still work for it.
    still_running: Vec<WorkerJson>,
}

impl From<&Cancelled> for CancelJson {
    fn from(cancelled: &Cancelled) -> Self {
        Self {
            run: (&cancelled.run).into(),
            changed: cancelled.changed,
            cancelled_dispatches: cancelled.dispatches.iter().map(Into::into).collect(),
            failed_agents: cancelled.agents.iter().map(Into::into).collect(),
            stopped: cancelled.stopped.iter().map(Into::into).collect(),
            still_running: cancelled.still_running.iter().map(Into::into).collect(),
        }
    }
}

/// A process that works for a run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WorkerJson {
    /// executor: it executes the workflow; step: the command of a step; dispatch: it works on a dispatch.
    #[cfg_attr(test, schemars(extend("enum" = ["executor", "step", "dispatch"])))]
    kind: &'static str,
    /// Its number; null if that is not on record.
    pid: Option<u32>,
    /// The name of the step.
    step: Option<String>,
    dispatch_id: Option<String>,
    /// Why it could not be ended.
    error: Option<String>,
}

impl From<&Worker> for WorkerJson {
    fn from(worker: &Worker) -> Self {
        let (kind, step, dispatch_id) = match &worker.part {
            Part::Executor => ("executor", None, None),
            Part::Step(step) => ("step", Some(step.clone()), None),
            Part::Dispatch(id) => ("dispatch", None, Some(id.to_string())),
        };
        Self { kind, pid: worker.pid, step, dispatch_id, error: worker.error.clone() }
    }
}

/// A cancelled run that is active again, and what its cancelling ended, which stays ended (`run reopen`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReopenJson {
    #[serde(flatten)]
    run: RunJson,
    cancelled_dispatches: Vec<DispatchJson>,
    failed_agents: Vec<AgentJson>,
}

impl From<&Reopened> for ReopenJson {
    fn from(reopened: &Reopened) -> Self {
        Self {
            run: (&reopened.run).into(),
            cancelled_dispatches: reopened.dispatches.iter().map(Into::into).collect(),
            failed_agents: reopened.agents.iter().map(Into::into).collect(),
        }
    }
}
