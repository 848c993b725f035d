//! The journaled run of compensations: every attempt is recorded before it is made, and after.
//!
//! The owner holds the run's lock and a token; each write of the journal happens in a transaction that checks the token.
//! Whoever takes over after a crash first ends what its predecessor left running.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ic_base::{CompensationId, Diagnose, Result, RollbackId, RunId, Timestamp};
use ic_events::{EventType, NewEvent};
use ic_kernel::Kernel;
use ic_phase::{Run, RunStatus, run};
use ic_saga::compensation::{self, Compensation, End, State};
use ic_saga::order::{self, FailurePolicy};
use ic_saga::owner::{self, OwnerLock};
use ic_saga::process;
use ic_saga::undo::{self, GRACE, Ground, Undone, Watch};
use ic_store::Transaction;
use ic_worktree::{Settings, Workspace};

use super::plan::UndoPlan;

/// Who watches compensations being run.
pub trait Sink {
    /// An attempt begins.
    fn begins(&mut self, compensation: &Compensation);
    /// It ended.
    fn ended(&mut self, compensation: &Compensation);
}

/// Nobody watches: a plan is made, or the journal tells.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Sink for Unwatched {
    fn begins(&mut self, _: &Compensation) {}
    fn ended(&mut self, _: &Compensation) {}
}

/// The right to execute or compensate a run, until it is dropped.
pub struct Saga<'k> {
    /// The ledger and what belongs to it.
    pub kernel: &'k Kernel,
    /// How content is kept.
    pub settings: &'k Settings,
    /// The run.
    pub run_id: RunId,
    /// Set from elsewhere: no further undo begins, and the one under way is ended.
    pub interrupted: Arc<AtomicBool>,
    token: String,
    _lock: OwnerLock,
}

/// What became of a plan.
#[derive(Debug)]
pub struct Undoing {
    /// What was tried, in that order, as it is now.
    pub results: Vec<Compensation>,
    /// Effects that were meant and are not undone.
    pub left: Vec<CompensationId>,
    /// Whether an undo failed.
    pub has_failed: bool,
}

/// Where effects are undone, and as part of what.
struct UndoSite<'a> {
    workspace: Workspace<'a>,
    run: &'a Run,
    rollback: Option<&'a RollbackId>,
}

impl<'k> Saga<'k> {
    /// Takes the run over. Errors: `work_running` while another process has it, `rolling_back` while a rollback over several
    /// layers is not finished: it has a journal of its own.
    pub fn take(kernel: &'k Kernel, settings: &'k Settings, run_id: &RunId) -> Result<Self> {
        let saga = Self::take_for_rollback(kernel, settings, run_id)?;
        match kernel.ledger.read(|snapshot| ic_journal::table::require_finished(snapshot, run_id)) {
            Ok(()) => Ok(saga),
            Err(error) => {
                // What is said about it depends on whether somebody has the run: this call gave it up.
                drop(saga);
                kernel.read(|_| Err(error))
            }
        }
    }

    /// As [`Saga::take`], for a rollback over several layers itself.
    pub(crate) fn take_for_rollback(
        kernel: &'k Kernel,
        settings: &'k Settings,
        run_id: &RunId,
    ) -> Result<Self> {
        let lock = OwnerLock::take(kernel.store(), run_id)?;
        let token = kernel.context.new_id::<CompensationId>().as_str().to_owned();
        kernel.write(|tx, now| owner::claim(tx, now, run_id, &token))?;
        let interrupted = Arc::default();
        Ok(Self { kernel, settings, run_id: run_id.clone(), interrupted, token, _lock: lock })
    }

    /// Whether a run could be taken over now. Nothing is made or kept. Errors: `work_running`, `stale_dispatch`.
    pub fn require_free(kernel: &Kernel, run_id: &RunId) -> Result<()> {
        OwnerLock::require_free(kernel.store(), run_id)?;
        kernel.read(|snapshot| kernel.calling_dispatch(snapshot).map(|_| ()))
    }

    /// Whether [`Saga::take`] would take a run over now. Nothing is made or kept.
    pub fn require_takeable(kernel: &Kernel, run_id: &RunId) -> Result<()> {
        Self::require_free(kernel, run_id)?;
        kernel.read(|snapshot| ic_journal::table::require_finished(snapshot, run_id))
    }

    /// Writes in one transaction, if the run still is ours.
    pub fn write<T>(&self, write: impl Fn(&Transaction<'_>, Timestamp) -> Result<T>) -> Result<T> {
        self.kernel.write_late_too(|tx, now| {
            owner::require(tx, &self.run_id, &self.token)?;
            write(tx, now)
        })
    }

    /// Ends what a predecessor left running: steps and undos of this run. The caller has started nothing yet.
    pub fn end_children(&self) -> Result<()> {
        let children = self.kernel.read(|snapshot| self.kernel.children(snapshot, &self.run_id))?;
        children.iter().try_for_each(|child| process::end_group(child, GRACE).map(|_| ()))
    }

    /// Ends what a predecessor left running, and records of its undos that nobody knows how far they came.
    pub(crate) fn end_attempts(&self) -> Result<()> {
        let running = self.kernel.read(|snapshot| {
            let mut all = compensation::list(snapshot, &self.run_id)?;
            all.retain(|one| one.state == State::Running);
            Ok(all)
        })?;
        self.end_children()?;
        if running.is_empty() {
            return Ok(());
        }
        self.write(|tx, now| {
            let end = |one| compensation::finish(tx, now, one, End::CutOff).map(|_| ());
            running.iter().try_for_each(end)
        })
    }

    /// The run as it is.
    pub fn run(&self) -> Result<Run> {
        self.kernel.read(|snapshot| run::get(snapshot, &self.run_id))
    }

    /// Closes the run: nobody advances it or completes its work until it is opened again. Errors: `corrupt` if it is closed, and its
    /// status before that is not known.
    pub fn close(&self) -> Result<()> {
        self.write(|tx, now| {
            let run = run::get(tx, &self.run_id)?;
            if run.status == RunStatus::RollingBack {
                // What cannot be given back at the end is known before an effect is undone: that cannot be made again.
                return owner::status_before(tx, &run.id, RunStatus::parse).map(|_| ());
            }
            owner::remember_status(tx, &run.id, Some(run.status.as_str()))?;
            ic_events::append(tx, now, &event(&run, EventType::CompensatingBegun))?;
            run::close_for_rollback(tx, now, &run.id)
        })
    }

    /// The status that a closed run had before; `None` for one that is not closed, or that a rollback closed.
    pub(super) fn status_before(&self) -> Result<Option<RunStatus>> {
        self.kernel.read(|snapshot| owner::status_before(snapshot, &self.run_id, RunStatus::parse))
    }

    /// Gives the run back the status that it had before it was closed.
    pub fn reopen(&self) -> Result<()> {
        self.write(|tx, now| self.reopen_in(tx, now))
    }

    /// As [`Saga::reopen`], in a transaction of the caller's. Errors: `corrupt` if the status is not known; the run stays closed.
    pub fn reopen_in(&self, tx: &Transaction<'_>, now: Timestamp) -> Result<()> {
        let run = run::get(tx, &self.run_id)?;
        if run.status != RunStatus::RollingBack {
            return Ok(());
        }
        // None is kept of a run that the fence of a rollback closed: once that is over, the run is active.
        let before = owner::status_before(tx, &run.id, RunStatus::parse)?.unwrap_or(RunStatus::Active);
        owner::remember_status(tx, &run.id, None)?;
        ic_events::append(tx, now, &event(&run, EventType::CompensatingEnded))?;
        run::reopen(tx, now, &run.id, before)
    }

    /// Undoes what is planned. Policy [`FailurePolicy::Stop`]: the first failure ends it. [`FailurePolicy::Continue`]: the rest
    /// is undone, but for what something that failed depends on. What is left as it is, as declared, is left for as long as `rollback` stands.
    pub fn undo(
        &self,
        plan: &UndoPlan,
        policy: FailurePolicy,
        rollback: Option<&RollbackId>,
        sink: &mut dyn Sink,
    ) -> Result<Undoing> {
        let run = self.run()?;
        let site =
            UndoSite { workspace: Workspace::of_run(self.kernel, &run, self.settings)?, run: &run, rollback };
        // What a predecessor left running must not meet what is undone now, whether that is meant or not.
        self.end_children()?;
        let (mut results, mut failed) = (Vec::new(), Vec::new());
        let mut undone = BTreeSet::new();
        for at in plan.order.iter().copied() {
            // Asked for each effect anew: one whose dependents could not be undone must stay until they are.
            let blocked = order::blocked_by(&plan.started, &[at], &failed);
            if self.is_interrupted() || (!failed.is_empty() && policy == FailurePolicy::Stop) {
                break;
            }
            if !blocked.left.is_empty() {
                continue;
            }
            let result = self.undo_one(&plan.compensations[at], &site, sink)?;
            match result.state {
                State::Done | State::Skipped => undone.insert(at),
                State::Registered | State::Armed | State::Running | State::Failed => {
                    failed.push(at);
                    false
                }
            };
            results.push(result);
        }
        let left = plan.order.iter().filter(|at| !undone.contains(*at)).map(|at| &plan.compensations[*at]);
        let left = left.chain(plan.left()).map(|compensation| compensation.id.clone()).collect();
        Ok(Undoing { results, left, has_failed: !failed.is_empty() || self.is_interrupted() })
    }

    /// Undoes one effect, with its retries.
    fn undo_one(
        &self,
        compensation: &Compensation,
        site: &UndoSite<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Compensation> {
        let log = self.log_file(&format!("undo-{:04}.log", compensation.ord))?;
        let ground = Ground {
            root: &site.workspace.root,
            directory: &site.run.project_dir,
            objects: &site.workspace.objects,
            environment: vec![("IC_DB".into(), self.kernel.ledger.name().into())],
            log,
        };
        let mut current = compensation.clone();
        let mut attempt = 0;
        loop {
            attempt += 1;
            // On record before it is made: after a death the next call knows that the effect may be half
            // undone.
            current = self.write(|tx, now| compensation::begin(tx, now, &current))?;
            sink.begins(&current);
            let undone = self.attempt(&current, &ground)?;
            let end = match &undone {
                Undone::Done => End::Done,
                Undone::Skipped(why) => End::Skipped(why),
                Undone::Failed(why) => End::Failed(why),
            };
            current = self.write(|tx, now| {
                let ended = compensation::finish(tx, now, &current, end)?;
                if let Some(rollback) = site.rollback.filter(|_| ended.state == State::Skipped) {
                    compensation::mark_left(tx, &ended, rollback)?;
                }
                Ok(ended)
            })?;
            sink.ended(&current);
            let pause = current.action.how().and_then(|how| how.pause_after(attempt));
            match pause {
                Some(pause) if current.state == State::Failed && !self.is_interrupted() => self.sleep(pause),
                _ => return Ok(current),
            }
        }
    }

    fn attempt(&self, compensation: &Compensation, ground: &Ground<'_>) -> Result<Undone> {
        let interrupted = &*self.interrupted;
        undo::attempt(
            compensation,
            ground,
            &mut Watch {
                born: &mut |child| {
                    self.write(|tx, _| compensation::record_child(tx, &compensation.id, child))
                },
                live: &mut |_| {},
                cancelled: &|| interrupted.load(Relaxed),
            },
        )
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Waits, unless it is interrupted.
    fn sleep(&self, pause: Duration) {
        let begin = Instant::now();
        // In short pieces: Ctrl-C must not wait for the end of a backoff.
        while begin.elapsed() < pause && !self.is_interrupted() {
            std::thread::sleep(pause.saturating_sub(begin.elapsed()).min(Duration::from_millis(50)));
        }
    }

    /// A file beside the ledger for what a command of this run says; its directory is made.
    pub fn log_file(&self, name: &str) -> Result<PathBuf> {
        let directory = self.kernel.store().join("logs").join(self.run_id.as_str());
        ic_store::private::directories(&directory)
            .while_doing(|| format!("making {}", directory.display()))?;
        Ok(directory.join(name))
    }
}

fn event(run: &Run, event_type: EventType) -> NewEvent<'_> {
    NewEvent::of(&run.id, run.epoch, event_type)
}
