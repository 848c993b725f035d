//! What a reference names that can be looked at: an entry of a log.

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result, RollbackId, Seq};
use ic_checkpoint::record;
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::Kernel;
use ic_kernel::journal::table;
use ic_ledger::Snapshot;
use ic_phase::point::{self, PointKind};
use ic_phase::{Run, run};

use super::change_reference::{ChangeReference, nothing};
use super::git_names::unless_of_git;
use super::list::ListedPoint;
use super::place_works::{steps_back, work_back};
use super::point_position::{NamedPoint, PointGoal, by_name, resolve};
use super::point_reference::reference;
use super::undo_target::{checkpoint_named, known, run_or_newest};
use crate::manual_restores;

/// An entry of a log, by its reference.
#[derive(Debug)]
pub enum EntryReference {
    /// A prompt, a dispatch or a step.
    Work(Box<NamedWork>),
    /// A checkpoint, whether a run has it or not.
    Checkpoint(CheckpointId),
    /// A rollback of a run, or of one work of it.
    Rollback(RollbackId),
    /// A change that no work made.
    Change(ChangeReference),
}

/// A piece of work that a reference names.
#[derive(Debug)]
pub struct NamedWork {
    /// The reference of the point before it.
    pub reference: String,
    /// The event of that point; `None` if none was recorded.
    pub point: Option<Seq>,
    /// The run that it is of.
    pub run: Run,
    /// The dispatch of the prompt or step.
    pub dispatch: Dispatch,
}

impl NamedWork {
    /// Whether it is a step of a workflow, whose end no capture shows.
    pub fn is_step(&self) -> bool {
        self.reference.starts_with("step:")
    }
}

/// The work that begins at a listed point; `None` for a point before which none does.
pub fn work_at(snapshot: &Snapshot<'_>, run: Run, point: &ListedPoint) -> Result<Option<NamedWork>> {
    let found = match (point.kind, &point.before) {
        ("step", Some(name)) => dispatch::first_named_since(snapshot, &run.id, name, point.seq)?,
        ("prompt" | "dispatch", Some(id)) => dispatch::find(snapshot, &DispatchId::from_ledger(id.clone()))?,
        _ => None,
    };
    let (reference, seq) = (point.reference.clone(), Some(point.seq));
    Ok(found.map(|dispatch| NamedWork { reference, point: seq, run, dispatch }))
}

/// The entry that a reference names. `run`: the run of a step, if the caller named one.
///
/// Errors: `point_not_found` if nothing has the name, or for a place that is no work; `ambiguous_id`, and those of a lookup.
pub fn entry_meant(kernel: &Kernel, run: Option<&str>, text: &str) -> Result<EntryReference> {
    match text.split_once(':') {
        Some(("checkpoint", name)) => return checkpoint_named(kernel, run, name).map(EntryReference::Checkpoint),
        Some((kind @ ("restore" | "own"), id)) => {
            let found = kernel.read(|snapshot| record::resolve(snapshot, id))?.id;
            let change = if kind == "own" { ChangeReference::Own } else { ChangeReference::Restore };
            return Ok(EntryReference::Change(change(found)));
        }
        _ => {}
    }
    kernel.read(|snapshot| {
        if let Some(back) = steps_back(text) {
            let (run, found) = work_back(snapshot, &kernel.project.root, back)?;
            let work = work_at(snapshot, run, &found)?.ok_or_else(|| nothing(text))?;
            return Ok(EntryReference::Work(Box::new(work)));
        }
        match text.split_once(':') {
            Some(("prompt" | "dispatch", id)) => of_dispatch(snapshot, dispatch::resolve(snapshot, id)?),
            Some(("step", _)) => {
                let run = run_or_newest(kernel, snapshot, run)?;
                step(snapshot, run, text)
            }
            Some(_) => Err(no_work(text)),
            None if text == "created" => Err(no_work(text)),
            None => bare(kernel, snapshot, run, text).map_err(|error| unless_of_git(&kernel.project.root, text, error)),
        }
    })
}

/// The entry that a text without a prefix names: by the end of an id, or by its name.
fn bare(kernel: &Kernel, snapshot: &Snapshot<'_>, run: Option<&str>, text: &str) -> Result<EntryReference> {
    // In the order of what a person looks at most: an end of six digits seldom fits two kinds of things.
    if let Some(found) = known(dispatch::resolve(snapshot, text))? {
        return of_dispatch(snapshot, found);
    }
    if let Some(found) = known(record::resolve(snapshot, text))? {
        let restore = manual_restores::with_safety(snapshot, &kernel.project.root, &found.id)?;
        return Ok(match restore {
            Some(_) => EntryReference::Change(ChangeReference::Restore(found.id)),
            None => EntryReference::Checkpoint(found.id),
        });
    }
    if let Some(found) = known(table::resolve(snapshot, text))? {
        return Ok(EntryReference::Rollback(found.id));
    }
    let run = run.map(|run| kernel.run(snapshot, run)).transpose()?;
    match by_name(snapshot, &kernel.project.root, run.as_ref().map(|run| &run.id), text)? {
        Some(NamedPoint::Step(id)) => step(snapshot, run::get(snapshot, &id)?, &format!("step:{text}")),
        Some(NamedPoint::Checkpoint(found)) => Ok(EntryReference::Checkpoint(found.id)),
        None => Err(nothing(text)),
    }
}

fn step(snapshot: &Snapshot<'_>, run: Run, text: &str) -> Result<EntryReference> {
    // Undone steps can be looked at too: the newest attempt is meant where none stands.
    let place = match resolve(snapshot, &run, text) {
        Ok(PointGoal::Place(place)) => Some((place.seq, place.reference)),
        Err(error) if error.code() != Code::PointTakenBack => return Err(error),
        _ => None,
    };
    let name = text.trim_start_matches("step:");
    let of_run = point::named_in(snapshot, &run.id, PointKind::Step, name)?;
    // The reference names one of several attempts; the dispatch has the bare name of the step.
    let meant = place.or_else(|| of_run.last().map(|point| (point.seq, reference(point))));
    let (seq, reference) = meant.ok_or_else(|| nothing(text))?;
    let name = reference.trim_start_matches("step:").to_owned();
    // `step:build#2` is the second attempt at `build`, unless a step of the run is called `build#2`.
    let name =
        if of_run.is_empty() { name.rsplit_once('#').map_or(name.clone(), |(name, _)| name.to_owned()) } else { name };
    of_step(snapshot, run, seq, reference, &name)
}

fn of_step(snapshot: &Snapshot<'_>, run: Run, seq: Seq, reference: String, name: &str) -> Result<EntryReference> {
    let found = dispatch::first_named_since(snapshot, &run.id, name, seq)?;
    let dispatch = found.ok_or_else(|| nothing(&reference))?;
    Ok(EntryReference::Work(Box::new(NamedWork { reference, point: Some(seq), run, dispatch })))
}

fn of_dispatch(snapshot: &Snapshot<'_>, dispatch: Dispatch) -> Result<EntryReference> {
    let run = run::get(snapshot, &dispatch.run_id)?;
    let place = super::place_of(snapshot, &run, &dispatch)?;
    let (reference, point) = (place.reference, Some(place.seq));
    Ok(EntryReference::Work(Box::new(NamedWork { reference, point, run, dispatch })))
}

fn no_work(text: &str) -> Diagnosis {
    Diagnosis::new(Code::PointNotFound, format!("{text} is a place in a run, and no work that could be shown."))
        .hint(format!("what changed since: ic diff {text} --stat; the work of this place: ic log"))
        .detail("point", text)
}
