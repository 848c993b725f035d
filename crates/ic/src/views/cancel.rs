//! A run that was cancelled, or reopened.

use ic_ops::run::{CancelPart, Cancelled, Reopened, Worker};

use crate::text::{counted, plain, style, styled};
use crate::views::agent::AgentJson;
use crate::views::dispatch::DispatchJson;
use crate::views::run::RunJson;

shape! {
    /// A cancelled run, and what ended with it, as it was before (`run cancel`).
    pub(crate) struct CancelJson from cancelled: &Cancelled {
        #[serde(flatten)]
        run: RunJson = (&cancelled.run).into(),
        /// False if it was cancelled before (`--stop`).
        changed: bool = cancelled.changed,
        cancelled_dispatches: Vec<DispatchJson> = cancelled.dispatches.iter().map(Into::into).collect(),
        failed_agents: Vec<AgentJson> = cancelled.agents.iter().map(Into::into).collect(),
        /// The processes that `--stop` ended.
        stopped: Vec<WorkerJson> = cancelled.stopped.iter().map(Into::into).collect(),
        /// The processes that still work for it.
        still_running: Vec<WorkerJson> = cancelled.still_running.iter().map(Into::into).collect(),
    }

    /// A process that works for a run.
    struct WorkerJson from worker: &Worker where
        (kind, step, dispatch_id) = match &worker.part {
            CancelPart::Executor => ("executor", None, None),
            CancelPart::Step(step) => ("step", Some(step.clone()), None),
            CancelPart::Dispatch(id) => ("dispatch", None, Some(id.to_string())),
        };
    {
        /// executor: it executes the workflow; step: the command of a step; dispatch: it works on a dispatch.
        #[cfg_attr(test, schemars(extend("enum" = ["executor", "step", "dispatch"])))]
        kind: &'static str = kind,
        /// Its number; null if that is not on record.
        pid: Option<u32> = worker.pid,
        /// The name of the step.
        step: Option<String> = step,
        dispatch_id: Option<String> = dispatch_id,
        /// Why it could not be ended.
        error: Option<String> = worker.error.clone(),
    }

    /// A cancelled run that is active again, and what its cancelling ended, which stays ended (`run reopen`).
    pub(crate) struct ReopenJson from reopened: &Reopened {
        #[serde(flatten)]
        run: RunJson = (&reopened.run).into(),
        cancelled_dispatches: Vec<DispatchJson> = reopened.dispatches.iter().map(Into::into).collect(),
        failed_agents: Vec<AgentJson> = reopened.agents.iter().map(Into::into).collect(),
    }
}

/// A cancelled run, and the processes that were ended or still work for it, one a line. `stops`: whether `--stop` was given.
pub(crate) fn cancelled(cancelled: &Cancelled, stops: bool) -> String {
    let with = match (cancelled.dispatches.len(), cancelled.agents.len()) {
        (0, 0) => String::new(),
        (dispatches, agents) => {
            format!(", with {} and {}", counted(dispatches, "dispatch"), counted(agents, "agent"))
        }
    };
    let id = cancelled.run.id.short();
    let mut text = if cancelled.changed {
        format!("{} {id}{with}.\n", styled(style::BAD, "cancelled"))
    } else {
        format!("{id} was cancelled before.\n")
    };
    text.extend(cancelled.stopped.iter().map(|one| worker("stopped", one)));
    text.extend(cancelled.still_running.iter().map(|one| worker("still running", one)));
    // `--stop` ends what a workflow runs. The processes of dispatches are only named.
    let is_of_workflow = |worker: &Worker| !matches!(worker.part, CancelPart::Dispatch(_));
    if stops && cancelled.stopped.is_empty() && !cancelled.still_running.iter().any(is_of_workflow) {
        text += "  no process of its workflow was running\n";
    } else if !stops && cancelled.still_running.iter().any(is_of_workflow) {
        let way = format!("  to end what its workflow runs: ic run cancel {id} --stop");
        text += &format!("{}\n", styled(style::DIM, &way));
    }
    text
}

fn worker(how: &str, worker: &Worker) -> String {
    let what = match &worker.part {
        CancelPart::Executor => "the executor of its workflow".to_owned(),
        CancelPart::Step(step) => format!("step {}", plain(step)),
        CancelPart::Dispatch(id) => format!("dispatch {}", id.short()),
    };
    let pid = worker.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let why = worker.error.as_deref().map(|error| format!(": {}", plain(error))).unwrap_or_default();
    format!("  {how:<13}  {what}{pid}{why}\n")
}

/// A reopened run, and what stays ended, one a line.
pub(crate) fn reopened(reopened: &Reopened) -> String {
    let (id, phase) = (reopened.run.id.short(), plain(&reopened.run.phase));
    let mut text = format!("{} {id}, at {phase}.\n", styled(style::GOOD, "reopened"));
    for dispatch in &reopened.dispatches {
        text += &format!("  stays cancelled  dispatch {}\n", dispatch.id.short());
    }
    for agent in &reopened.agents {
        text += &format!("  stays failed     agent {}\n", agent.id.short());
    }
    text
}
