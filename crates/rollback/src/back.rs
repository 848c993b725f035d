//! The way back of a rollback: rows first, then git and files, then the run in one transaction. It is journaled like the way
//! forward, and the run is closed meanwhile.
//!
//! A step that is `pending` is back. One that was begun and not finished is begun again: rows that are back are told by their
//! archive, paths that are back are left alone.

use ic_base::{Code, Diagnosis, Result, Seq, Timestamp};
use ic_dispatch::cancel;
use ic_events::{EventType, NewEvent};
use ic_journal::Force;
use ic_journal::choices;
use ic_journal::steps::{self, Course, Happening, Step, StepKind, StepState};
use ic_journal::table::{self, Remembered, RollbackStatus};
use ic_kernel::require_own_project;
use ic_phase::{run, skip};
use ic_runtrack::{agent, artifact};
use ic_saga::compensation::{self, Compensation};
use ic_store::{Snapshot, Transaction};
use ic_worktree::{Report, Watch};
use serde_json::{Value, json};

use super::carry::{INTERRUPTED, event, reason};
use super::data::{self, Data};
use super::lift;
use super::quiet;
use super::tree::{self, Look};
use crate::compensation::Saga;

/// A rollback that was taken back, or as much of it as could be.
#[derive(Debug)]
pub struct Undone {
    /// The rollback, as it is now.
    pub remembered: Remembered,
    /// Its steps; none of a rollback of the workflow layer alone.
    pub steps: Vec<Step>,
    /// What was done about files and git's state, a report for each restore that was taken back, newest first.
    pub tree: Vec<Report>,
    /// The rows that are back.
    pub data: Option<Data>,
    /// Effects that the rollback undid: they are not made again.
    pub effects: Vec<Compensation>,
    /// The event; `None` where something could not be put back: a step says why.
    pub seq: Option<Seq>,
    /// Which way it went, or would go: an undo, a rollback that is aborted, or one that stands because its undo is aborted.
    pub course: Course,
    /// It had been taken back before, and this is what was passed over then. The run stays where it is.
    pub is_rest: bool,
    /// Whether this is what would be: nothing was changed.
    pub is_dry_run: bool,
}

/// A way back that was begun, now or by a process that died.
pub(super) struct Way<'s, 'k> {
    pub(super) saga: &'s Saga<'k>,
    pub(super) remembered: Remembered,
    pub(super) course: Course,
    /// What somebody changed meanwhile is put back, too.
    pub(super) force: Force,
}

/// What a way back did so far.
#[derive(Default)]
struct Done {
    tree: Vec<Report>,
    data: Option<Data>,
    /// Whether anything outside of the ledger is other than it was.
    is_any: bool,
}

impl Way<'_, '_> {
    /// Records that it begins; returns the steps as they were. The run is closed from now on.
    ///
    /// Errors: those of `check`, which looks at the run in the same transaction: nothing is changed.
    pub(super) fn begin(
        &self,
        reason: Option<&str>,
        check: impl Fn(&Snapshot<'_>) -> Result<()>,
    ) -> Result<Vec<Step>> {
        let id = &self.remembered.id;
        let event_type = match self.course {
            Course::Undo => EventType::RollbackUndoBegun,
            _ => EventType::RollbackAbandonBegun,
        };
        self.saga.write(|tx, now| {
            check(tx)?;
            // What the end needs is known before anything outside of the ledger is changed.
            choices::run_status(&self.remembered)?;
            let begun = NewEvent { reason, ..self.event(tx, event_type)? };
            ic_events::append(tx, now, &begun)?;
            let before = steps::of_rollback(tx, id)?;
            for step in
                before.iter().filter(|step| is_outside(step) && steps::may_have_changed(step, &before))
            {
                // Whatever came of it, there may be something to be put back.
                steps::set(tx, now, id, step.ord, Happening::TurnsBack, None)?;
            }
            steps::set_course(tx, now, id, &before, self.course)?;
            table::set_status(tx, now, id, RollbackStatus::InProgress)?;
            run::close_for_rollback(tx, now, &self.remembered.run_id)?;
            Ok(before)
        })
    }

    /// Goes it to its end, or to the first step that fails. `before`: the steps as they were if this call began it; then a failure
    /// before anything was changed is an error, and it is as if it had not been begun.
    pub(super) fn go(self, before: Option<&[Step]>, watch: &Watch) -> Result<Undone> {
        let id = self.remembered.id.clone();
        let until = self.saga.kernel.read(|snapshot| self.until(snapshot))?;
        let effects =
            self.saga.kernel.read(|snapshot| quiet::undone_effects(snapshot, &self.remembered, until))?;
        let mut done = Done::default();
        for kind in [StepKind::Data, StepKind::Tree] {
            let all = self.saga.kernel.read(|snapshot| steps::of_rollback(snapshot, &id))?;
            let is_left = |step: &&Step| {
                step.kind == kind && !matches!(step.state, StepState::Pending | StepState::Skipped)
            };
            let Some(step) = all.iter().find(is_left) else { continue };
            if self.saga.is_interrupted() {
                self.saga.write(|tx, now| {
                    let stopped = self.step_event(tx, EventType::RollbackStopped, kind)?;
                    ic_events::append(tx, now, &NewEvent { reason: Some(INTERRUPTED), ..stopped })?;
                    table::set_status(tx, now, &id, RollbackStatus::Stopped)
                })?;
                return self.report(done, effects, None);
            }
            self.saga.write(|tx, now| {
                table::set_status(tx, now, &id, RollbackStatus::InProgress)?;
                steps::set(tx, now, &id, step.ord, Happening::BeginsBack, None)
            })?;
            let put_back = match kind {
                StepKind::Data => self.rows(step, &mut done),
                _ => self.tree(until, &mut done, watch),
            };
            match put_back {
                Ok(()) => self.saga.write(|tx, now| {
                    ic_events::append(tx, now, &self.step_event(tx, EventType::RollbackStepDone, kind)?)?;
                    steps::set(tx, now, &id, step.ord, Happening::IsUndone, None)
                })?,
                Err(error) => {
                    if let Some(before) = before.filter(|_| !done.is_any) {
                        self.retreat(before, kind, &error)?;
                        return Err(error);
                    }
                    self.stop(step, &error)?;
                    return self.report(done, effects, None);
                }
            }
        }
        let seq = self.saga.write(|tx, now| {
            let reason = self.reason(tx)?;
            self.finish(tx, now, reason.as_deref())
        })?;
        self.report(done, effects, Some(seq))
    }

    /// Goes it in one transaction: nothing outside of the ledger is to be put back. Errors: those of `check`.
    pub(super) fn go_at_once(
        &self,
        reason: Option<&str>,
        check: impl Fn(&Snapshot<'_>) -> Result<()>,
    ) -> Result<Undone> {
        let until = self.saga.kernel.read(|snapshot| self.until(snapshot))?;
        let effects =
            self.saga.kernel.read(|snapshot| quiet::undone_effects(snapshot, &self.remembered, until))?;
        let seq = self.saga.write(|tx, now| {
            check(tx)?;
            self.finish(tx, now, reason)
        })?;
        self.report(Done::default(), effects, Some(seq))
    }

    /// Puts back what was passed over when the rollback was taken back. The run stays as it is.
    ///
    /// Errors: whatever stands against a step; those before it are made, and the same call makes the others.
    pub(super) fn go_for_the_rest(&self, reason: Option<&str>, watch: &Watch) -> Result<Undone> {
        let (kernel, id) = (self.saga.kernel, &self.remembered.id);
        kernel.read(|snapshot| table::require_finished(snapshot, &self.remembered.run_id))?;
        let until = kernel.read(|snapshot| self.until(snapshot))?;
        let (mut done, mut seq) = (Done::default(), None);
        for kind in [StepKind::Data, StepKind::Tree] {
            let all = kernel.read(|snapshot| steps::of_rollback(snapshot, id))?;
            let passed_over = steps::not_put_back(&self.remembered, &all);
            let Some(step) = passed_over.into_iter().find(|step| step.kind == kind) else { continue };
            match kind {
                StepKind::Data => self.rows(step, &mut done)?,
                _ => self.tree(until, &mut done, watch)?,
            }
            seq = Some(self.saga.write(|tx, now| {
                steps::set(tx, now, id, step.ord, Happening::IsUndone, None)?;
                let event = self.step_event(tx, EventType::RollbackStepDone, kind)?;
                ic_events::append(tx, now, &NewEvent { reason, ..event })
            })?);
        }
        Ok(Undone { is_rest: true, course: Course::Undo, ..self.report(done, Vec::new(), seq)? })
    }

    /// What the rollback did lies before this event.
    fn until(&self, snapshot: &Snapshot<'_>) -> Result<Seq> {
        match self.course {
            Course::Undo => quiet::settled(snapshot, &self.remembered).map(|event| event.seq),
            _ => Ok(Seq::MAX),
        }
    }

    fn rows(&self, step: &Step, done: &mut Done) -> Result<()> {
        let kernel = self.saga.kernel;
        require_own_project(kernel, &self.saga.run()?)?;
        data::require_archives(kernel, &self.remembered, &step.detail["rows"])?;
        let put_back = data::put_back(kernel, self.saga.settings, &self.remembered, kernel.context.now())?;
        done.is_any |= put_back.is_begun;
        done.data = put_back.data;
        put_back.error.map_or(Ok(()), Err)
    }

    fn tree(&self, until: Seq, done: &mut Done, watch: &Watch) -> Result<()> {
        let (ground, look) =
            ((self.saga.kernel, self.saga.settings), Look { until, force: self.force, dry_run: false });
        let found = tree::to_put_back(ground, &self.remembered, look, watch)?;
        let Some(found) = found else { return Ok(()) };
        let put_back = tree::put_back(&found, (false, self.force), &mut done.tree, watch);
        done.is_any |= done.tree.iter().any(|report| report.safety_id.is_some());
        put_back?;
        let failed = done.tree.last().and_then(|report| report.failed.first());
        failed.map_or(Ok(()), |(path, why)| {
            let path = String::from_utf8_lossy(&path.0).into_owned();
            Err(Diagnosis::new(
                Code::Io,
                format!("{path} could not be put back: {}.", why.trim_end_matches('.')),
            ))
        })
    }

    /// Records that a step failed: the run stays closed.
    fn stop(&self, step: &Step, error: &Diagnosis) -> Result<()> {
        let id = &self.remembered.id;
        let why = reason(error);
        self.saga.write(|tx, now| {
            let stopped = self.step_event(tx, EventType::RollbackStopped, step.kind)?;
            ic_events::append(tx, now, &NewEvent { reason: Some(&why), ..stopped })?;
            table::set_status(tx, now, id, RollbackStatus::Stopped)?;
            steps::fail(tx, now, id, step.ord, error.code(), &why, None)
        })
    }

    /// Records that it was not begun after all.
    fn retreat(&self, before: &[Step], kind: StepKind, error: &Diagnosis) -> Result<()> {
        let id = &self.remembered.id;
        let why = reason(error);
        self.saga.write(|tx, now| {
            let event_type = match self.course {
                Course::Undo => EventType::RollbackUndoAbandoned,
                _ => EventType::RollbackStopped,
            };
            let stopped = self.step_event(tx, event_type, kind)?;
            ic_events::append(tx, now, &NewEvent { reason: Some(&why), ..stopped })?;
            steps::set_course(tx, now, id, before, steps::course(before))?;
            for step in before {
                steps::restore(tx, now, id, step)?;
            }
            table::set_status(tx, now, id, self.remembered.status)?;
            match self.course {
                Course::Undo => {
                    run::reopen(tx, now, &self.remembered.run_id, choices::status_after(&self.remembered)?)
                }
                _ => Ok(()),
            }
        })
    }

    fn report(&self, done: Done, effects: Vec<Compensation>, seq: Option<Seq>) -> Result<Undone> {
        let id = &self.remembered.id;
        let (remembered, steps) = self
            .saga
            .kernel
            .read(|snapshot| Ok((table::get(snapshot, id)?, steps::of_rollback(snapshot, id)?)))?;
        let (is_rest, is_dry_run) = (false, false);
        let (tree, data, course) = (done.tree, done.data, self.course);
        Ok(Undone { remembered, steps, tree, data, effects, seq, course, is_rest, is_dry_run })
    }

    /// The run is where it was, and what was marked counts again.
    fn finish(&self, tx: &Transaction<'_>, now: Timestamp, reason: Option<&str>) -> Result<Seq> {
        let (event_type, status) = match self.course {
            Course::Undo => (EventType::RollbackUndone, RollbackStatus::Undone),
            _ => (EventType::RollbackAbandoned, RollbackStatus::Abandoned),
        };
        let remembered = &self.remembered;
        let before = choices::run_status(remembered)?;
        let current = run::get(tx, &remembered.run_id)?;
        let (to, epoch) = match remembered.only() {
            Some(_) => (current.phase.clone(), current.epoch),
            None => (remembered.from_phase.clone(), current.epoch + 1),
        };
        let event = NewEvent {
            subject_id: Some(remembered.id.as_str()),
            from: Some(&current.phase),
            to: Some(&to),
            reason,
            payload: Some(unmark(tx, now, remembered)?),
            ..NewEvent::of(&remembered.run_id, epoch, event_type)
        };
        let seq = ic_events::append(tx, now, &event)?;
        match remembered.only() {
            Some(_) => run::reopen(tx, now, &remembered.run_id, before)?,
            None => run::undo_rollback(tx, now, &remembered.run_id, &to, before)?,
        }
        lift::on(tx, now, &remembered.reinstated())?;
        table::set_status(tx, now, &remembered.id, status)?;
        Ok(seq)
    }

    /// Why it was begun.
    fn reason(&self, snapshot: &Snapshot<'_>) -> Result<Option<String>> {
        let begun = [EventType::RollbackUndoBegun, EventType::RollbackAbandonBegun].map(EventType::as_str);
        let mut reason = None;
        ic_events::each_since(
            snapshot,
            Some(&self.remembered.run_id),
            self.remembered.seq,
            i64::MAX,
            |event| {
                let is_own = event.subject_id.as_deref() == Some(self.remembered.id.as_str());
                if is_own && begun.contains(&event.event_type.as_str()) {
                    reason = event.reason;
                }
                Ok(std::ops::ControlFlow::Continue(()))
            },
        )?;
        Ok(reason)
    }

    fn event(&self, snapshot: &Snapshot<'_>, event_type: EventType) -> Result<NewEvent<'_>> {
        let epoch = run::get(snapshot, &self.remembered.run_id)?.epoch;
        Ok(NewEvent {
            subject_id: Some(self.remembered.id.as_str()),
            payload: Some(json!({ "course": self.course.as_str() })),
            ..NewEvent::of(&self.remembered.run_id, epoch, event_type)
        })
    }

    fn step_event(
        &self,
        snapshot: &Snapshot<'_>,
        event_type: EventType,
        kind: StepKind,
    ) -> Result<NewEvent<'_>> {
        let payload = json!({ "step": kind.as_str(), "course": self.course.as_str() });
        Ok(NewEvent { payload: Some(payload), ..self.event(snapshot, event_type)? })
    }
}

/// Whether a step changes something that can be put back.
pub(super) fn is_outside(step: &Step) -> bool {
    matches!(step.kind, StepKind::Tree | StepKind::Data)
}

/// Takes the marks off; returns how many of each kind.
pub(super) fn unmark(tx: &Transaction<'_>, now: Timestamp, remembered: &Remembered) -> Result<Value> {
    let id = &remembered.id;
    Ok(json!({
        "rollback_id": id.as_str(),
        "dispatches": cancel::unmark(tx, id)?,
        "artifacts": artifact::unmark(tx, id)?,
        "agents": agent::unmark(tx, id)?,
        "skips": skip::unmark(tx, id)?,
        "effects": compensation::unmark(tx, now, (&remembered.run_id, id))?,
    }))
}

/// Records that the undo of a rollback is aborted, and moves the run on to the rollback's phase again: `carry_on` makes what is left.
pub(super) fn give_undo_up(saga: &Saga<'_>, remembered: &Remembered, reason: Option<&str>) -> Result<()> {
    let id = &remembered.id;
    saga.write(|tx, now| {
        let all = steps::of_rollback(tx, id)?;
        for step in all.iter().filter(|step| is_outside(step) && step.state != StepState::Done) {
            steps::set(tx, now, id, step.ord, Happening::IsToCome, None)?;
        }
        steps::set_course(tx, now, id, &all, Course::Stand)?;
        table::set_status(tx, now, id, RollbackStatus::InProgress)?;
        let begun =
            NewEvent { reason, ..event(remembered, EventType::RollbackUndoAbandoned, StepKind::Settle) };
        ic_events::append(tx, now, &begun).map(|_| ())
    })
}
