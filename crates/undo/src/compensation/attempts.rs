//! The journaled run of compensations: every attempt is on record before it does anything, and its outcome before the next one does.
//!
//! One transaction holds the outcome of an attempt, the beginning of the next one and the process that will make it, which waits at its
//! gate until then ([`ic_effects::child`]): a flush for each effect. A death before that transaction leaves the first attempt `running`, as one
//! between the end of its command and a record of its own would, and of the second nothing has run.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ic_base::{CompensationId, Result, RollbackId, Timestamp};
use ic_dispatch::process::ProcessIdentity;
use ic_effects::compensation::{self, Compensation, CompensationEnd, CompensationState};
use ic_effects::order::{self, FailurePolicy};
use ic_effects::undo::{self, EffectWatch, Ground, UndoneEffect};
use ic_ledger::Transaction;
use ic_phase::Run;
use ic_worktree::Workspace;

use super::plan::UndoPlan;
use super::saga::{Saga, Sink};

/// What became of a plan.
#[derive(Debug)]
pub struct Undoing {
    /// What was tried, in that order, with its present state.
    pub results: Vec<Compensation>,
    /// Effects that were meant and are not undone.
    pub left: Vec<CompensationId>,
    /// Whether an undo failed.
    pub has_failed: bool,
}

impl Saga<'_> {
    /// Undoes what is planned. Policy [`FailurePolicy::Stop`]: the first failure ends it. [`FailurePolicy::Continue`]: the rest is undone,
    /// except what a failed effect depends on. An effect that was declared to be left stays so while `rollback` stands.
    pub fn undo(
        &self,
        plan: &UndoPlan,
        policy: FailurePolicy,
        rollback: Option<&RollbackId>,
        sink: &mut dyn Sink,
    ) -> Result<Undoing> {
        let run = self.run()?;
        let workspace = Workspace::of_run(self.kernel, &run, self.settings)?;
        // A process that a predecessor left running must not work against what is undone now, whether its effect is meant or not.
        self.end_children()?;
        let journal = Journal { sink, ended: None, results: Vec::new() };
        let attempts = Attempts { saga: self, workspace, run: &run, rollback, journal: RefCell::new(journal) };
        let (mut failed, mut undone) = (Vec::new(), BTreeSet::new());
        let ended = attempts.all(plan, policy, &mut undone, &mut failed);
        // Whatever the outcome: what was tried is on record before the caller is told of it.
        let recorded = attempts.record();
        ended.and(recorded)?;
        let left = plan.order.iter().filter(|at| !undone.contains(*at)).map(|at| &plan.compensations[*at]);
        let left = left.chain(plan.left()).map(|compensation| compensation.id.clone()).collect();
        let results = attempts.journal.into_inner().results;
        Ok(Undoing { results, left, has_failed: !failed.is_empty() || self.is_interrupted() })
    }

    /// Waits, unless it is interrupted.
    fn sleep(&self, pause: Duration) {
        let begin = Instant::now();
        // In short pieces: Ctrl-C must not wait for the end of a backoff.
        while begin.elapsed() < pause && !self.is_interrupted() {
            std::thread::sleep(pause.saturating_sub(begin.elapsed()).min(Duration::from_millis(50)));
        }
    }
}

/// Where effects are undone, as part of what, and how far that is.
struct Attempts<'a> {
    saga: &'a Saga<'a>,
    workspace: Workspace<'a>,
    run: &'a Run,
    rollback: Option<&'a RollbackId>,
    journal: RefCell<Journal<'a>>,
}

struct Journal<'a> {
    sink: &'a mut dyn Sink,
    /// The attempt that ended last, with its state while it ran, where its end is not on record yet.
    ended: Option<(Compensation, UndoneEffect)>,
    /// The last attempts of effects, as they are on record.
    results: Vec<Compensation>,
}

impl Attempts<'_> {
    fn all(
        &self,
        plan: &UndoPlan,
        policy: FailurePolicy,
        undone: &mut BTreeSet<usize>,
        failed: &mut Vec<usize>,
    ) -> Result<()> {
        for at in plan.order.iter().copied() {
            // Asked for each effect anew: one whose dependents could not be undone must stay until they are.
            let blocked = order::blocked_by(&plan.started, &[at], failed);
            if self.saga.is_interrupted() || (!failed.is_empty() && policy == FailurePolicy::Stop) {
                break;
            }
            if !blocked.left.is_empty() {
                continue;
            }
            if self.one(&plan.compensations[at])? {
                undone.insert(at);
            } else {
                failed.push(at);
            }
        }
        Ok(())
    }

    /// Undoes one effect, with its retries; returns whether it is undone. The caller records the outcome of the last attempt.
    fn one(&self, compensation: &Compensation) -> Result<bool> {
        let log = self.saga.log_file(&format!("undo-{:04}.log", compensation.ord))?;
        let ground = Ground {
            root: &self.workspace.root,
            directory: &self.run.project_dir,
            objects: &self.workspace.objects,
            environment: vec![("IC_DB".into(), self.saga.kernel.ledger.name().into())],
            log,
        };
        let mut current = compensation.clone();
        // Each call counts anew: what an earlier call tried does not use up the retries of this one.
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (begun, outcome) = self.attempt(&current, &ground)?;
            let has_failed = matches!(outcome, UndoneEffect::Failed(_));
            self.journal.borrow_mut().ended = Some((begun.clone(), outcome));
            let pause = begun.action.how().and_then(|how| how.pause_after(attempt));
            match pause {
                Some(pause) if has_failed && !self.saga.is_interrupted() => {
                    // The pause may take minutes, in which a person looks at the journal.
                    self.record()?;
                    // The results have one entry for each effect: that of the retry replaces this one.
                    current = self.journal.borrow_mut().results.pop().unwrap_or(begun);
                    self.saga.sleep(pause);
                }
                _ => return Ok(!has_failed),
            }
        }
    }

    /// Makes one attempt; returns the compensation with its state on record during the attempt.
    fn attempt(&self, compensation: &Compensation, ground: &Ground<'_>) -> Result<(Compensation, UndoneEffect)> {
        let interrupted = &*self.saga.interrupted;
        let mut begun = None;
        // An action without a command has no gate to wait at, so its beginning is on record before it acts.
        if compensation.action.how().is_none() {
            begun = Some(self.begin(compensation, None)?);
        }
        let outcome = undo::attempt(
            compensation,
            ground,
            &mut EffectWatch {
                // The command waits at its gate until this returns.
                born: &mut |child| {
                    begun = Some(self.begin(compensation, Some(child))?);
                    Ok(())
                },
                live: &mut |_| {},
                cancelled: &|| interrupted.load(Relaxed),
            },
        )?;
        // A command that could not be started counts as an attempt.
        let begun = begun.map_or_else(|| self.begin(compensation, None), Ok)?;
        Ok((begun, outcome))
    }

    /// Records that an attempt begins, and before that how the last one ended: after a death the next call knows which effects may be half
    /// undone.
    fn begin(&self, compensation: &Compensation, child: Option<&ProcessIdentity>) -> Result<Compensation> {
        let mut journal = self.journal.borrow_mut();
        let (ended, begun) = self.saga.write(|tx, now| {
            let ended = self.finish(tx, now, &journal)?;
            let begun = compensation::begin(tx, now, compensation)?;
            if let Some(child) = child {
                compensation::record_child(tx, &begun.id, child)?;
            }
            Ok((ended, begun))
        })?;
        journal.is_recorded(ended);
        journal.sink.begins(&begun);
        Ok(begun)
    }

    /// Records how the last attempt ended, if that is not on record.
    fn record(&self) -> Result<()> {
        let mut journal = self.journal.borrow_mut();
        if journal.ended.is_some() {
            let ended = self.saga.write(|tx, now| self.finish(tx, now, &journal))?;
            journal.is_recorded(ended);
        }
        Ok(())
    }

    fn finish(&self, tx: &Transaction<'_>, now: Timestamp, journal: &Journal<'_>) -> Result<Option<Compensation>> {
        let Some((compensation, outcome)) = &journal.ended else { return Ok(None) };
        let end = match outcome {
            UndoneEffect::Done => CompensationEnd::Done,
            UndoneEffect::Skipped(why) => CompensationEnd::Skipped(why),
            UndoneEffect::Failed(why) => CompensationEnd::Failed(why),
        };
        let ended = compensation::finish(tx, now, compensation, end)?;
        if let Some(rollback) = self.rollback.filter(|_| ended.state == CompensationState::Skipped) {
            compensation::mark_left(tx, &ended, rollback)?;
        }
        Ok(Some(ended))
    }
}

impl Journal<'_> {
    /// How the last attempt ended is on record, as `ended` says.
    fn is_recorded(&mut self, ended: Option<Compensation>) {
        self.ended = None;
        if let Some(ended) = ended {
            self.sink.ended(&ended);
            self.results.push(ended);
        }
    }
}
