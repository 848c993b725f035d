//! Taking a rollback back: one that is done (undo), and one that stopped half way (abandon).
//!
//! What was marked counts again, and tree and rows are as they were before. No dispatch and no agent is revived, and effects that
//! were undone are not made again: both are named. What stands against it is found before the run is closed for it; the way itself
//! is [`super::back`].

use ic_base::{Result, Seq};
use ic_journal::Force;
use ic_journal::choices;
use ic_journal::steps::{self, Course};
use ic_journal::table::{self, Remembered, RollbackStatus};
use ic_kernel::Kernel;
use ic_store::Snapshot;
use ic_worktree::{Settings, Watch};

use super::back::{self, Undone, Way};
use super::carry::carry_on;
use super::quiet::{require_done, require_no_effects, require_quiet, settled, undone_effects};
use super::reference::named;
use super::tree::{self, Look};
use super::whole::{require_undisturbed, take_unfinished};
use crate::compensation::{Saga, Sink};

/// What is to be undone, and how.
#[derive(Debug, Clone, Copy)]
pub struct UndoRequest<'a> {
    /// The rollback, or its run: then the newest of it.
    pub rollback: &'a str,
    /// Everything else is taken back, though effects that it undid cannot be made again.
    pub without_effects: bool,
    /// Why.
    pub reason: Option<&'a str>,
}

/// Takes a rollback back that is done, when nothing but reads and late reports happened in its run since and the tree is as the
/// rollback left it; or goes on with an undo that was begun, or makes what one had passed over.
///
/// Meanwhile the run is closed, unless the workflow layer alone is taken back. Errors: `run_changed`, naming what happened since, `file_conflict`,
/// effects that ran, unless `without_effects`; `work_running`; `rollback_not_found`: nothing is changed.
pub fn undo(
    kernel: &Kernel,
    settings: &Settings,
    request: &UndoRequest<'_>,
    watch: &Watch,
) -> Result<Undone> {
    let (remembered, _) = named(kernel, request.rollback)?;
    let (remembered, _) = kernel.read(|snapshot| undoable(snapshot, request, remembered.id.as_str()))?;
    let mut saga = Saga::take_for_rollback(kernel, settings, &remembered.run_id)?;
    saga.interrupted = watch.interrupted.clone();
    // Whoever had the run before may have taken it back already.
    let (remembered, until) = kernel.read(|snapshot| undoable(snapshot, request, remembered.id.as_str()))?;
    if remembered.status.is_over() && until.is_none() {
        let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
        let way = Way { saga: &saga, remembered, course: steps::course(&all), force: Force::default() };
        return way.go_for_the_rest(request.reason, watch);
    }
    let way = Way { saga: &saga, remembered, course: Course::Undo, force: Force::default() };
    let Some(until) = until else {
        turn_back(&way)?;
        return way.go(None, watch);
    };
    let look = Look { until, force: Force::default(), dry_run: false };
    tree::to_put_back((kernel, settings), &way.remembered, look, watch)?;
    let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &way.remembered.id))?;
    if !all.iter().any(back::is_outside) {
        let check = |snapshot: &Snapshot<'_>| require_quiet(snapshot, &way.remembered, until);
        return way.go_at_once(request.reason, check);
    }
    require_undisturbed(&saga)?;
    let before = way.begin(request.reason, |snapshot| require_quiet(snapshot, &way.remembered, until))?;
    way.go(Some(&before), watch)
}

/// The rollback that is named, and the event that settled it if nothing of the way back was gone yet.
///
/// Errors: whatever the ledger says against taking it back.
pub(super) fn undoable(
    snapshot: &Snapshot<'_>,
    request: &UndoRequest<'_>,
    reference: &str,
) -> Result<(Remembered, Option<Seq>)> {
    let remembered = table::resolve(snapshot, reference)?;
    if is_being_undone(snapshot, &remembered)? || has_rest(snapshot, &remembered)? {
        return Ok((remembered, None));
    }
    require_done(&remembered)?;
    choices::run_status(&remembered)?;
    let until = settled(snapshot, &remembered)?.seq;
    require_quiet(snapshot, &remembered, until)?;
    if !request.without_effects {
        require_no_effects(&undone_effects(snapshot, &remembered, until)?)?;
    }
    Ok((remembered, Some(until)))
}

/// Gives up what is not finished. A rollback: what it had put back is put back again, and the run is active where it was. The undo of a
/// rollback: the rollback stands, and what the undo had put back goes again.
///
/// Errors: `work_running` while another process works on it, `nothing_to_resume`, `file_conflict` when others changed
/// what it had put back: nothing is changed.
pub fn abandon(
    kernel: &Kernel,
    settings: &Settings,
    (reference, reason): (&str, Option<&str>),
    sink: &mut dyn Sink,
    watch: &Watch,
) -> Result<Undone> {
    let (mut saga, remembered, all) = take_unfinished(kernel, settings, reference)?;
    saga.interrupted = watch.interrupted.clone();
    let course = steps::course(&all);
    if matches!(course, Course::Undo | Course::Stand) {
        if course == Course::Undo {
            back::give_undo_up(&saga, &remembered, reason)?;
        }
        let outcome = carry_on(&saga, &remembered.id, (Force::default(), None), sink, watch)?;
        let seq = (outcome.remembered.status == RollbackStatus::Done).then_some(outcome.remembered.seq);
        return Ok(Undone {
            remembered: outcome.remembered,
            steps: outcome.steps,
            tree: outcome.parts.tree.into_iter().collect(),
            data: outcome.parts.data,
            effects: Vec::new(),
            seq,
            course: Course::Stand,
            is_rest: false,
            is_dry_run: false,
        });
    }
    let way = Way { saga: &saga, remembered, course: Course::Abandon, force: Force::default() };
    if course == Course::Abandon {
        return way.go(None, watch);
    }
    let look = Look { until: Seq::MAX, force: Force::default(), dry_run: false };
    tree::to_put_back((kernel, settings), &way.remembered, look, watch)?;
    require_undisturbed(&saga)?;
    let before = way.begin(reason, |_| Ok(()))?;
    way.go(Some(&before), watch)
}

/// Goes on with a way back, in the direction in which it was begun.
pub(super) fn go_back(
    saga: &Saga<'_>,
    remembered: Remembered,
    (course, force): (Course, Force),
    watch: &Watch,
) -> Result<Undone> {
    Way { saga, remembered, course, force }.go(None, watch)
}

fn is_being_undone(snapshot: &Snapshot<'_>, remembered: &Remembered) -> Result<bool> {
    let course = steps::course(&steps::of_rollback(snapshot, &remembered.id)?);
    Ok(!remembered.status.is_over() && matches!(course, Course::Undo | Course::Stand))
}

fn has_rest(snapshot: &Snapshot<'_>, remembered: &Remembered) -> Result<bool> {
    let all = steps::of_rollback(snapshot, &remembered.id)?;
    Ok(!steps::not_put_back(remembered, &all).is_empty())
}

/// Goes back again where the undo had been aborted.
fn turn_back(way: &Way<'_, '_>) -> Result<()> {
    let all = way.saga.kernel.read(|snapshot| steps::of_rollback(snapshot, &way.remembered.id))?;
    if steps::course(&all) == Course::Stand {
        way.begin(None, |_| Ok(()))?;
    }
    Ok(())
}
