//! Runs the steps: starts those that may start, up to the allowed number at once, until none is left or one failed.
//!
//! Only one thread writes the ledger. Each step's command has a thread of its own, which reports events and waits until the process of its
//! command is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_dispatch::process::ProcessIdentity;
use ic_effects::child::{self, ChildCommand, ChildExit, CommandOutcome};
use ic_effects::undo::GRACE;
use ic_ops::advance;
use ic_phase::{machine, skip};
use ic_worktree::Warning;

use crate::definition::StepFailurePolicy;
use crate::flow::{Flow, WorkflowUi};
use crate::job::{Job, LONGEST_LOG};
use crate::table::WorkflowStepState;

/// Chunks of output that wait to be shown; with more, the step has to wait.
const CHUNKS: usize = 64;

/// The interval at which an interruption is looked for while no event comes.
const LOOK: Duration = Duration::from_millis(50);

/// The outcome of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndedStep {
    /// Every step succeeded, and the run is at its end.
    Completed,
    /// These steps failed or were interrupted; none runs any longer.
    Failed(Vec<usize>),
}

//   this thread, which alone writes the ledger              the thread of a step
//   begin:  row `running`, undo armed                ──▶    a process waits at its gate
//   born:   the process on record                    ◀──    Born
//           the answer                               ──▶    the gate opens, and the command runs
//           shown                                    ◀──    Output, chunk by chunk
//   ended:  end, commits and outputs on record       ◀──    Ended
enum Event {
    Born(usize, ProcessIdentity, SyncSender<Result<()>>),
    Output(usize, Vec<u8>),
    Ended(usize, Result<CommandOutcome>),
}

/// The state of the steps that this executor has begun.
#[derive(Default)]
struct Running {
    steps: BTreeSet<usize>,
    /// The time at which a step that failed is tried again.
    waiting: BTreeMap<usize, Instant>,
    /// The number of times that this executor began each step.
    tries: BTreeMap<usize, u32>,
    /// The checkpoint that steps share which run at the same time.
    shared: Option<CheckpointId>,
}

impl Running {
    fn is_idle(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_empty()
    }
}

impl Flow<'_> {
    /// Runs the rest of the workflow. `policy`: whether independent steps continue after a failure.
    pub(crate) fn execute(&mut self, policy: StepFailurePolicy, ui: &mut dyn WorkflowUi) -> Result<EndedStep> {
        let interrupted = self.saga.interrupted.clone();
        // An error of this program must not leave processes behind.
        let given_up = AtomicBool::new(false);
        let stop = || interrupted.load(Relaxed) || given_up.load(Relaxed);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(CHUNKS);
            let ended = self.work_off(policy, ui, scope, &sender, &receiver, &stop);
            if ended.is_err() {
                given_up.store(true, Relaxed);
                // Without a sender of its own, the receiver ends when the last of the steps' threads has ended.
                drop(sender);
                self.hear_out(&receiver);
            }
            // A thread that still sends must not wait for a receiver that reads no longer.
            drop(receiver);
            ended
        })
    }

    fn work_off<'scope>(
        &mut self,
        policy: StepFailurePolicy,
        ui: &mut dyn WorkflowUi,
        scope: &'scope Scope<'scope, '_>,
        sender: &SyncSender<Event>,
        receiver: &Receiver<Event>,
        stop: &'scope (dyn Fn() -> bool + Sync),
    ) -> Result<EndedStep> {
        let mut running = Running::default();
        loop {
            let bad = self.in_state(&[WorkflowStepState::Failed, WorkflowStepState::Interrupted]);
            let goes_on = !stop() && (bad.is_empty() || policy == StepFailurePolicy::Continue);
            if goes_on {
                for at in self.startable(&running, policy) {
                    self.start(at, &mut running, ui, scope, sender, stop)?;
                }
            } else {
                // What waits for a retry would keep the workflow from its end.
                for at in std::mem::take(&mut running.waiting).into_keys() {
                    self.give_up(at)?;
                }
            }
            if running.is_idle() {
                return self.rest();
            }
            self.hear(&mut running, policy, ui, receiver)?;
        }
    }

    /// The steps that may start now, at most as many as may run.
    fn startable(&self, running: &Running, policy: StepFailurePolicy) -> Vec<usize> {
        // A step that waits for its retry keeps its place among those that run, so that it can start when it is due.
        let free = self.workflow.options.jobs.saturating_sub(running.steps.len() + running.waiting.len());
        let now = Instant::now();
        let mut due: Vec<usize> = running.waiting.iter().filter(|(_, at)| **at <= now).map(|(step, _)| *step).collect();
        let mut finished = self.in_state(&[WorkflowStepState::Succeeded, WorkflowStepState::Skipped]);
        if policy == StepFailurePolicy::Continue {
            // A failed step then blocks no phase. The steps that need it are `skipped`, so they count as finished.
            finished.extend(self.in_state(&[WorkflowStepState::Failed]));
        }
        let busy =
            self.in_state(&[WorkflowStepState::Running, WorkflowStepState::Failed, WorkflowStepState::Interrupted]);
        due.extend(self.plan.ready(&finished, &busy).into_iter().take(free));
        due
    }

    fn start<'scope>(
        &mut self,
        at: usize,
        running: &mut Running,
        ui: &mut dyn WorkflowUi,
        scope: &'scope Scope<'scope, '_>,
        sender: &SyncSender<Event>,
        stop: &'scope (dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        // The phase comes first: no work is on record in a phase that the run has not reached.
        self.move_to(&self.definition.steps[at].phase.clone())?;
        // No other step runs, so this one has a checkpoint of its own. It is shared with those that start before it ends.
        if running.is_idle() {
            running.shared = None;
        }
        let is_retry = running.waiting.remove(&at).is_some();
        // A retry has the checkpoint of its first attempt, and shares no other.
        let job = self.begin(at, running.shared.as_ref().filter(|_| !is_retry))?;
        let row = &self.rows[&at];
        running.shared = running.shared.take().or_else(|| row.checkpoint_id.clone());
        running.steps.insert(at);
        *running.tries.entry(at).or_default() += 1;
        ui.step_begins(&row.step, row.attempts, at + 1, self.definition.steps.len());
        let sender = sender.clone();
        scope.spawn(move || follow(&job, &sender, stop));
        Ok(())
    }

    /// Waits for an event, and records it.
    fn hear(
        &mut self,
        running: &mut Running,
        policy: StepFailurePolicy,
        ui: &mut dyn WorkflowUi,
        receiver: &Receiver<Event>,
    ) -> Result<()> {
        match receiver.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            // This cannot happen: `execute` keeps a sender for as long as this runs.
            Err(RecvTimeoutError::Disconnected) => {
                Err(Diagnosis::new(Code::Internal, "internal: the channel of the steps is closed."))
            }
            Ok(Event::Output(at, bytes)) => {
                ui.output(&self.definition.steps[at].id, &bytes);
                Ok(())
            }
            Ok(Event::Born(at, identity, reply)) => {
                // The child waits behind its gate until this is committed, so that a crash leaves no process which is not on record.
                let recorded = self.born(at, &identity);
                // A thread that has ended needs no answer.
                let _ = reply.send(recorded);
                Ok(())
            }
            Ok(Event::Ended(at, outcome)) => {
                // An error here is one of this program: its command never ran, or could not be waited for.
                let outcome = outcome?;
                if let Some(error) = &outcome.log_error {
                    let message = format!("the log is not complete: {}", error.message());
                    ui.warn(&Warning { code: "log_incomplete", message });
                }
                // The tries of this executor count, not those on record: a resumed step has all of its retries.
                let retries = self.definition.steps[at].retries;
                let tries = running.tries.get(&at).copied().unwrap_or_default();
                let will_retry =
                    !matches!(outcome.exit, ChildExit::Code(0) | ChildExit::Cancelled) && tries <= retries.max;
                self.ended(at, &outcome, will_retry)?;
                running.steps.remove(&at);
                if will_retry {
                    running.waiting.insert(at, Instant::now() + retries.backoff);
                }
                ui.step_ended(&self.rows[&at]);
                if self.rows[&at].state == WorkflowStepState::Failed && policy == StepFailurePolicy::Continue {
                    self.pass_over_dependents(at)?;
                }
                Ok(())
            }
        }
    }

    /// Records the ends of steps after an error, as far as that is possible.
    fn hear_out(&mut self, receiver: &Receiver<Event>) {
        let mut can_record = true;
        while let Ok(event) = receiver.recv() {
            match event {
                Event::Born(_, _, reply) => {
                    // The process still waits at its gate. After this answer, nothing of the command ever runs.
                    let _ = reply.send(Err(gave_up()));
                }
                Event::Ended(at, Ok(outcome)) => {
                    can_record = can_record && self.ended(at, &outcome, false).is_ok();
                }
                Event::Output(..) | Event::Ended(_, Err(_)) => {}
            }
        }
        for at in self.in_state(&[WorkflowStepState::Running]) {
            // A step with a process on record may have had its effect, so only the next executor decides about it.
            let is_known = self.rows[&at].child.is_some();
            can_record = can_record && (is_known || self.give_up(at).is_ok());
        }
    }

    /// The outcome when no step runs and none can be started.
    fn rest(&mut self) -> Result<EndedStep> {
        let succeeded = self.in_state(&[WorkflowStepState::Succeeded]);
        // A skipped step is not done: with one, the run does not reach its end.
        if succeeded.len() == self.definition.steps.len() {
            let last = self.run.chain.last().to_owned();
            self.move_to(&last)?;
            return Ok(EndedStep::Completed);
        }
        let bad = self.in_state(&[WorkflowStepState::Failed, WorkflowStepState::Interrupted]);
        Ok(EndedStep::Failed(bad.into_iter().collect()))
    }

    /// Advances the run to a phase, one by one. A run that is there or beyond stays. So does a run that would go beyond because the phase
    /// is marked to be skipped: at its end it would be completed.
    fn move_to(&mut self, phase: &str) -> Result<()> {
        let target = self.run.chain.require(phase)?;
        while self.run.chain.require(&self.run.phase)? < target {
            let skipped = self.kernel.read(|snapshot| skip::skipped_phases(snapshot, &self.run.id))?;
            if self.run.chain.require(&machine::destination(&self.run, &skipped)?)? > target {
                return Ok(());
            }
            let settings = self.settings.clone().capturing(self.checkpoints).of_workflow(&self.workflow.name);
            advance::one_phase(self.kernel, &self.run, &settings)?;
            self.run = self.saga.run()?;
        }
        Ok(())
    }
}

fn gave_up() -> Diagnosis {
    Diagnosis::new(Code::Internal, "The executor stopped.")
}

/// Runs a step's command on a thread of its own. If the receiver is gone, the step is being ended.
fn follow(job: &Job, sender: &SyncSender<Event>, stop: &(dyn Fn() -> bool + Sync)) {
    let command = ChildCommand {
        program: &job.program,
        directory: &job.directory,
        environment: job.environment.clone(),
        removed: Vec::new(),
        timeout: job.timeout,
        grace: GRACE,
        log: &job.log,
        longest_log: LONGEST_LOG,
    };
    let outcome = child::run(
        &command,
        &mut |identity| {
            // The channel has room for the one answer, so the executor never waits for this thread.
            let (reply, answer) = sync_channel(1);
            sender.send(Event::Born(job.at, identity.clone(), reply)).map_err(|_| gave_up())?;
            answer.recv().map_err(|_| gave_up())?
        },
        &mut |bytes| {
            // If the receiver is gone, no output is shown any more; the log still has it.
            let _ = sender.send(Event::Output(job.at, bytes.to_vec()));
        },
        stop,
    );
    let _ = sender.send(Event::Ended(job.at, outcome));
}
