//! Taking a rollback back: one that is done (undo), and one that stopped half way (abandon).
//!
//! What was marked counts again, and the tree is as it was before. No dispatch and no agent is revived, and effects that were
//! undone are not made again: both are named. The tree comes first and the ledger last, so that a call that fails or dies in
//! between is made again.

use std::collections::HashSet;
use std::ops::ControlFlow;

use ic_base::{Code, Diagnosis, Result, Seq, Timestamp};
use ic_dispatch::cancel;
use ic_events::{Event, EventType, NewEvent};
use ic_phase::{RunStatus, run, skip};
use ic_runtrack::{agent, artifact};
use ic_saga::compensation::{self, Compensation, State};
use ic_store::{Snapshot, Transaction};
use serde_json::{Value, json};

use super::back::{put_tree_back, tree_to_put_back};
use super::carry::cut_of;
use super::data;
use super::layer::Layer;
use super::table::{self, Remembered, RollbackStatus};
use super::whole::take_unfinished;
use crate::Kernel;
use crate::checkpoint::{Report, Settings, Watch};
use crate::compensation::Saga;

/// A rollback that was taken back, or as much of it as could be.
#[derive(Debug)]
pub struct Undone {
    /// The rollback, as it is now: as before where a path could not be put back.
    pub remembered: Remembered,
    /// What was done about files and git's state, a report for each restore that was taken back, newest first.
    pub tree: Vec<Report>,
    /// Effects that the rollback undid: they are not made again.
    pub effects: Vec<Compensation>,
    /// The event; `None` where a path could not be put back: the same call tries again.
    pub seq: Option<Seq>,
}

/// A rollback that was given up.
pub type Abandoned = Undone;

/// Takes a rollback back that is done, when nothing but reads and late reports happened in its run since and the tree is as the
/// rollback left it.
///
/// Errors: `conflict`, naming what happened since, or effects that ran, unless `without_effects`; `work_running`;
/// `rollback_not_found`: nothing is changed.
pub fn undo(
    kernel: &Kernel,
    settings: &Settings,
    reference: &str,
    without_effects: bool,
    watch: &Watch,
) -> Result<Undone> {
    let check = |snapshot: &Snapshot<'_>, reference: &str| {
        let remembered = table::resolve(snapshot, reference)?;
        require_done(&remembered)?;
        let settled = settled(snapshot, &remembered)?;
        require_quiet(snapshot, &remembered, settled.seq)?;
        let effects = undone_effects(snapshot, &remembered, settled.seq)?;
        if !without_effects {
            require_no_effects(&effects)?;
        }
        Ok((remembered, settled.seq, effects))
    };
    let (remembered, ..) = kernel.read(|snapshot| check(snapshot, reference))?;
    let saga = Saga::take_for_rollback(kernel, settings, &remembered.run_id)?;
    // Whoever had the run before may have taken it back already.
    let (remembered, until, effects) = kernel.read(|snapshot| check(snapshot, remembered.id.as_str()))?;
    let tree = tree_to_put_back(&saga, &remembered, until, watch)?;
    // Rows that are back already are left alone, so this can be tried again whatever becomes of the tree.
    data::put_back(kernel, settings, &remembered.id, kernel.context.now())?;
    let tree = tree.map_or(Ok(Vec::new()), |tree| put_tree_back(&tree, watch))?;
    let end = (EventType::RollbackUndone, RollbackStatus::Undone);
    finish(&saga, remembered, (tree, effects), end, |tx, remembered| require_quiet(tx, remembered, until))
}

/// Gives a rollback up that was not finished: what it had put back is put back again, and the run is active where it was.
///
/// Errors: `work_running` while another process works on it, `conflict` when nothing of it is unfinished, or when somebody changed
/// what it had put back: nothing is changed.
pub fn abandon(kernel: &Kernel, settings: &Settings, reference: &str, watch: &Watch) -> Result<Abandoned> {
    let (saga, remembered) = take_unfinished(kernel, settings, reference)?;
    let effects = kernel.read(|snapshot| undone_effects(snapshot, &remembered, Seq::MAX))?;
    let tree = tree_to_put_back(&saga, &remembered, Seq::MAX, watch)?;
    // Rows that are back already are left alone, so this can be tried again whatever becomes of the tree.
    data::put_back(kernel, settings, &remembered.id, kernel.context.now())?;
    let tree = tree.map_or(Ok(Vec::new()), |tree| put_tree_back(&tree, watch))?;
    let end = (EventType::RollbackAbandoned, RollbackStatus::Abandoned);
    finish(&saga, remembered, (tree, effects), end, |_, _| Ok(()))
}

/// The ledger's part, unless a path could not be put back.
fn finish(
    saga: &Saga<'_>,
    remembered: Remembered,
    (tree, effects): (Vec<Report>, Vec<Compensation>),
    end: (EventType, RollbackStatus),
    check: impl Fn(&Transaction<'_>, &Remembered) -> Result<()>,
) -> Result<Undone> {
    if tree.iter().any(|report| !report.failed.is_empty()) {
        return Ok(Undone { remembered, tree, effects, seq: None });
    }
    let seq = saga.write(|tx, now| {
        check(tx, &remembered)?;
        put_back(tx, now, &remembered, end)
    });
    let seq = seq.map_err(|error| match error.code() {
        Code::Conflict if !tree.is_empty() => error.hint(
            "files and git are back already; to have them as the rollback left them: ic checkpoint undo",
        ),
        _ => error,
    })?;
    let remembered = saga.kernel.read(|snapshot| table::get(snapshot, &remembered.id))?;
    Ok(Undone { remembered, tree, effects, seq: Some(seq) })
}

fn require_done(remembered: &Remembered) -> Result<()> {
    if remembered.status == RollbackStatus::Done {
        return Ok(());
    }
    let hint = match remembered.status {
        RollbackStatus::InProgress | RollbackStatus::Stopped => {
            format!("give it up: ic rollback abandon {}", remembered.id.short())
        }
        _ => "see: ic rollback list".to_owned(),
    };
    Err(Diagnosis::new(
        Code::Conflict,
        format!(
            "The rollback {} is {}; only one that is done can be undone.",
            remembered.id.short(),
            remembered.status.as_str()
        ),
    )
    .hint(hint))
}

fn require_no_effects(effects: &[Compensation]) -> Result<()> {
    if effects.is_empty() {
        return Ok(());
    }
    let steps: Vec<&str> = effects.iter().map(|effect| effect.step.as_str()).collect();
    Err(Diagnosis::new(
        Code::Conflict,
        format!("The rollback undid outside effects that nobody can make again: {}.", steps.join(", ")),
    )
    .hint("--without-effects takes everything else back")
    .detail("steps", steps))
}

/// The event with which a rollback took the run back. Errors: `conflict` for one that a workflow made: it put files and
/// effects back by itself.
fn settled(snapshot: &Snapshot<'_>, remembered: &Remembered) -> Result<Event> {
    let mut settled = None;
    ic_events::each_since(snapshot, Some(&remembered.run_id), remembered.seq - 1, i64::MAX, |event| {
        if event.event_type == EventType::Rollback.as_str() && is_about(&event, remembered.id.as_str()) {
            settled = Some(event);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let settled = settled.ok_or_else(|| {
        Diagnosis::new(Code::Corrupt, format!("No event says that the rollback {} was done.", remembered.id))
            .hint("run `ic events verify`")
    })?;
    if remembered.plan["made_by"] == "workflow" {
        return Err(Diagnosis::new(
            Code::Conflict,
            format!("The rollback {} was made by the run's workflow, with its effects and files; it cannot be undone.", remembered.id.short()),
        )
        .hint("run the workflow again: ic workflow resume RUN; the files alone: ic checkpoint undo"));
    }
    Ok(settled)
}

fn is_about(event: &Event, id: &str) -> bool {
    event.subject_id.as_deref() == Some(id)
        || event.payload.as_deref().is_some_and(|payload| payload.contains(id))
}

/// Errors: `conflict` if anything but late reports and checkpoints happened in the run since `seq`. Another rollback, and what
/// it did, counts as nothing once it was taken back itself.
fn require_quiet(snapshot: &Snapshot<'_>, remembered: &Remembered, seq: Seq) -> Result<()> {
    const QUIET: [&str; 8] = [
        "dispatch_recorded",
        "dispatch_tokens",
        "checkpoint_created",
        "checkpoint_restored",
        "checkpoint_pruned",
        "restore_begun",
        "block",
        "pause",
    ];
    const ENDS: [EventType; 2] = [EventType::Rollback, EventType::RollbackAbandoned];
    let others = table::of_run(snapshot, &remembered.run_id)?;
    let gone: HashSet<String> = others
        .into_iter()
        .filter(|other| !other.status.stands() || other.id == remembered.id)
        .map(|other| other.id.as_str().to_owned())
        .collect();
    let (mut loud, mut is_inside) = (None, false);
    ic_events::each_since(snapshot, Some(&remembered.run_id), seq, i64::MAX, |event| {
        let is_of_gone = gone.iter().any(|id| is_about(&event, id));
        if is_of_gone && event.event_type == EventType::RollbackBegun.as_str() {
            is_inside = true;
        } else if is_of_gone && ENDS.iter().any(|end| event.event_type == end.as_str()) {
            is_inside = false;
        }
        // The run was closed meanwhile: nobody else undid effects.
        let is_its_effect = is_inside && event.source == "compensation";
        if is_of_gone || is_its_effect || QUIET.contains(&event.event_type.as_str()) {
            return Ok(ControlFlow::Continue(()));
        }
        loud = Some(event);
        Ok(ControlFlow::Break(()))
    })?;
    let Some(event) = loud else { return Ok(()) };
    Err(Diagnosis::new(
        Code::Conflict,
        format!("The run went on since the rollback: {} (event {}).", event.event_type, event.seq),
    )
    .hint("roll that back first, or go on from here")
    .detail("seq", event.seq))
}

/// The effects that a rollback undid: attempts that succeeded after it was begun and before `until`, of what it covers.
fn undone_effects(snapshot: &Snapshot<'_>, remembered: &Remembered, until: Seq) -> Result<Vec<Compensation>> {
    if !remembered.layers.contains(&Layer::Effects) {
        return Ok(Vec::new());
    }
    let cut = cut_of(remembered)?;
    let mut done = HashSet::new();
    ic_events::each_since(snapshot, Some(&remembered.run_id), remembered.seq, i64::MAX, |event| {
        if event.seq > until {
            return Ok(ControlFlow::Break(()));
        }
        if event.event_type == EventType::CompensationDone.as_str() {
            done.extend(event.subject_id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut all = compensation::list(snapshot, &remembered.run_id)?;
    all.retain(|c| {
        c.state == State::Done
            && done.contains(c.id.as_str())
            && cut.covers(c.seq, &c.phase)
            && c.rolled_back_by.as_ref().is_none_or(|by| *by == remembered.id)
    });
    Ok(all)
}

/// The pointer, the marks and the event, in one transaction.
fn put_back(
    tx: &Transaction<'_>,
    now: Timestamp,
    remembered: &Remembered,
    (event_type, status): (EventType, RollbackStatus),
) -> Result<Seq> {
    let id = &remembered.id;
    let before =
        remembered.plan["run_status"].as_str().and_then(RunStatus::parse).unwrap_or(RunStatus::Active);
    let current = run::get(tx, &remembered.run_id)?;
    let event = NewEvent {
        subject_id: Some(id.as_str()),
        from: Some(&current.phase),
        to: Some(&remembered.from_phase),
        payload: Some(counts(tx, remembered)?),
        ..NewEvent::of(&remembered.run_id, current.epoch + 1, event_type)
    };
    let seq = ic_events::append(tx, now, &event)?;
    run::undo_rollback(tx, now, &remembered.run_id, &remembered.from_phase, before)?;
    table::set_status(tx, now, id, status)?;
    Ok(seq)
}

fn counts(tx: &Transaction<'_>, remembered: &Remembered) -> Result<Value> {
    let id = &remembered.id;
    Ok(json!({
        "rollback_id": id.as_str(),
        "dispatches": cancel::unmark(tx, id)?,
        "artifacts": artifact::unmark(tx, id)?,
        "agents": agent::unmark(tx, id)?,
        "skips": skip::unmark(tx, id)?,
        "effects": compensation::unmark(tx, id)?,
    }))
}
