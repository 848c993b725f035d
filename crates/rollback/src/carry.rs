//! The steps of a rollback that was begun, one by one, with its journal.

use std::collections::BTreeSet;

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, Seq};
use ic_checkpoint::record::Checkpoint;
use ic_checkpoint::restore::reverse::Own;
use ic_events::{Cut, EventType, NewEvent};
use ic_journal::Force;
use ic_journal::choices::{self, Choices};
use ic_journal::layer::Layer;
use ic_journal::steps::{self, Course, Happening, Step, StepKind};
use ic_journal::table::{self, Remembered, RollbackStatus};
use ic_kernel::Kernel;
use ic_phase::{Run, run, skip};
use ic_runtrack::{agent, artifact, cancel_agents_by_phases, mark_artifacts_rolled_back};
use ic_saga::compensation as effects;
use ic_saga::order::FailurePolicy;
use ic_saga::{Compensation, State};
use ic_store::Transaction;
use ic_worktree::files_of_database;
use ic_worktree::{Deed, Report, RestoreRequest, Settings, Watch, Which, Workspace};
use serde_json::{Value, json};

use super::data;
use super::leaving;
use super::own;
use super::plan::Counts;
use super::preflight::target;
use super::quiet::undone_effects;
use super::seen;
use super::tree;
use super::whole::{Effects, Outcome, Parts};
use crate::compensation::{self, Saga, Scope, Sink};

/// Why a step was not begun.
pub(super) const INTERRUPTED: &str = "it was interrupted";

/// Makes the steps that are left, in order; the first that fails ends it, and so does an interruption, between two of them.
pub(super) fn carry_on(
    saga: &Saga<'_>,
    id: &RollbackId,
    (force, seen): (Force, Option<&Parts>),
    sink: &mut dyn Sink,
    watch: &Watch,
) -> Result<Outcome> {
    let mut parts = Parts::default();
    loop {
        let (remembered, all) = saga
            .kernel
            .read(|snapshot| Ok((table::get(snapshot, id)?, steps::of_rollback(snapshot, id)?)))?;
        let Some(step) = all.iter().find(|step| !step.state.is_over()).cloned() else {
            return Ok(Outcome { remembered, steps: all, parts });
        };
        if saga.is_interrupted() && step.kind != StepKind::Settle {
            saga.write(|tx, now| {
                let stopped = event(&remembered, EventType::RollbackStopped, step.kind);
                ic_events::append(tx, now, &NewEvent { reason: Some(INTERRUPTED), ..stopped })?;
                table::set_status(tx, now, id, RollbackStatus::Stopped)
            })?;
            let remembered = saga.kernel.read(|snapshot| table::get(snapshot, id))?;
            return Ok(Outcome { remembered, steps: all, parts });
        }
        saga.write(|tx, now| {
            table::set_status(tx, now, id, RollbackStatus::InProgress)?;
            steps::set(tx, now, id, step.ord, Happening::Begins, None)
        })?;
        let done = match step.kind {
            StepKind::Effects => undo_effects(saga, &remembered, &step, force, sink, &mut parts),
            StepKind::Tree => restore_tree(saga, &remembered, (force, seen), watch, &mut parts),
            StepKind::Data => take_rows_back(saga, &remembered, (force, seen), &mut parts),
            StepKind::Settle if steps::course(&all) == Course::Stand => stand(saga, &remembered, step.ord),
            StepKind::Settle => settle(saga, &remembered, step.ord).map(|()| Value::Null),
        };
        match done {
            Ok(_) if step.kind == StepKind::Settle => {}
            Ok(detail) => saga.write(|tx, now| {
                ic_events::append(tx, now, &event(&remembered, EventType::RollbackStepDone, step.kind))?;
                steps::set(tx, now, id, step.ord, Happening::Succeeds, Some(&detail))
            })?,
            Err(error) => {
                let why = reason(&error);
                saga.write(|tx, now| {
                    let stopped = NewEvent {
                        reason: Some(&why),
                        ..event(&remembered, EventType::RollbackStopped, step.kind)
                    };
                    ic_events::append(tx, now, &stopped)?;
                    table::set_status(tx, now, id, RollbackStatus::Stopped)?;
                    let detail = data::decided_by_force(&step, &error);
                    steps::fail(tx, now, id, step.ord, error.code(), &why, detail.as_ref())
                })?;
                let (remembered, steps) = saga
                    .kernel
                    .read(|snapshot| Ok((table::get(snapshot, id)?, steps::of_rollback(snapshot, id)?)))?;
                return Ok(Outcome { remembered, steps, parts });
            }
        }
    }
}

pub(super) fn event(remembered: &Remembered, event_type: EventType, kind: StepKind) -> NewEvent<'_> {
    NewEvent {
        subject_id: Some(remembered.id.as_str()),
        payload: Some(json!({ "step": kind.as_str() })),
        ..NewEvent::of(&remembered.run_id, remembered.epoch, event_type)
    }
}

/// The cut that a rollback was made with.
pub(super) fn cut_of(remembered: &Remembered) -> Result<Cut> {
    let phases = serde_json::from_value(remembered.plan["rolled_back_phases"].clone()).map_err(|e| {
        Diagnosis::new(Code::Corrupt, format!("The plan of the rollback {} is damaged: {e}.", remembered.id))
    })?;
    let only = remembered.only();
    Ok(Cut { run_id: remembered.run_id.clone(), seq: remembered.cut_seq, phases, only })
}

/// What became of the effects of a rollback: what this call came to, what earlier calls had undone, and what was left by decision.
fn effects_over(
    saga: &Saga<'_>,
    remembered: &Remembered,
    results: &[Compensation],
) -> Result<Vec<Compensation>> {
    saga.kernel.read(|snapshot| {
        let mut over = results.to_vec();
        let undone = undone_effects(snapshot, remembered, Seq::MAX)?;
        let left = effects::list(snapshot, &remembered.run_id)?
            .into_iter()
            .filter(|one| one.state == State::Skipped && one.rolled_back_by.as_ref() == Some(&remembered.id));
        for one in undone.into_iter().filter(|one| one.state == State::Done).chain(left) {
            if over.iter().all(|known| known.id != one.id) {
                over.push(one);
            }
        }
        Ok(over)
    })
}

fn undo_effects(
    saga: &Saga<'_>,
    remembered: &Remembered,
    step: &Step,
    force: Force,
    sink: &mut dyn Sink,
    parts: &mut Parts,
) -> Result<Value> {
    let cut = cut_of(remembered)?;
    let run = saga.run()?;
    let force = force.or(Choices::of(remembered)?.force()).past_pivot;
    let plan = saga.kernel.read(|snapshot| compensation::plan(snapshot, &run, &Scope::After(cut), force))?;
    let around = tree::keep_before_effects(saga, remembered, step, &plan)?;
    let undoing = saga.undo(&plan, FailurePolicy::Stop, sink)?;
    let around = tree::keep_after_effects(saga, remembered, step, &plan, around)?;
    let failed = undoing.results.iter().find(|result| result.state == State::Failed).cloned();
    let over = effects_over(saga, remembered, &undoing.results)?;
    let is_skipped = |one: &&Compensation| one.state == State::Skipped;
    let detail = json!({
        "before": around["before"],
        "after": around["after"],
        "goes": around["goes"],
        "compensations": over.iter().map(|c| json!([c.id.as_str(), c.state.as_str()])).collect::<Vec<_>>(),
        "skipped": over.iter().filter(is_skipped).map(|c| c.step.as_str()).collect::<Vec<_>>(),
    });
    let left = saga.kernel.read(|snapshot| {
        undoing.left.iter().map(|id| effects::get(snapshot, id)).collect::<Result<Vec<_>>>()
    })?;
    parts.effects = Some(Effects { compensations: undoing.results, left, pivot: plan.pivot.clone() });
    match failed {
        Some(compensation) => Err(Diagnosis::new(
            Code::EffectFailed,
            steps::not_undone(&compensation.step, compensation.last_error.as_deref().unwrap_or("it failed")),
        )),
        None if !undoing.left.is_empty() => {
            Err(Diagnosis::new(Code::EffectFailed, format!("{} effects are not undone", undoing.left.len())))
        }
        None => Ok(detail),
    }
}

fn take_rows_back(
    saga: &Saga<'_>,
    remembered: &Remembered,
    (force, seen): (Force, Option<&Parts>),
    parts: &mut Parts,
) -> Result<Value> {
    let run = saga.run()?;
    if let Some(seen) = seen.and_then(|seen| seen.data.as_ref()) {
        seen::require_rows(seen, &data::left(saga.kernel, saga.settings, &run, remembered)?)?;
    }
    let force = force.or(Choices::of(remembered)?.force()).files;
    let (data, detail) = data::take_back(saga.kernel, saga.settings, &run, (remembered, force))?;
    parts.data = Some(data);
    Ok(detail)
}

/// How the tree of a rollback is restored by this call, beside what its plan says.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) force: Force,
    pub(super) dry_run: bool,
    /// The plan that somebody has seen.
    pub(super) expect_plan: Option<&'a str>,
}

/// Where the tree of a rollback goes.
pub(super) struct Goal<'a> {
    workspace: Workspace<'a>,
    target: Checkpoint,
    remembered: &'a Remembered,
    /// Files that stay whatever the checkpoint has: a database whose rows are a layer of their own.
    keep: BTreeSet<Vec<u8>>,
    /// What one dispatch did, where that alone is undone.
    work: Option<Own>,
}

impl<'a> Goal<'a> {
    pub(super) fn of(
        (kernel, settings): (&'a Kernel, &'a Settings),
        run: &Run,
        remembered: &'a Remembered,
    ) -> Result<Self> {
        let workspace = Workspace::of_run(kernel, run, settings)?;
        let (target, work) = match remembered.only() {
            Some(only) => {
                let own::OwnWork { before, changes, .. } = own::of_dispatch(&workspace, &only)?;
                (before, Some(changes))
            }
            None => (target(kernel, run, &cut_of(remembered)?)?, None),
        };
        let keep = if remembered.layers.contains(&Layer::Data) {
            files_of_database(&workspace.root, &data::target_of(settings, remembered)?.database)
        } else {
            BTreeSet::new()
        };
        Ok(Self { workspace, target, remembered, keep, work })
    }

    /// Restores the tree, or says what that would do.
    pub(super) fn restore(&self, ask: Ask<'_>, watch: &Watch) -> Result<Report> {
        let said = Choices::of(self.remembered)?;
        let request = RestoreRequest {
            which: Which::Id(self.target.id.as_str()),
            strategy: Some(said.strategy(self.remembered)?),
            paths: &[],
            mine: said.mine,
            dry_run: ask.dry_run,
            force: ask.force.or(said.force()),
            keep_theirs: said.keep_theirs,
            into: false,
            compares_all: self.work.is_none(),
            beside_others: self.work.is_some(),
            expect_plan: ask.expect_plan,
        };
        if let Some(work) = &self.work {
            let target = self.target.clone();
            return ic_worktree::restore_without(&self.workspace, target, work.clone(), &request, watch);
        }
        let deed = Deed {
            keep: self.keep.clone(),
            until: self.remembered.seq,
            did: tree::done_by_effects(self.workspace.kernel, self.remembered)?,
        };
        ic_worktree::restore_into(&self.workspace, self.target.clone(), deed, &request, watch)
    }
}

fn restore_tree(
    saga: &Saga<'_>,
    remembered: &Remembered,
    (force, seen): (Force, Option<&Parts>),
    watch: &Watch,
    parts: &mut Parts,
) -> Result<Value> {
    let run = saga.run()?;
    let goal = Goal::of((saga.kernel, saga.settings), &run, remembered)?;
    let restore = |expect_plan, dry_run| goal.restore(Ask { force, dry_run, expect_plan }, watch);
    let report = match seen.and_then(|seen| seen.tree.as_ref()) {
        None => restore(None, false)?,
        Some(seen) => match restore(Some(&seen.plan_hash), false) {
            Err(error) if error.code() == Code::PlanChanged => {
                let now = restore(None, true)?;
                seen::require_tree(seen, &now)?;
                restore(Some(&now.plan_hash), false)?
            }
            done => done?,
        },
    };
    parts.commits = match &report.git {
        Some(git) => Some(
            saga.kernel
                .read(|snapshot| leaving::commits(snapshot, &run, (&goal.workspace.root, &git.plan)))?,
        ),
        None => None,
    };
    let failed =
        report.failed.first().map(|(path, why)| (String::from_utf8_lossy(&path.0).into_owned(), why.clone()));
    let restores = ic_worktree::restores_since(&goal.workspace, &goal.target.id, remembered.seq, false)?;
    let detail = json!({
        "target": goal.target.id.as_str(),
        "safety": restores.iter().map(|restore| restore.safety_id.as_str()).collect::<Vec<_>>(),
        "changes": report.plan.steps.len(),
    });
    parts.tree = Some(report);
    match failed {
        Some((path, why)) => Err(Diagnosis::new(
            Code::Io,
            format!("{path} could not be restored: {}.", why.trim_end_matches('.')),
        )),
        None => Ok(detail),
    }
}

/// The end, in one transaction: pointer, artifacts, agents and skips, and the event.
fn settle(saga: &Saga<'_>, remembered: &Remembered, ord: i64) -> Result<()> {
    let cut = cut_of(remembered)?;
    let id = &remembered.id;
    saga.write(|tx, now| {
        let epoch = remembered.epoch;
        let artifacts = artifact::taken_back(tx, &cut)?;
        let dispatches = marked_dispatches(remembered);
        let agents = agent::taken_back(tx, &cut, &dispatches.iter().collect::<BTreeSet<_>>())?;
        let skips = skip::taken_back(tx, &cut, &remembered.to_phase)?;
        mark_artifacts_rolled_back(tx, &artifacts, id)?;
        cancel_agents_by_phases(tx, now, &agents, epoch, id)?;
        skip::mark_rolled_back(tx, &skips, id)?;
        effects::mark(tx, &effects::taken_back(tx, &cut)?, id)?;
        append_rollback(tx, now, remembered, &cut)?;
        match remembered.only() {
            // The run itself did not move.
            Some(_) => run::reopen(tx, now, &remembered.run_id, choices::run_status(remembered)?)?,
            None => run::settle_rollback(tx, now, &remembered.run_id, &remembered.to_phase)?,
        }
        table::set_status(tx, now, id, RollbackStatus::Done)?;
        steps::set(tx, now, id, ord, Happening::Succeeds, None)
    })
}

/// The end of a rollback whose undo was aborted: what it had marked still is, and the run is open where it was.
fn stand(saga: &Saga<'_>, remembered: &Remembered, ord: i64) -> Result<Value> {
    saga.write(|tx, now| {
        let event = event(remembered, EventType::RollbackStepDone, StepKind::Settle);
        ic_events::append(tx, now, &event)?;
        run::reopen(tx, now, &remembered.run_id, choices::status_after(remembered)?)?;
        table::set_status(tx, now, &remembered.id, RollbackStatus::Done)?;
        steps::set(tx, now, &remembered.id, ord, Happening::Succeeds, None)
    })?;
    Ok(Value::Null)
}

pub(super) fn marked_dispatches(remembered: &Remembered) -> Vec<DispatchId> {
    ["cancelled_dispatches", "marked_dispatches"]
        .iter()
        .filter_map(|list| remembered.plan[*list].as_array())
        .flatten()
        .filter_map(|pair| pair[0].as_str())
        .map(|id| DispatchId::from_ledger(id.to_owned()))
        .collect()
}

fn append_rollback(
    tx: &Transaction<'_>,
    now: ic_base::Timestamp,
    remembered: &Remembered,
    cut: &Cut,
) -> Result<Seq> {
    let event = NewEvent {
        subject_id: Some(remembered.id.as_str()),
        from: Some(&remembered.from_phase),
        to: Some(&remembered.to_phase),
        reason: remembered.reason.as_deref(),
        payload: Some(json!({
            "rollback_id": remembered.id.as_str(),
            "layers": remembered.layers.iter().map(|layer| layer.as_str()).collect::<Vec<_>>(),
            "cut_seq": cut.seq,
            "include_target": remembered.include_target,
            "rolled_back_phases": cut.phases,
            "plan_hash": remembered.plan_hash,
            "counts": Counts::of_json(&remembered.plan).to_json(),
        })),
        ..NewEvent::of(&remembered.run_id, remembered.epoch, EventType::Rollback)
    };
    ic_events::append(tx, now, &event)
}

/// What a step that failed is recorded with: the code and what it says, and of lost content what to do, which no rollback can.
pub(super) fn reason(error: &Diagnosis) -> String {
    let why = format!("{}: {}", error.code().as_str(), error.message());
    match error.get_hint() {
        Some(hint) if error.code() == Code::Corrupt => format!("{why} {hint}"),
        _ => why,
    }
}
