//! Calling a run off, and ending the processes that its workflow started.

use std::thread;
use std::time::{Duration, Instant};

use ic_base::{DispatchId, Result, RunId};
use ic_dispatch::process::{self, ProcessIdentity};
use ic_dispatch::worker::is_living_other;
use ic_dispatch::{Dispatch, cancel as dispatches};
use ic_effects::undo::GRACE;
use ic_kernel::Kernel;
use ic_kernel::owner::{self, OwnerLock};
use ic_phase::{Run, RunStatus, run};
use ic_runtrack::{Agent, agent};

use super::ended_by_cancel;

/// How long the executor may take to notice that its run is cancelled: it may be capturing the tree.
const EXECUTOR_LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A run that was cancelled, and the work that was cancelled with it, in the state from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// The run after the cancelling.
    pub run: Run,
    /// Whether this call cancelled it. False: it was cancelled before, and only its processes were ended.
    pub changed: bool,
    /// The dispatches that had not ended; they are cancelled.
    pub dispatches: Vec<Dispatch>,
    /// The agents that were active; they are failed.
    pub agents: Vec<Agent>,
    /// The processes of its workflow that were ended.
    pub stopped: Vec<Worker>,
    /// The processes that still work for it.
    pub still_running: Vec<Worker>,
}

/// A process that works for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Which part of the run's work it does.
    pub part: CancelPart,
    /// Its number; `None` if that is not on record.
    pub pid: Option<u32>,
    /// Why it could not be ended.
    pub error: Option<String>,
}

/// What a process does for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelPart {
    /// It executes the workflow.
    Executor,
    /// The command of a step, by the step's name.
    Step(String),
    /// It works on a dispatch.
    Dispatch(DispatchId),
}

/// A step's name, and the process that leads its group.
type Step = (String, ProcessIdentity);

/// Cancels a run with its unfinished dispatches and active agents, and names the processes that still work for it. With `ends_steps`, the
/// processes that its workflow started are ended first, also those of a run that was cancelled before.
///
/// A process that cannot be ended is named with its error. Errors: `run_not_active`, `rolling_back`.
pub fn cancel(kernel: &Kernel, reference: &str, reason: Option<&str>, ends_steps: bool) -> Result<Cancelled> {
    // The record comes first, and the processes after it. If this process is killed in between, the run is cancelled,
    // its steps still run, and the same call with `ends_steps` ends them.
    let (mut cancelled, handed_out) = kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        if ends_steps && run.status == RunStatus::Cancelled {
            // The dispatches are cancelled already, but their processes may still be at work.
            let (handed_out, _) = ended_by_cancel(tx, &run.id)?;
            return Ok((Cancelled::nothing(run, false), handed_out));
        }
        let run = run::cancel(tx, now, &run, reason)?;
        let dispatches = dispatches::cancel_unfinished(tx, now, &run.id, reason)?;
        let agents = agent::fail_active(tx, now, &run.id, run.epoch)?;
        let cancelled = Cancelled { dispatches: dispatches.clone(), agents, ..Cancelled::nothing(run, true) };
        Ok((cancelled, dispatches))
    })?;
    // No step begins from here on: each checks that its run is active in the transaction that records its process.
    let steps = living_steps(kernel, &cancelled.run.id)?;
    if ends_steps {
        cancelled.stop(kernel, &steps);
    } else {
        cancelled.still_running.extend(steps.iter().map(|step| worker(step, None)));
    }
    cancelled.name_others(kernel, &steps, &handed_out)?;
    Ok(cancelled)
}

impl Cancelled {
    fn nothing(run: Run, changed: bool) -> Self {
        let (dispatches, agents) = (Vec::new(), Vec::new());
        Self { run, changed, dispatches, agents, stopped: Vec::new(), still_running: Vec::new() }
    }

    /// Ends the steps, and waits for the executor, which ends by itself when its last step has.
    fn stop(&mut self, kernel: &Kernel, steps: &[Step]) {
        for step in steps {
            let (_, identity) = step;
            // A step may cancel its own run. If it were ended here, this command would end with it, and report nothing.
            let ended = if identity.is_caller_or_ancestor() {
                Err("this command runs in it".to_owned())
            } else {
                process::end_group(identity, GRACE).map_err(|error| error.message().to_owned())
            };
            match ended {
                Ok(_) => self.stopped.push(worker(step, None)),
                Err(error) => self.still_running.push(worker(step, Some(error))),
            }
        }
        let start = Instant::now();
        // Where a step still runs, its executor waits for it: there is no point in waiting for the executor.
        while self.still_running.is_empty() && is_executed(kernel, &self.run.id) {
            if start.elapsed() >= EXECUTOR_LIMIT {
                break;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Names the executor that still lives, and the living processes of dispatches, but for those that are steps.
    fn name_others(&mut self, kernel: &Kernel, steps: &[Step], handed_out: &[Dispatch]) -> Result<()> {
        if is_executed(kernel, &self.run.id) {
            let holder = kernel.read(|snapshot| owner::holder(snapshot, &self.run.id))?;
            let pid = holder.filter(ProcessIdentity::is_alive).map(|holder| holder.pid);
            self.still_running.insert(0, Worker { part: CancelPart::Executor, pid, error: None });
        }
        // A step's process is on record for its dispatch too, and was named above.
        let is_step = |pid: u32| steps.iter().any(|(_, identity)| identity.pid == pid);
        let living = handed_out.iter().filter(|dispatch| is_living_other(dispatch)).filter_map(|dispatch| {
            let pid = u32::try_from(dispatch.process.as_ref()?.pid).ok()?;
            let part = CancelPart::Dispatch(dispatch.id.clone());
            (!is_step(pid)).then_some(Worker { part, pid: Some(pid), error: None })
        });
        self.still_running.extend(living);
        Ok(())
    }
}

fn worker((step, identity): &Step, error: Option<String>) -> Worker {
    Worker { part: CancelPart::Step(step.clone()), pid: Some(identity.pid), error }
}

fn living_steps(kernel: &Kernel, run_id: &RunId) -> Result<Vec<Step>> {
    let mut steps = kernel.read(|snapshot| (kernel.above.step_workers)(snapshot, run_id))?;
    // By the group: the step's own process may have ended and left children that still work.
    steps.retain(|(_, identity)| identity.has_living_group());
    Ok(steps)
}

/// Whether another process executes or compensates a run right now.
pub(crate) fn is_executed(kernel: &Kernel, run_id: &RunId) -> bool {
    // A lock that cannot be looked at counts as held: no run is then called abandoned or unfinished by mistake.
    OwnerLock::require_free(kernel.store(), run_id).is_err()
}
