//! Taking a workflow back: its effects undone in reverse, then the tree and git restored, then the run itself.
//!
//! Each stage can be begun again: an effect that is undone is not open any more, a restore finishes one that was interrupted
//! and then has nothing to do, and the run moves back in one transaction at the end.

use std::path::PathBuf;

use ic_base::{CheckpointId, Code, Diagnosis, Result, RollbackId, RunId};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record;
use ic_checkpoint::restore::Strategy;
use ic_ops::checkpoint::{self, Conflict, RestoreRequest, Settings, Warning, Watch, Which};
use ic_ops::compensation::{self, Scope, UndoPlan};
use ic_ops::rollback;
use ic_ops::{Force, Kernel};
use ic_phase::{Run, RunStatus};
use ic_saga::compensation as rows;
use ic_saga::order::FailurePolicy;
use ic_store::{Snapshot, path_from_bytes};
use serde_json::json;

use crate::flow::{Flow, Ui};
use crate::others;
use crate::point::{self, Point};
use crate::report::{Report, Restored, Status, TakenBack};
use crate::table::{self, State, StepRow, StepState, Workflow};

impl Flow<'_> {
    /// Takes the workflow back, as far as it goes.
    ///
    /// Errors: `conflict` when something that cannot be undone came after what would be, unless `force`; nothing is changed.
    pub(crate) fn take_back(&mut self, strategy: Strategy, force: bool, ui: &mut dyn Ui) -> Result<Report> {
        let plan =
            self.kernel.read(|snapshot| undo_plan(snapshot, &self.run, &self.workflow, strategy, force))?;
        let rows: Vec<&StepRow> = self.rows.values().collect();
        // Effects cannot be made again: what the tree would refuse after them is refused before them, by force too.
        if self.is_rolling_back() || force {
            look_at_tree(self.kernel, self.settings, &self.workflow, &rows, (strategy, force))?;
        } else {
            refuse_to_overwrite(self.kernel, self.settings, &self.workflow, (&rows, true), strategy)?;
        }
        self.saga.close()?;
        let failed = self.workflow.failed_step.clone().zip(self.workflow.error.clone());
        self.set_state(State::RollingBack, failed.as_ref())?;
        let undoing = self.saga.undo(&plan, FailurePolicy::Stop, ui)?;
        let mut taken = TakenBack {
            strategy,
            compensations: undoing.results,
            left: undoing.left,
            restored: None,
            rollback_id: None,
            to_phase: self.run.phase.clone(),
            before_steps: Vec::new(),
            error: None,
            hint: None,
        };
        if undoing.has_failed || !taken.left.is_empty() {
            taken.error = Some("an effect could not be undone".to_owned());
            return self.rolling_back(taken);
        }
        // What the undos changed was not changed by somebody else.
        self.capture("after the undo of its steps", false, ui);
        match self.restore(strategy, force, ui) {
            Ok(restored) => taken.restored = restored,
            Err(error) => {
                taken.error = Some(format!("{}: {}", error.code().as_str(), error.message()));
                taken.hint = error.get_hint().map(str::to_owned);
                return self.rolling_back(taken);
            }
        }
        if let Some(Restored { failed, .. }) = &taken.restored
            && let Some((path, why)) = failed.first()
        {
            taken.error = Some(format!("{} could not be put back: {why}", path.display()));
            return self.rolling_back(taken);
        }
        self.settle_run(strategy, &mut taken)?;
        let failed_step = self.workflow.failed_step.clone();
        let error = self.workflow.error.clone();
        self.refresh()?;
        (self.workflow.failed_step, self.workflow.error) = (failed_step, error);
        self.report_rollback(Status::RolledBack, taken)
    }

    fn rolling_back(&self, taken: TakenBack) -> Result<Report> {
        self.report_rollback(Status::RollingBack, taken)
    }

    /// Puts the tree and git's state back. `None`: there is no checkpoint to restore.
    fn restore(&mut self, strategy: Strategy, force: bool, ui: &mut dyn Ui) -> Result<Option<Restored>> {
        let rows: Vec<&StepRow> = self.rows.values().collect();
        let target = self.kernel.read(|snapshot| target(snapshot, &self.workflow, &rows, strategy))?;
        let Some(target) = target else {
            let message = "no checkpoint was taken before the steps: files and git stay as they are";
            ui.warn(&Warning { code: "no_checkpoint", message: message.to_owned() });
            return Ok(None);
        };
        let is_gone = self.kernel.read(|snapshot| record::get(snapshot, &target))?.pruned_at.is_some();
        if is_gone && force {
            let message = "the checkpoint from before the steps was given up: files and git stay as they are";
            ui.warn(&Warning { code: "no_checkpoint", message: message.to_owned() });
            return Ok(None);
        }
        ui.restoring(strategy.as_str());
        let request = request(self.kernel, &target, strategy, force);
        let report = checkpoint::restore(self.kernel, self.settings, &request, &Watch::default())?;
        for warning in &report.warnings {
            ui.warn(warning);
        }
        Ok(Some(Restored {
            checkpoint_id: target,
            changes: report.plan.steps.len(),
            git: report.git.is_some_and(|git| !git.plan.is_empty()),
            failed: named(report.failed),
            skipped: named(report.plan.skipped),
            not_compared: named(report.not_compared),
            not_kept: named(report.plan.not_kept),
            differs: named(report.differs),
        }))
    }

    /// The end, in one transaction: the run is open again, at its first phase, and what it did is marked.
    fn settle_run(&mut self, strategy: Strategy, taken: &mut TakenBack) -> Result<()> {
        let id: RollbackId = self.kernel.context.new_id();
        let point = self.kernel.read(|snapshot| point_of(snapshot, &self.run, &self.workflow))?;
        if let Some(point) = point {
            return self.settle_before(&id, point, taken);
        }
        let is_whole = strategy != Strategy::Partial || self.workflow.failed_step.is_none();
        let first = self.definition.steps.first().map_or("", |step| step.phase.as_str());
        let reason = match (&self.workflow.failed_step, &self.workflow.error) {
            (Some(step), Some(error)) => format!("step {step} failed: {error}"),
            _ => format!("the workflow {} was taken back", self.definition.name),
        };
        let failed = self.workflow.failed_step.clone().zip(self.workflow.error.clone());
        self.saga.write(|tx, now| {
            self.saga.reopen_in(tx, now)?;
            let failed = failed.as_ref().map(|(step, error)| (step.as_str(), error.as_str()));
            table::set_state(tx, now, &self.run.id, State::RolledBack, failed)?;
            if !is_whole {
                return Ok(());
            }
            let run = ic_phase::run::get(tx, &self.run.id)?;
            rollback::take_back(tx, now, &id, run, (first, true), Some(&reason))?;
            rows::mark_rolled_back(tx, &self.run.id, &id)
        })?;
        if is_whole {
            taken.rollback_id = Some(id);
            first.clone_into(&mut taken.to_phase);
        }
        Ok(())
    }

    /// As [`Flow::settle_run`], where earlier steps stand: the run is where it was when the point was taken, and only what it did since
    /// is marked. No step counts as failed any more: it lies ahead again.
    fn settle_before(&mut self, id: &RollbackId, point: Point, taken: &mut TakenBack) -> Result<()> {
        let reason = format!("rolled back to before {}", point.steps.join(" and "));
        self.saga.write(|tx, now| {
            self.saga.reopen_in(tx, now)?;
            table::set_state(tx, now, &self.run.id, State::RolledBack, None)?;
            let run = ic_phase::run::get(tx, &self.run.id)?;
            let cut = point.cut(&run);
            rollback::take_back_after(tx, now, id, run, (&point.phase, cut.seq), Some(&reason))?;
            let undone = rows::taken_back(tx, &cut)?;
            rows::mark(tx, &undone, id)
        })?;
        taken.rollback_id = Some(id.clone());
        taken.to_phase = point.phase;
        taken.before_steps = point.steps;
        Ok(())
    }

    pub(crate) fn set_state(&mut self, state: State, failed: Option<&(String, String)>) -> Result<()> {
        let failed = failed.map(|(step, error)| (step.as_str(), error.as_str()));
        self.saga.write(|tx, now| table::set_state(tx, now, &self.run.id, state, failed))?;
        self.workflow.state = state;
        self.workflow.failed_step = failed.map(|(step, _)| step.to_owned());
        self.workflow.error = failed.map(|(_, error)| error.to_owned());
        Ok(())
    }

    /// Whether a rollback of it was begun and not finished.
    pub(crate) fn is_rolling_back(&self) -> bool {
        is_being_taken_back(&self.run, &self.workflow)
    }

    /// The first step that failed or was interrupted, and why.
    pub(crate) fn failure(&self, steps: &[usize]) -> Option<(String, String)> {
        let is_bad = |state| matches!(state, StepState::Failed | StepState::Interrupted | StepState::Running);
        let row = steps.iter().filter_map(|at| self.rows.get(at)).find(|row| is_bad(row.state))?;
        Some((row.step.clone(), row.error.clone().unwrap_or_else(|| "it was interrupted".to_owned())))
    }
}

fn named(pairs: impl IntoIterator<Item = (PathText, String)>) -> Vec<(PathBuf, String)> {
    pairs.into_iter().map(|(path, why)| (path_from_bytes(&path.0), why)).collect()
}

/// What the restore of a rollback would do to the tree as it is now; `None`: there is nothing to restore. Errors: all for which the
/// restore would be refused but conflicts.
pub(crate) fn look_at_tree(
    kernel: &Kernel,
    settings: &Settings,
    workflow: &Workflow,
    rows: &[&StepRow],
    (strategy, force): (Strategy, bool),
) -> Result<Option<checkpoint::Report>> {
    let target = kernel.read(|snapshot| target(snapshot, workflow, rows, strategy))?;
    let Some(target) = target else { return Ok(None) };
    if force && kernel.read(|snapshot| record::get(snapshot, &target))?.pruned_at.is_some() {
        return Ok(None);
    }
    let request = RestoreRequest { dry_run: true, ..request(kernel, &target, strategy, force) };
    let mut report = checkpoint::restore(kernel, settings, &request, &Watch::default())
        .map_err(|error| with_a_way(error, &workflow.run_id))?;
    // What others changed was weighed before a rollback began; since then the undos themselves may have changed it.
    report.refusal = None;
    Ok(Some(report))
}

/// Names the command of a workflow that leads on: what a restore by itself hints at is no way for its rollback.
fn with_a_way(error: Diagnosis, run: &RunId) -> Diagnosis {
    let run = run.short();
    match error.code() {
        Code::CheckpointNotFound => error
            .hint(format!("to undo its effects and leave files and git: ic workflow rollback {run} --force --yes")),
        Code::ForeignCommits => error.hint(format!(
            "to leave git as it is: ic workflow rollback {run} --strategy files-only --yes; to take the commit off its branch all the same: --force"
        )),
        _ => error,
    }
}

/// Refuses a rollback that would overwrite what somebody else changed. It must not have begun: what an undo changes counts too.
///
/// Errors: `conflict`, with `details.conflicts`; if the run `is_ours`, and so none of its steps lives, also all else for which the
/// restore would be refused.
pub(crate) fn refuse_to_overwrite(
    kernel: &Kernel,
    settings: &Settings,
    workflow: &Workflow,
    (rows, is_ours): (&[&StepRow], bool),
    strategy: Strategy,
) -> Result<()> {
    let target = kernel.read(|snapshot| target(snapshot, workflow, rows, strategy))?;
    let Some(target) = target else { return Ok(()) };
    let request = RestoreRequest { dry_run: true, ..request(kernel, &target, strategy, !is_ours) };
    let report = checkpoint::restore(kernel, settings, &request, &Watch::default())
        .map_err(|error| with_a_way(error, &workflow.run_id))?;
    let mut conflicts = report.conflicts;
    if conflicts.is_empty() {
        let paths = report.plan.steps.iter().map(|step| step.path.0.as_slice());
        conflicts = others::conflicts(kernel, settings, &target, paths)?;
    }
    let Some(first) = conflicts.first() else { return Ok(()) };
    let text = |conflict: &Conflict| String::from_utf8_lossy(&conflict.path.0).into_owned();
    let named = |conflict: &Conflict| json!({ "path": text(conflict), "reason": conflict.reason });
    let more = match conflicts.len() - 1 {
        0 => String::new(),
        more => format!("; so would {more} more"),
    };
    let run = workflow.run_id.short();
    Err(Diagnosis::new(
        Code::Conflict,
        format!("{} would be overwritten: {}{more}.", text(first), first.reason),
    )
    .hint(format!("to overwrite it: ic workflow rollback {run} --force --yes"))
    .detail("conflicts", conflicts.iter().map(named).collect::<Vec<_>>()))
}

/// The checkpoint that a rollback names; else that before the first step; with [`Strategy::Partial`], before the one that failed.
///
/// The ledger's order decides which was first: a resumed executor knows only the steps that it began itself in the order in
/// which it began them, and a file may list its steps in any order.
pub(crate) fn target(
    snapshot: &Snapshot<'_>,
    workflow: &Workflow,
    rows: &[&StepRow],
    strategy: Strategy,
) -> Result<Option<CheckpointId>> {
    if let Some(to) = workflow.options.to() {
        return Ok(Some(to));
    }
    let failed = workflow.failed_step.as_deref().filter(|_| strategy == Strategy::Partial);
    let meant = rows.iter().filter(|row| failed.is_none_or(|step| row.step == step));
    let mut first: Option<record::Checkpoint> = None;
    for id in meant.filter_map(|row| row.checkpoint_id.as_ref()) {
        let checkpoint = record::get(snapshot, id)?;
        if first.as_ref().is_none_or(|first| checkpoint.seq < first.seq) {
            first = Some(checkpoint);
        }
    }
    Ok(first.map(|checkpoint| checkpoint.id))
}

pub(crate) fn request<'r>(
    kernel: &Kernel,
    target: &'r CheckpointId,
    strategy: Strategy,
    force: bool,
) -> RestoreRequest<'r> {
    let restoring = match strategy {
        Strategy::Full | Strategy::Partial if ic_store::git_dirs(&kernel.project.root).is_some() => {
            Strategy::Full
        }
        Strategy::Full | Strategy::Partial | Strategy::FilesOnly => Strategy::FilesOnly,
        Strategy::GitOnly => Strategy::GitOnly,
    };
    RestoreRequest {
        which: Which::Id(target.as_str()),
        strategy: Some(restoring),
        paths: &[],
        mine: false,
        dry_run: false,
        force: Force::all_if(force),
        keep_theirs: false,
        into: false,
        compares_all: true,
        beside_others: false,
        expect_plan: None,
    }
}

/// Whether a rollback of a workflow was begun and not finished.
pub(crate) fn is_being_taken_back(run: &Run, workflow: &Workflow) -> bool {
    run.status == RunStatus::RollingBack || workflow.state == State::RollingBack
}

/// The point that a rollback names; none where it names none, or the first: then all of the workflow is meant.
///
/// Errors: those of [`point::before`].
pub(crate) fn point_of(snapshot: &Snapshot<'_>, run: &Run, workflow: &Workflow) -> Result<Option<Point>> {
    let Some(to) = workflow.options.to() else { return Ok(None) };
    Ok(Some(point::before(snapshot, run, workflow, &to)?).filter(|point| !point.is_first))
}

/// What is undone to take a workflow back.
///
/// Errors: `conflict` when something that cannot be undone came after what would be, unless `force`.
pub(crate) fn undo_plan(
    snapshot: &Snapshot<'_>,
    run: &Run,
    workflow: &Workflow,
    strategy: Strategy,
    force: bool,
) -> Result<UndoPlan> {
    let scope = match (point_of(snapshot, run, workflow)?, &workflow.failed_step, strategy) {
        (Some(point), ..) => Scope::After(point.cut(run)),
        (None, Some(step), Strategy::Partial) if workflow.options.to.is_none() => {
            dependents(snapshot, run, step)?
        }
        (None, ..) => Scope::All,
    };
    let plan = compensation::plan(snapshot, run, &scope, force)?;
    match &plan.pivot {
        Some(pivot) => Err(beyond(run, workflow, pivot)),
        None => Ok(plan),
    }
}

/// The effects of a step and of what depends on it; a step without any is no reason to refuse.
fn dependents(snapshot: &Snapshot<'_>, run: &Run, step: &str) -> Result<Scope> {
    let all = rows::list(snapshot, &run.id)?;
    if all.iter().any(|compensation| compensation.step == step) {
        return Ok(Scope::Dependents(step.to_owned()));
    }
    // A cut after everything: nothing is meant.
    Ok(Scope::After(ic_events::Cut { run_id: run.id.clone(), seq: i64::MAX, phases: Vec::new(), only: None }))
}

fn beyond(run: &Run, workflow: &Workflow, pivot: &str) -> Diagnosis {
    let run = run.id.short();
    let undo = format!("to undo the rest all the same: ic workflow rollback {run} --force --yes");
    let hint = match workflow.state {
        State::Completed => undo,
        _ => format!("to go on: ic workflow resume {run}; {undo}"),
    };
    Diagnosis::new(
        Code::Conflict,
        format!(
            "The step {pivot} cannot be undone, and nothing that was done before it is undone without it."
        ),
    )
    .hint(hint)
    .detail("pivot", pivot)
}
