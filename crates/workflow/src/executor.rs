//! Running the steps: what may start is started, at most so many at once, until nothing is left or something failed.
//!
//! One thread writes the ledger; each step's command is followed by a thread of its own, which tells it what happens and waits
//! while a child's birth is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_ops::advance;
use ic_phase::{machine, skip};
use ic_saga::child::{self, Command, Exit, Outcome};
use ic_saga::process::ProcessIdentity;
use ic_saga::undo::GRACE;
use ic_worktree::Warning;

use crate::definition::OnFailure;
use crate::flow::{Flow, Ui};
use crate::job::{Job, LONGEST_LOG};
use crate::table::StepState;

/// Output of steps that waits to be shown, in chunks: more holds the step up.
const CHUNKS: usize = 64;

/// How often it is looked whether somebody interrupts while nothing happens.
const LOOK: Duration = Duration::from_millis(50);

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Every step succeeded.
    Completed,
    /// These failed, or were interrupted; nothing runs any more.
    Failed(Vec<usize>),
}

enum Event {
    Born(usize, ProcessIdentity, SyncSender<Result<()>>),
    Output(usize, Vec<u8>),
    Ended(usize, Result<Outcome>),
}

/// What is under way.
#[derive(Default)]
struct Running {
    steps: BTreeSet<usize>,
    /// When a step that failed is tried again.
    waiting: BTreeMap<usize, Instant>,
    /// How often each step was begun by this executor.
    tries: BTreeMap<usize, u32>,
    /// The checkpoint that steps which overlap share.
    shared: Option<CheckpointId>,
}

impl Running {
    fn is_idle(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_empty()
    }
}

impl Flow<'_> {
    /// Runs what is left of the workflow. `policy`: whether independent steps go on after a failure.
    pub(crate) fn execute(&mut self, policy: OnFailure, ui: &mut dyn Ui) -> Result<Ended> {
        let interrupted = self.saga.interrupted.clone();
        // An error of ours must not leave children behind.
        let given_up = AtomicBool::new(false);
        let stop = || interrupted.load(Relaxed) || given_up.load(Relaxed);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(CHUNKS);
            let ended = self.work_off(policy, ui, scope, &sender, &receiver, &stop);
            if ended.is_err() {
                given_up.store(true, Relaxed);
                drop(sender);
                self.hear_out(&receiver);
            }
            // Whoever still sends must not wait for somebody who reads no more.
            drop(receiver);
            ended
        })
    }

    fn work_off<'scope>(
        &mut self,
        policy: OnFailure,
        ui: &mut dyn Ui,
        scope: &'scope Scope<'scope, '_>,
        sender: &SyncSender<Event>,
        receiver: &Receiver<Event>,
        stop: &'scope (dyn Fn() -> bool + Sync),
    ) -> Result<Ended> {
        let mut running = Running::default();
        loop {
            let bad = self.in_state(&[StepState::Failed, StepState::Interrupted]);
            let goes_on = !stop() && (bad.is_empty() || policy == OnFailure::Continue);
            if goes_on {
                for at in self.startable(&running, policy) {
                    self.start(at, &mut running, ui, scope, sender, stop)?;
                }
            } else {
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

    /// What may be started now, at most as many as may run.
    fn startable(&self, running: &Running, policy: OnFailure) -> Vec<usize> {
        let free = self.workflow.options.jobs.saturating_sub(running.steps.len() + running.waiting.len());
        let now = Instant::now();
        let mut due: Vec<usize> =
            running.waiting.iter().filter(|(_, at)| **at <= now).map(|(step, _)| *step).collect();
        let mut finished = self.in_state(&[StepState::Succeeded, StepState::Skipped]);
        if policy == OnFailure::Continue {
            finished.extend(self.in_state(&[StepState::Failed]));
        }
        let busy = self.in_state(&[StepState::Running, StepState::Failed, StepState::Interrupted]);
        due.extend(self.plan.ready(&finished, &busy).into_iter().take(free));
        due
    }

    fn start<'scope>(
        &mut self,
        at: usize,
        running: &mut Running,
        ui: &mut dyn Ui,
        scope: &'scope Scope<'scope, '_>,
        sender: &SyncSender<Event>,
        stop: &'scope (dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        // First the phase: no work is on record in a phase that the run has not reached.
        self.move_to(&self.definition.steps[at].phase.clone())?;
        if running.is_idle() {
            running.shared = None;
        }
        let is_retry = running.waiting.remove(&at).is_some();
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

    /// Waits for something to happen, and records it.
    fn hear(
        &mut self,
        running: &mut Running,
        policy: OnFailure,
        ui: &mut dyn Ui,
        receiver: &Receiver<Event>,
    ) -> Result<()> {
        match receiver.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Diagnosis::new(Code::Internal, "internal: the channel of the steps is closed."))
            }
            Ok(Event::Output(at, bytes)) => {
                ui.output(&self.definition.steps[at].id, &bytes);
                Ok(())
            }
            Ok(Event::Born(at, identity, reply)) => {
                // The child waits behind its gate until this is committed: no death leaves a process that
                // nobody knows.
                let recorded = self.born(at, &identity);
                // A thread that is gone needs no answer.
                let _ = reply.send(recorded);
                Ok(())
            }
            Ok(Event::Ended(at, outcome)) => {
                let outcome = outcome?;
                if let Some(error) = &outcome.log_error {
                    let message = format!("the log is not complete: {}", error.message());
                    ui.warn(&Warning { code: "log_incomplete", message });
                }
                let retries = self.definition.steps[at].retries;
                let tries = running.tries.get(&at).copied().unwrap_or_default();
                let will_retry =
                    !matches!(outcome.exit, Exit::Code(0) | Exit::Cancelled) && tries <= retries.max;
                self.ended(at, &outcome, will_retry)?;
                running.steps.remove(&at);
                if will_retry {
                    running.waiting.insert(at, Instant::now() + retries.backoff);
                }
                ui.step_ended(&self.rows[&at]);
                if self.rows[&at].state == StepState::Failed && policy == OnFailure::Continue {
                    self.pass_over_dependents(at)?;
                }
                Ok(())
            }
        }
    }

    /// Records how the steps end that nobody waits for any more, as far as that is possible.
    fn hear_out(&mut self, receiver: &Receiver<Event>) {
        let mut can_record = true;
        while let Ok(event) = receiver.recv() {
            match event {
                Event::Born(_, _, reply) => {
                    let _ = reply.send(Err(gave_up()));
                }
                Event::Ended(at, Ok(outcome)) => {
                    can_record = can_record && self.ended(at, &outcome, false).is_ok();
                }
                Event::Output(..) | Event::Ended(_, Err(_)) => {}
            }
        }
        for at in self.in_state(&[StepState::Running]) {
            let is_known = self.rows[&at].child.is_some();
            can_record = can_record && (is_known || self.give_up(at).is_ok());
        }
    }

    /// What is left when nothing runs and nothing can be started.
    fn rest(&mut self) -> Result<Ended> {
        let succeeded = self.in_state(&[StepState::Succeeded]);
        if succeeded.len() == self.definition.steps.len() {
            let last = self.run.chain.last().to_owned();
            self.move_to(&last)?;
            return Ok(Ended::Completed);
        }
        let bad = self.in_state(&[StepState::Failed, StepState::Interrupted]);
        Ok(Ended::Failed(bad.into_iter().collect()))
    }

    /// Advances the run to a phase, one by one; a run that is there or beyond stays, and so does one that would get beyond because the
    /// phase is marked to be passed over: at its end, a run is completed.
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

/// Runs a step's command on a thread of its own. Whoever listens may have gone: then the step is on its way to its end.
fn follow(job: &Job, sender: &SyncSender<Event>, stop: &(dyn Fn() -> bool + Sync)) {
    let command = Command {
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
            let (reply, answer) = sync_channel(1);
            sender.send(Event::Born(job.at, identity.clone(), reply)).map_err(|_| gave_up())?;
            answer.recv().map_err(|_| gave_up())?
        },
        &mut |bytes| {
            let _ = sender.send(Event::Output(job.at, bytes.to_vec()));
        },
        stop,
    );
    let _ = sender.send(Event::Ended(job.at, outcome));
}
