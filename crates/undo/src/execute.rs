//! The one loop that carries a rollback out, whichever way it goes, with its journal.
//!
//! ```text
//!            fence                    settle                undo begins
//!   (none) ────────▶ FORWARD ─────────────────▶ (done) ─────────────────▶ UNDO ──▶ (undone)
//!                       │                          ▲                       │  ▲
//!                 abort │                          │ settle          abort │  │ undo again
//!                       ▼                          │                       ▼  │
//!                     ABORT ──▶ (aborted)          └──────────────────── REAPPLY
//! ```
//!
//! Forward (FORWARD, REAPPLY) the steps are executed in their order: effects, tree, rows, run. A step that is `done` is behind. Back (UNDO,
//! ABORT) they are executed in reverse, without effects, which cannot be made again; a step that is `pending` is behind. Each step is
//! recorded as begun before it changes anything and as ended after it, so a call after a crash begins the same step again; layers make that
//! safe. The run's own step is one transaction with its journal, so it is never half done. An interruption stops between two steps. A
//! failure stops too, except in the first step of an undo or abort that this call began: then that is recorded as not begun.
//!
//! The course is kept with the last step.

use ic_base::{Code, Diagnosis, Result, RollbackId};
use ic_kernel::journal::StepDetail;
use ic_kernel::journal::steps::{self, Course, RollbackStep, RollbackStepState, StepEvent, StepKind};
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_kernel::journal::{Force, choices};
use ic_ledger::events::{EventType, NewEvent};
use ic_phase::run;
use ic_worktree::RestoreWatch;

use super::coverage::Covered;
use super::events::step_event;
use super::layers::{self, LayerWork, Site, decided_by_force};
use super::outcome::Parts;
use crate::compensation::{Saga, Sink};

/// The reason that is recorded where a step was not begun.
const INTERRUPTED: &str = "it was interrupted";

/// A rollback that is carried out, and the caller's decisions.
pub(super) struct Drive<'d, 'k> {
    pub(super) saga: &'d Saga<'k>,
    pub(super) id: &'d RollbackId,
    /// The refusals that this call passes.
    pub(super) force: Force,
    /// The plan that the caller insists on.
    pub(super) seen: Option<&'d Parts>,
    /// The rollback before this call changed its direction; `None`: it did not.
    pub(super) turned: Option<&'d Turned>,
    pub(super) watch: &'d RestoreWatch,
}

/// The state of a rollback before its direction was changed.
pub(super) struct Turned {
    pub(super) status: RollbackStatus,
    pub(super) steps: Vec<RollbackStep>,
}

/// The state of a rollback when this call stopped, and what the call did.
pub(super) struct Driven {
    pub(super) remembered: RollbackRecord,
    pub(super) steps: Vec<RollbackStep>,
    pub(super) work: LayerWork,
}

impl Drive<'_, '_> {
    /// Executes the steps that are left, in the direction that the journal says. The first that fails ends it, and so does an interruption
    /// between two of them. A failure is recorded in the steps.
    ///
    /// Errors: why the first step of an undo or abort failed that this call began, when nothing was changed by then.
    pub(super) fn to_its_end(&self, mut sink: Option<&mut dyn Sink>) -> Result<Driven> {
        let mut work = LayerWork::default();
        loop {
            // Read anew for each step: the journal says what comes next, not what this process remembers.
            let (remembered, all) = self.look()?;
            let course = steps::course(&all);
            let Some(step) = next(&remembered, &all, course) else {
                return Ok(Driven { remembered, steps: all, work });
            };
            // With only the last step left, a stop would leave the run closed and save nothing.
            if self.saga.is_interrupted() && step.kind != StepKind::Settle {
                self.stop(&remembered, step, course, None)?;
                // They are read again: the caller reports what is on record.
                let (remembered, steps) = self.look()?;
                return Ok(Driven { remembered, steps, work });
            }
            let covered = Covered::begun(self.saga.kernel, &remembered)?;
            self.begin(step, course)?;
            let mut site = Site {
                force: self.force,
                seen: self.seen,
                sink: sink.as_mut().map(|sink| &mut **sink as &mut dyn Sink),
                ..Site::of_owner(self.saga, &covered, course, self.watch)
            };
            match layers::of(step.kind).go(&mut site, step, &mut work) {
                Ok(detail) => self.end(&remembered, step, course, &detail)?,
                Err(error) => {
                    // Nothing was changed yet, so the rollback can stay what it was before this call.
                    if let Some(before) = self.turned.filter(|_| course.is_back() && !work.has_changed) {
                        self.restore(&remembered, step, before, &error)?;
                        return Err(error);
                    }
                    self.stop(&remembered, step, course, Some(&error))?;
                    let (remembered, steps) = self.look()?;
                    return Ok(Driven { remembered, steps, work });
                }
            }
        }
    }

    fn look(&self) -> Result<(RollbackRecord, Vec<RollbackStep>)> {
        let id = self.id;
        self.saga.kernel.read(|snapshot| Ok((table::get(snapshot, id)?, steps::of_rollback(snapshot, id)?)))
    }

    fn begin(&self, step: &RollbackStep, course: Course) -> Result<()> {
        // The end of an undo or abort is one transaction, and its step stays `pending`: the run is where it was.
        if course.is_back() && step.kind == StepKind::Settle {
            return Ok(());
        }
        let happening = if course.is_back() { StepEvent::BeginsBack } else { StepEvent::Begins };
        self.saga.write(|tx, now| {
            // A call that resumes finds it `stopped`.
            table::set_status(tx, now, self.id, RollbackStatus::InProgress)?;
            steps::set(tx, now, self.id, step.ord, happening, None)
        })
    }

    fn end(&self, remembered: &RollbackRecord, step: &RollbackStep, course: Course, detail: &StepDetail) -> Result<()> {
        // The layer of the run recorded its own end in one transaction with what it changed.
        if step.kind == StepKind::Settle {
            return Ok(());
        }
        self.saga.write(|tx, now| {
            let done = step_event(tx, remembered, EventType::RollbackStepDone, step.kind, course)?;
            ic_ledger::events::append(tx, now, &done)?;
            if course.is_back() {
                // What the step found on the way forward is kept: another undo or abort needs it.
                steps::set(tx, now, self.id, step.ord, StepEvent::IsUndone, None)
            } else {
                steps::set(tx, now, self.id, step.ord, StepEvent::Succeeds, Some(detail))
            }
        })
    }

    /// Records that the rollback stopped before a step, or because of it. The run stays closed.
    fn stop(
        &self,
        remembered: &RollbackRecord,
        step: &RollbackStep,
        course: Course,
        error: Option<&Diagnosis>,
    ) -> Result<()> {
        let why = error.map_or_else(|| INTERRUPTED.to_owned(), reason);
        self.saga.write(|tx, now| {
            let stopped = step_event(tx, remembered, EventType::RollbackStopped, step.kind, course)?;
            ic_ledger::events::append(tx, now, &NewEvent { reason: Some(&why), ..stopped })?;
            table::set_status(tx, now, self.id, RollbackStatus::Stopped)?;
            // An interruption comes before the step is begun, so its row stays unchanged.
            let Some(error) = error else { return Ok(()) };
            // Only a forward step learns whether a flag decides it: an undo or abort asks for all decisions at once.
            let detail = if course.is_back() { None } else { decided_by_force(step, error) };
            steps::fail(tx, now, self.id, step.ord, error.code(), &why, detail.as_ref())
        })
    }

    /// Records that an undo or abort was not begun after all.
    fn restore(
        &self,
        remembered: &RollbackRecord,
        step: &RollbackStep,
        before: &Turned,
        error: &Diagnosis,
    ) -> Result<()> {
        let why = reason(error);
        let is_undo = before.status == RollbackStatus::Done;
        let (course, event_type) = if is_undo {
            (Course::Undo, EventType::RollbackUndoAborted)
        } else {
            (Course::Abort, EventType::RollbackStopped)
        };
        self.saga.write(|tx, now| {
            let stopped = step_event(tx, remembered, event_type, step.kind, course)?;
            ic_ledger::events::append(tx, now, &NewEvent { reason: Some(&why), ..stopped })?;
            // The order matters: setting the course makes the settlement pending, and the loop restores its former
            // state.
            steps::set_course(tx, now, self.id, &before.steps, steps::course(&before.steps))?;
            // Only what the turn set is restored: a step that it left alone may be `failed` or `skipped`, and stays so.
            let is_set = |step: &&RollbackStep| step.kind == StepKind::Settle || is_turned(step, &before.steps);
            for step in before.steps.iter().filter(is_set) {
                steps::restore(tx, now, self.id, step)?;
            }
            table::set_status(tx, now, self.id, before.status)?;
            // After an abort that was not begun the run stays closed: its rollback is still unfinished.
            if is_undo {
                run::reopen(tx, now, &remembered.run_id, choices::status_after(remembered)?)?;
            }
            Ok(())
        })
    }
}

/// The step that is next in this direction; `None`: all are done.
fn next<'s>(remembered: &RollbackRecord, all: &'s [RollbackStep], course: Course) -> Option<&'s RollbackStep> {
    if !course.is_back() {
        return all.iter().find(|step| !step.state.is_over());
    }
    // The end of an undo or abort is one transaction, which sets the status and leaves its step `pending`.
    if remembered.status.is_over() {
        return None;
    }
    let is_left = |step: &&RollbackStep| {
        is_outside(step) && !matches!(step.state, RollbackStepState::Pending | RollbackStepState::Skipped)
    };
    let settle = || all.iter().find(|step| step.kind == StepKind::Settle);
    all.iter().rev().find(is_left).or_else(settle)
}

/// Whether a step changes something outside of the ledger that can be restored.
pub(super) fn is_outside(step: &RollbackStep) -> bool {
    matches!(step.kind, StepKind::Tree | StepKind::Data)
}

/// Whether an undo or abort that begins sets a step to be undone: whatever came of it, there may be something to restore.
pub(super) fn is_turned(step: &RollbackStep, all: &[RollbackStep]) -> bool {
    is_outside(step) && steps::may_have_changed(step, all)
}

/// The reason that is recorded with a step that failed: the code and the message. For lost content also the hint, which no rollback can
/// replace.
pub(super) fn reason(error: &Diagnosis) -> String {
    let why = format!("{}: {}", error.code().as_str(), error.message());
    match error.get_hint() {
        Some(hint) if error.code() == Code::Corrupt => format!("{why} {hint}"),
        _ => why,
    }
}
