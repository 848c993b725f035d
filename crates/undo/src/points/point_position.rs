//! The place to which a reference to a point of a run leads, and the places of points.

use std::path::Path;

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::config::explain::closest;
use ic_kernel::journal::table;
use ic_ledger::Snapshot;
use ic_phase::point::{self, PointKind, PointRecord};
use ic_phase::{Run, run};

use super::list::undone_in_part;
use super::place_works::{steps_back, work_back};
use super::point_reference::reference;

/// The goal of a rollback, by a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointGoal {
    /// A phase: whatever is labelled with a later phase counts as after it.
    Phase {
        /// A phase of the run's chain.
        name: String,
        /// Whether what was done in it is undone too.
        include_target: bool,
    },
    /// A place: what was recorded after it, and nothing else.
    Place(PointPosition),
    /// Only what these dispatches did, oldest first, without moving the run.
    Works(Vec<Dispatch>),
}

/// A place in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointPosition {
    /// Its reference, with its prefix.
    pub reference: String,
    /// What was recorded after this event lies after the place.
    pub seq: Seq,
    /// The phase at which the run was.
    pub phase: String,
}

/// The goal that a reference to a point of a run means.
///
/// Errors: `point_not_found`, `point_of_other_run`, `point_before_run`, `point_taken_back`, and those of a lookup by the end of an id.
pub fn resolve(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<PointGoal> {
    let place = match text.split_once(':') {
        _ if text == "created" => {
            return Ok(PointGoal::Phase { name: run.chain.first().to_owned(), include_target: true });
        }
        Some(("phase", name)) => {
            return Ok(PointGoal::Phase { name: name.to_owned(), include_target: false });
        }
        Some(("step", name)) => step(snapshot, run, name)?,
        Some(("dispatch", id)) => work(snapshot, run, id)?,
        Some(("prompt", id)) => other(snapshot, run, PointKind::Prompt, id)?,
        Some(("guard", id)) => other(snapshot, run, PointKind::Guard, id)?,
        Some(("checkpoint", id)) => checkpoint(snapshot, run, id)?,
        Some(_) => return Err(unknown(snapshot, run, text)?),
        None => match steps_back(text) {
            Some(back) => newest(snapshot, run, text, back)?,
            None => by_end_of_id(snapshot, run, text)?,
        },
    };
    require_standing(snapshot, run, &place)?;
    Ok(PointGoal::Place(place))
}

/// The rollback that stands and took the run to before the event `seq`.
pub fn taken_back_by(snapshot: &Snapshot<'_>, run: &Run, seq: Seq) -> Result<Option<table::RollbackRecord>> {
    // The place to which the run went (`cut_seq`) is a target. An undo of works moves no run, and takes no place
    // away.
    let covers = |one: &table::RollbackRecord| !one.is_of_works() && one.cut_seq < seq && seq < one.seq;
    Ok(table::standing_of(snapshot, &run.id)?.into_iter().rev().find(covers))
}

impl PointPosition {
    fn of(point: &PointRecord) -> Self {
        Self { reference: reference(point), seq: point.seq, phase: point.phase.clone() }
    }
}

/// The first attempt at a step in the newest epoch that has one which stands; with `#2`, a later attempt.
fn step(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<PointPosition> {
    let numbered = text.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse::<i64>().ok()?)));
    let of_run = |name: &str| point::named_in(snapshot, &run.id, PointKind::Step, name);
    // The name of a step may itself end in `#2`.
    let (mut found, attempt) = match (of_run(text)?, numbered) {
        (exact, Some((name, attempt))) if exact.is_empty() => (of_run(name)?, attempt),
        (exact, _) => (exact, 1),
    };
    found.retain(|point| point.attempt == attempt);
    // If none stands, the newest is returned: the caller's check then names the rollback that covers it.
    let mut newest = found.last();
    for point in found.iter().rev() {
        if taken_back_by(snapshot, run, point.seq)?.is_none() {
            newest = Some(point);
            break;
        }
    }
    match newest {
        Some(point) => Ok(PointPosition::of(point)),
        None => Err(unknown(snapshot, run, &format!("step:{text}"))?),
    }
}

/// The id in a reference of a piece of work; `None`: it is another reference, or an id alone.
pub fn id_of_work(reference: &str) -> Option<&str> {
    ["dispatch:", "prompt:"].iter().find_map(|kind| reference.strip_prefix(kind))
}

/// The dispatch of a run that `text` names: by its id, as a point, or as `@~2`. Errors: `point_of_other_run`, and those of the lookup.
pub fn work_of(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<Dispatch> {
    let position = steps_back(text).map(|back| newest(snapshot, run, text, back)).transpose()?;
    let named = position.as_ref().map_or(text, |position| position.reference.as_str());
    let dispatch = dispatch::resolve(snapshot, id_of_work(named).unwrap_or(named))?;
    if dispatch.run_id != run.id {
        let other = dispatch.run_id.short();
        return Err(of_other(run, &format!("The dispatch {}", dispatch.id.short()), other));
    }
    Ok(dispatch)
}

/// The dispatch that `text` names and what came after it in its thread, oldest first: the later prompts of its session; where no prompt
/// began it, the later work of its run. Without what was rolled back already. Later work that was undone in part is by itself, as the second:
/// its rest was left by a decision, or cannot be taken out.
///
/// Errors: `point_of_other_run`, and those of the lookup.
pub fn thread_since(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<(Vec<Dispatch>, Vec<Dispatch>)> {
    let first = work_of(snapshot, run, text)?;
    let later = match ic_session::prompt_of(snapshot, &first.id)? {
        Some(prompt) => {
            let prompts = ic_session::of_session(snapshot, &prompt.session_id)?;
            let later = prompts.into_iter().filter(|one| one.seq > prompt.seq);
            later.map(|one| dispatch::get(snapshot, &one.dispatch_id)).collect::<Result<Vec<_>>>()?
        }
        None => works_after(snapshot, run, &first)?,
    };
    let rollbacks = table::standing_of(snapshot, &run.id)?;
    let in_part = undone_in_part(snapshot, &rollbacks)?;
    let is_in_part = |one: &Dispatch| in_part.iter().any(|by| by.works().contains(&one.id));
    let is_in_it = |one: &Dispatch| one.run_id == run.id && one.rolled_back_by.is_none();
    let (in_part, whole): (_, Vec<Dispatch>) = later.into_iter().filter(is_in_it).partition(is_in_part);
    Ok((std::iter::once(first).chain(whole).collect(), in_part))
}

/// The work of a run that began after this work, without subagents' and prompts of sessions: those are other threads.
fn works_after(snapshot: &Snapshot<'_>, run: &Run, first: &Dispatch) -> Result<Vec<Dispatch>> {
    let mut later = Vec::new();
    for one in dispatch::of_run(snapshot, &run.id)? {
        let is_later = one.place() > first.place() && one.work.parent_id.is_none();
        if is_later && ic_session::prompt_of(snapshot, &one.id)?.is_none() {
            later.push(one);
        }
    }
    later.sort_by_key(Dispatch::place);
    Ok(later)
}

/// The place before the work of a dispatch: before it was begun, or created if it never was.
fn work(snapshot: &Snapshot<'_>, run: &Run, id: &str) -> Result<PointPosition> {
    place_of(snapshot, run, &work_of(snapshot, run, id)?)
}

/// The place before the work of this dispatch of the run.
pub fn place_of(snapshot: &Snapshot<'_>, run: &Run, dispatch: &Dispatch) -> Result<PointPosition> {
    // Work that a prompt began shares the prompt's point.
    for kind in [PointKind::Dispatch, PointKind::Prompt] {
        if let Some(point) = point::named(snapshot, kind, dispatch.id.as_str())?.last() {
            return Ok(PointPosition::of(point));
        }
    }
    // The work began before points were recorded, or never began: no checkpoint was taken there.
    // This is the event before its beginning, so that the work itself lies after the place.
    let seq = dispatch.place() - 1;
    let reference = format!("dispatch:{}", dispatch.id.short());
    Ok(PointPosition { reference, seq, phase: phase_at(snapshot, run, seq)? })
}

fn other(snapshot: &Snapshot<'_>, run: &Run, kind: PointKind, id: &str) -> Result<PointPosition> {
    let mut of_kind = point::of_run(snapshot, &run.id)?;
    of_kind.retain(|point| point.kind == kind);
    // `guard:-1` is the newest that stands, and `guard:-2` the one before it.
    if let Some(back) = id.strip_prefix('-').and_then(|back| back.parse::<usize>().ok()) {
        let standing = standing(snapshot, run, of_kind)?;
        let at = standing.len().checked_sub(back.max(1));
        return match at.and_then(|at| standing.get(at)) {
            Some(point) => Ok(PointPosition::of(point)),
            None => Err(unknown(snapshot, run, &format!("{}:{id}", kind.as_str()))?),
        };
    }
    match of_kind.iter().rev().find(|point| point.name == id || is_end(&point.name, id)) {
        Some(point) => Ok(PointPosition::of(point)),
        None => match point::named(snapshot, kind, id)?.last() {
            Some(point) => Err(of_other(run, &format!("The {} {id}", kind.as_str()), point.run_id.short())),
            None => Err(unknown(snapshot, run, &format!("{}:{id}", kind.as_str()))?),
        },
    }
}

/// A checkpoint that was taken in the run: by its id, or the newest of its name.
fn checkpoint(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<PointPosition> {
    let root = ic_ledger::project_root(&run.project_dir);
    let found = match (record::of_run_named(snapshot, &run.id, text)?, record::named(snapshot, &root, text)?) {
        // A checkpoint that was taken beside the run is found too: the error below says what it is good for.
        (Some(found), _) | (None, Some(found)) => found,
        (None, None) => record::resolve(snapshot, text)?,
    };
    let short = found.id.short();
    let alone = format!("to restore the tree alone: ic checkpoint restore {short} --yes");
    match &found.link.run_id {
        Some(own)
            if *own == run.id
                && matches!(found.kind, record::CheckpointKind::Manual | record::CheckpointKind::Auto) =>
        {
            let phase = match &found.link.phase {
                Some(phase) => phase.clone(),
                None => phase_at(snapshot, run, found.seq)?,
            };
            Ok(PointPosition { reference: format!("checkpoint:{short}"), seq: found.seq, phase })
        }
        Some(other) if *other != run.id => Err(of_other(run, &format!("The checkpoint {short}"), other.short())),
        _ if found.seq < run.seq => Err(Diagnosis::new(
            Code::PointBeforeRun,
            format!("The checkpoint {short} was taken before the run {} began.", run.id.short()),
        )
        .hint(format!("the first place of a run is `created`; {alone}"))),
        _ => Err(Diagnosis::new(
            Code::PointNotFound,
            format!(
                "The checkpoint {short} was not taken in the run {}, so it is not one of its points.",
                run.id.short()
            ),
        )
        .hint(alone)),
    }
}

fn by_end_of_id(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<PointPosition> {
    let is_missing = |error: &Diagnosis| {
        matches!(error.code(), Code::DispatchNotFound | Code::CheckpointNotFound | Code::InvalidReference)
    };
    match work(snapshot, run, text) {
        Err(error) if is_missing(&error) => {}
        found => return found,
    }
    match record::resolve(snapshot, text) {
        Ok(found) => return checkpoint(snapshot, run, found.id.as_str()),
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error),
    }
    let all = point::of_run(snapshot, &run.id)?;
    let has_id =
        |point: &&PointRecord| matches!(point.kind, PointKind::Prompt | PointKind::Guard) && is_end(&point.name, text);
    if let Some(point) = all.iter().rev().find(has_id) {
        return Ok(PointPosition::of(point));
    }
    match by_name(snapshot, &ic_ledger::project_root(&run.project_dir), Some(&run.id), text)? {
        Some(NamedPoint::Step(_)) => step(snapshot, run, text),
        Some(NamedPoint::Checkpoint(found)) => checkpoint(snapshot, run, found.id.as_str()),
        None => Err(unknown(snapshot, run, text)?),
    }
}

/// What a name without a prefix means that is no end of an id.
pub(super) enum NamedPoint {
    /// A step of this run.
    Step(RunId),
    /// A checkpoint, with or without a run.
    Checkpoint(Box<CheckpointRecord>),
}

/// The step or checkpoint of a place with this name: a step of the run, if one is given, else of the run that began one last.
///
/// Errors: `ambiguous_id` where a step and a checkpoint have the name.
pub(super) fn by_name(
    snapshot: &Snapshot<'_>,
    root: &Path,
    run: Option<&RunId>,
    text: &str,
) -> Result<Option<NamedPoint>> {
    // The name of a step may itself end in `#2`.
    let attempt = text.rsplit_once('#').filter(|(_, number)| number.parse::<i64>().is_ok());
    let mut points = point::named(snapshot, PointKind::Step, text)?;
    if let (true, Some((name, _))) = (points.is_empty(), attempt) {
        points = point::named(snapshot, PointKind::Step, name)?;
    }
    let mut step = None;
    for point in points.into_iter().rev() {
        let is_meant = match run {
            Some(run) => point.run_id == *run,
            None => ic_ledger::project_root(&run::get(snapshot, &point.run_id)?.project_dir) == root,
        };
        if is_meant {
            step = Some(point.run_id);
            break;
        }
    }
    let of_run = run.map_or(Ok(None), |run| record::of_run_named(snapshot, run, text))?;
    let checkpoint = match of_run {
        None => record::named(snapshot, root, text)?,
        found => found,
    };
    Ok(match (step, checkpoint) {
        (Some(_), Some(_)) => {
            return Err(Diagnosis::new(Code::AmbiguousId, format!("A step and a checkpoint are named {text:?}."))
                .hint(format!("name one of them: step:{text} or checkpoint:{text}"))
                .detail("reference", text));
        }
        (Some(run), None) => Some(NamedPoint::Step(run)),
        (None, Some(found)) => Some(NamedPoint::Checkpoint(Box::new(found))),
        (None, None) => None,
    })
}

/// The place before the work that lies a number of works before the newest one here. Errors: `point_not_found`, `point_of_other_run`.
fn newest(snapshot: &Snapshot<'_>, run: &Run, text: &str, back: usize) -> Result<PointPosition> {
    let (of, point) = work_back(snapshot, &ic_ledger::project_root(&run.project_dir), back)?;
    if of.id != run.id {
        return Err(of_other(run, &format!("{text} is {}, which", point.reference), of.id.short()));
    }
    Ok(PointPosition { reference: point.reference, seq: point.seq, phase: point.phase })
}

/// Whether `text` is the end of an id: six digits or more, which do not match by chance.
fn is_end(id: &str, text: &str) -> bool {
    text.len() >= 6 && id.ends_with(text)
}

fn standing(snapshot: &Snapshot<'_>, run: &Run, points: Vec<PointRecord>) -> Result<Vec<PointRecord>> {
    let mut standing = Vec::new();
    for point in points {
        if taken_back_by(snapshot, run, point.seq)?.is_none() {
            standing.push(point);
        }
    }
    Ok(standing)
}

/// The phase at which a run was at the event `seq`.
fn phase_at(snapshot: &Snapshot<'_>, run: &Run, seq: Seq) -> Result<String> {
    // Other events have a phase in `to`, too, and do not move the run: a skip names the phase that is left out.
    const MOVES: [&str; 6] = ["run_created", "advance", "override", "rollback", "rollback_undone", "rollback_aborted"];
    let mut phase = run.chain.first().to_owned();
    ic_ledger::events::each_since(snapshot, Some(&run.id), run.seq - 1, i64::MAX, |event| {
        if event.seq > seq {
            return Ok(std::ops::ControlFlow::Break(()));
        }
        if MOVES.contains(&event.event_type.as_str())
            && let Some(to) = event.to.filter(|to| run.chain.contains(to))
        {
            phase = to;
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    Ok(phase)
}

/// Errors: `point_taken_back` if a rollback that stands took the run to before it.
fn require_standing(snapshot: &Snapshot<'_>, run: &Run, place: &PointPosition) -> Result<()> {
    let Some(by) = taken_back_by(snapshot, run, place.seq)? else { return Ok(()) };
    let (point, id) = (&place.reference, by.id.short());
    Err(Diagnosis::new(
        Code::PointTakenBack,
        format!("The run {} was rolled back to before {point}, by the rollback {id}.", run.id.short()),
    )
    .hint(format!("undo that first: ic redo {id} --yes"))
    .detail("point", point.as_str())
    .detail("rollback_id", by.id.as_str()))
}

fn of_other(run: &Run, what: &str, other: &str) -> Diagnosis {
    Diagnosis::new(Code::PointOfOtherRun, format!("{what} belongs to the run {other}, not to {}.", run.id.short()))
        .hint(format!("name that run: ic run rollback {other} --to POINT --yes"))
}

/// The error for a reference without a point. Its hint has the point with the nearest spelling, else the newest points.
fn unknown(snapshot: &Snapshot<'_>, run: &Run, text: &str) -> Result<Diagnosis> {
    let mut known: Vec<String> =
        standing(snapshot, run, point::of_run(snapshot, &run.id)?)?.iter().rev().map(reference).collect();
    known.dedup();
    let passed = run.chain.names().into_iter().take_while(|phase| *phase != run.phase);
    known.extend(passed.map(|phase| format!("phase:{phase}")));
    let newest: Vec<String> = known.iter().take(4).cloned().collect();
    known.push("created".to_owned());
    let hint = if let Some(near) = closest(text, known.iter().map(|one| (one.as_str(), one.as_str()))) {
        format!("did you mean {near}?")
    } else {
        format!("points of it: {}created", newest.iter().map(|one| format!("{one}, ")).collect::<String>())
    };
    let missing = Diagnosis::new(Code::PointNotFound, format!("The run {} has no point {text:?}.", run.id.short()));
    Ok(missing.hint(hint).detail("point", text))
}
