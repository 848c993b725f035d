//! What refuses the undo of a rollback that is done: what its run did since.

use std::collections::HashSet;
use std::ops::ControlFlow;

use ic_base::{Code, Diagnosis, Result, Seq};
use ic_checkpoint::restore::journal as restores;
use ic_effects::compensation::{self, Compensation, CompensationState};
use ic_kernel::journal::choices;
use ic_kernel::journal::layer::LayerName;
use ic_kernel::journal::steps;
use ic_kernel::journal::table::{self, RollbackRecord, RollbackStatus};
use ic_ledger::Snapshot;
use ic_ledger::events::{Event, EventType};
use ic_phase::{RunStatus, run};

use super::coverage::cut_of;

/// Errors: `rolling_back` for a rollback that is not finished, `nothing_to_undo` for one that was undone or aborted.
pub(super) fn require_done(remembered: &RollbackRecord) -> Result<()> {
    if remembered.status == RollbackStatus::Done {
        return Ok(());
    }
    let (code, hint) = match remembered.status {
        RollbackStatus::InProgress | RollbackStatus::Stopped => {
            (Code::RollingBack, format!("abort it: ic rollback abort {} --yes", remembered.id.short()))
        }
        _ => (Code::NothingToUndo, "see: ic rollback list".to_owned()),
    };
    Err(Diagnosis::new(
        code,
        format!(
            "The rollback {} is {}; only one that is done can be undone.",
            remembered.id.short(),
            remembered.status.as_str()
        ),
    )
    .hint(hint))
}

/// Errors: `effects_undone` if a rollback undid effects, which no call can make again.
pub(super) fn require_no_effects(effects: &[Compensation]) -> Result<()> {
    let steps: Vec<&str> =
        effects.iter().filter(|effect| !effect.goes_with_tree()).map(|effect| effect.step.as_str()).collect();
    if steps.is_empty() {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::EffectsUndone,
        format!("The rollback undid outside effects, which cannot be made again: {}.", steps.join(", ")),
    )
    .hint("--without-effects undoes everything else")
    .detail("steps", steps))
}

/// The event with which a rollback moved the run. Errors: `not_undoable` for a rollback that a program's own tasks made: what undid their
/// effects are functions of that program.
pub(super) fn settled(snapshot: &Snapshot<'_>, remembered: &RollbackRecord) -> Result<Event> {
    let mut settled = None;
    // The search begins at its own event: a rollback of the record alone has only that one.
    ic_ledger::events::each_since(snapshot, Some(&remembered.run_id), remembered.seq - 1, i64::MAX, |event| {
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
    if remembered.plan["made_by"] == "tasks" {
        let message =
            format!("The rollback {} was made by a program's own tasks; it cannot be undone.", remembered.id.short());
        let root = ic_ledger::project_root(&run::get(snapshot, &remembered.run_id)?.project_dir);
        let restores = restores::finished(snapshot, &root)?;
        let last = restores::stacks(&restores).0.last().map(|last| last.safety_id.short().to_owned());
        let alone =
            last.map_or_else(String::new, |last| format!("; the last restore of files: ic redo {last} --dry-run"));
        return Err(Diagnosis::new(Code::NotUndoable, message).hint(format!("run the program again{alone}")));
    }
    Ok(settled)
}

fn is_about(event: &Event, id: &str) -> bool {
    // A rollback is the subject of its own events. If it ended a dispatch or an agent, that is the subject, and the
    // payload names the rollback.
    event.subject_id.as_deref() == Some(id)
        || event.payload.as_deref().and_then(table::named_in).is_some_and(|named| named == id)
}

/// The work that rollbacks ended, by their plans. The event of each end names its rollback in its payload, which a redaction removes;
/// whether an undo is allowed must not depend on that.
struct Ended(Vec<(Seq, EventType, String)>);

impl Ended {
    /// The work that those rollbacks ended that began at `since` or later: the others ended their work before it.
    fn of(rollbacks: &[&RollbackRecord], since: Seq) -> Self {
        const LISTS: [(&str, EventType); 2] =
            [("cancelled_dispatches", EventType::DispatchCancelled), ("failed_agents", EventType::AgentFailed)];
        let of_one = |one: &RollbackRecord, (list, event_type): (&str, EventType)| {
            let seq = one.seq;
            one.cancelled(list).into_iter().map(move |id| (seq, event_type, id)).collect::<Vec<_>>()
        };
        let begun = rollbacks.iter().filter(|one| one.seq >= since);
        Self(begun.flat_map(|one| LISTS.into_iter().flat_map(|list| of_one(one, list))).collect())
    }

    /// Whether a redacted event is the end that one of them made. Each made one, and first: later ends of the same work, after an undo,
    /// belong to other rollbacks.
    fn take(&mut self, event: &Event) -> bool {
        let is_it = |(since, event_type, id): &(Seq, EventType, String)| {
            *since <= event.seq
                && event_type.as_str() == event.event_type
                && event.subject_id.as_deref() == Some(id.as_str())
        };
        let Some(at) = self.0.iter().position(is_it) else { return false };
        self.0.swap_remove(at);
        // Only a redaction leaves the hash of a payload without the payload.
        event.payload.is_none() && event.payload_hash.is_some()
    }
}

fn type_of(event: &Event) -> Result<EventType> {
    EventType::parse(&event.event_type).ok_or_else(|| {
        let message = format!("The event {} has the type {:?}, which is not known.", event.seq, event.event_type);
        Diagnosis::new(Code::Corrupt, message).hint("run `ic events verify`")
    })
}

/// Errors: `run_changed` if anything but late reports, checkpoints and prompts that did nothing happened in the run since `seq`. Another
/// rollback, and what it did, does not count once it was undone itself.
pub(super) fn require_quiet(snapshot: &Snapshot<'_>, remembered: &RollbackRecord, seq: Seq) -> Result<()> {
    const ENDS: [EventType; 2] = [EventType::Rollback, EventType::RollbackAborted];
    if remembered.is_of_works() {
        return require_uncovered(snapshot, remembered);
    }
    let others = table::of_run(snapshot, &remembered.run_id)?;
    // This includes the rollback itself: an undo of it may have been begun and aborted before, which changed nothing
    // that stands.
    let gone: Vec<&RollbackRecord> =
        others.iter().filter(|other| !other.status.stands() || other.id == remembered.id).collect();
    let mut ended = Ended::of(&gone, seq);
    let (mut loud, mut is_inside) = (None, false);
    // The end of a session moves the run that was made for it, though no work was done: only the client was closed.
    let is_of_session = ic_session::is_own_run(snapshot, &remembered.run_id)?;
    ic_ledger::events::each_since(snapshot, Some(&remembered.run_id), seq, i64::MAX, |event| {
        let is_end = ended.take(&event);
        let is_of_gone = is_end || gone.iter().any(|other| is_about(&event, other.id.as_str()));
        //   rollback_begun ── its effects are undone ── rollback, or rollback_aborted
        if is_of_gone && event.event_type == EventType::RollbackBegun.as_str() {
            is_inside = true;
        } else if is_of_gone && ENDS.iter().any(|end| event.event_type == end.as_str()) {
            is_inside = false;
        }
        // The run was closed during that rollback, so nothing else undid effects.
        let is_its_effect = is_inside && event.source == "compensation";
        let is_loud = || -> Result<bool> {
            let is_end = event.event_type == EventType::Advance.as_str() && is_of_session;
            Ok(type_of(&event)?.blocks_undo() && !is_end && !crate::points::is_of_idle(snapshot, &event)?)
        };
        if is_of_gone || is_its_effect || !is_loud()? {
            return Ok(ControlFlow::Continue(()));
        }
        loud = Some(event);
        Ok(ControlFlow::Break(()))
    })?;
    let Some(event) = loud else { return Ok(()) };
    Err(Diagnosis::new(
        Code::RunChanged,
        format!("The run changed since the rollback: {} (event {}).", event.event_type, event.seq),
    )
    .hint(way_around(snapshot, remembered, others.iter().find(|other| is_about(&event, other.id.as_str())))?)
    .detail("seq", event.seq))
}

/// What one dispatch did comes back whatever others did since. The run itself must not have gone back since, and must be as open as it was.
///
/// Errors: `run_changed`, naming the rollback that is in the way, or the status of the run.
fn require_uncovered(snapshot: &Snapshot<'_>, remembered: &RollbackRecord) -> Result<()> {
    let (id, run_id) = (remembered.id.short(), remembered.run_id.short());
    let works = remembered.works();
    // An undo in part, whose rest another one took out, comes back after that one: until then the work counts as undone.
    let has_rest = |other: &RollbackRecord| other.works().iter().any(|work| works.contains(work));
    let is_in_way = |other: &RollbackRecord| !other.is_of_works() || has_rest(other);
    let later = |other: &RollbackRecord| other.seq > remembered.seq && other.status.stands() && is_in_way(other);
    if let Some(later) = table::of_run(snapshot, &remembered.run_id)?.into_iter().rev().find(later) {
        let verb = if later.status == RollbackStatus::Done { "redo" } else { "rollback abort" };
        let what = if later.is_of_works() { "The rest of the work".to_owned() } else { format!("The run {run_id}") };
        let done = if later.is_of_works() { "undone" } else { "rolled back" };
        return Err(Diagnosis::new(
            Code::RunChanged,
            format!("{what} was {done} since the rollback {id}, by the rollback {}.", later.id.short()),
        )
        .hint(format!("undo that first: ic {verb} {} --yes", later.id.short())));
    }
    let (before, now) = (choices::run_status(remembered)?, run::get(snapshot, &remembered.run_id)?.status);
    // A session's run is completed when its client is closed, which changes nothing of the work.
    let is_closed = now == RunStatus::Completed && ic_session::is_own_run(snapshot, &remembered.run_id)?;
    if before == now || is_closed {
        return Ok(());
    }
    Err(Diagnosis::new(
        Code::RunChanged,
        format!("The run {run_id} was {} at the rollback {id}, and is {} now.", before.as_str(), now.as_str()),
    )
    .hint(format!("its files alone: ic checkpoint list; the run: ic run status {run_id}")))
}

/// What can be done where the run continued since: a later rollback can be undone, anything else stays.
fn way_around(snapshot: &Snapshot<'_>, remembered: &RollbackRecord, later: Option<&RollbackRecord>) -> Result<String> {
    if let Some(later) = later.filter(|later| later.plan["made_by"] != "tasks") {
        let verb = if later.status == RollbackStatus::Done { "redo" } else { "rollback abort" };
        return Ok(format!("undo that first: ic {verb} {} --yes", later.id.short()));
    }
    let steps = steps::of_rollback(snapshot, &remembered.id)?;
    // The tree from before anything: before the effects were undone, else before the restore.
    let before = steps.iter().find_map(|step| step.detail.goes.first().map(|(before, _)| before));
    let safety = before.or_else(|| steps.iter().find_map(|step| step.detail.safety.first()));
    let files = safety.map_or_else(String::new, |id| {
        format!("; files alone, as they were before it: ic checkpoint restore {} --dry-run", id.short())
    });
    Ok(format!("it cannot be undone any more; continue from here{files}"))
}

/// The effects that a rollback undid: attempts that succeeded after it was begun and before `until`, of what it covers. With them those
/// whose undo was cut off, which may be undone too; a preview may meet them before a call has recorded that.
pub(super) fn undone_effects(
    snapshot: &Snapshot<'_>,
    remembered: &RollbackRecord,
    until: Seq,
) -> Result<Vec<Compensation>> {
    if !remembered.layers.contains(&LayerName::Effects) {
        return Ok(Vec::new());
    }
    let cut = cut_of(remembered)?;
    let mut tried = HashSet::new();
    ic_ledger::events::each_since(snapshot, Some(&remembered.run_id), remembered.seq, i64::MAX, |event| {
        if event.seq > until {
            return Ok(ControlFlow::Break(()));
        }
        let ends = [EventType::CompensationDone, EventType::CompensationFailed];
        if ends.iter().any(|end| event.event_type == end.as_str()) {
            // The mark of an effect comes with the settlement. Before it, only these events tell which effects were
            // undone.
            tried.extend(event.subject_id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut all = compensation::list(snapshot, &remembered.run_id)?;
    all.retain(|c| {
        (c.state == CompensationState::Running
            || (c.state == CompensationState::Done || c.is_cut_off()) && tried.contains(c.id.as_str()))
            && cut.covers(c.seq, &c.phase, c.dispatch_id.as_ref())
            // What another rollback undid is not this one's, though its cut covers it.
            && c.rolled_back_by.as_ref().is_none_or(|by| *by == remembered.id)
    });
    Ok(all)
}
