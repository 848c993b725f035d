//! How `ic undo` undoes the prompts of a session from one on: by a cut of their run, which restores a whole tree, or as a set of works,
//! which takes out what they did and leaves what anybody else did.
//!
//! ```text
//!                      is any later work of the run of another thread,
//!                      or would the cut bring back work that was undone?
//!                 no ┌─────────────┴─────────────┐ yes
//!           plan the cut                         │
//!    takes it what a person or others did?       │
//!        no ┌────────┴────────┐ yes              │
//!         the cut             └──────────────▶ the set
//! ```
//!
//! The cut goes back exactly: bytes, empty directories, branches. So it is taken wherever it takes nothing else.

use ic_base::{Code, Diagnosis, Result, Seq};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::Kernel;
use ic_kernel::journal::LayerName;
use ic_ledger::Snapshot;
use ic_phase::Run;
use ic_worktree::{CaptureSettings, RestoreWatch};

use super::concurrent_work::BETWEEN_CALLS;
use super::outcome::LayeredRollback;
use super::plan;
use super::preflight;
use super::request::{LayeredRequest, Layers, RollbackTarget};
use crate::points;

/// A request whose target is decided, and its plan where the decision made it.
pub(super) struct Decided<'a> {
    pub(super) request: LayeredRequest<'a>,
    pub(super) planned: Option<LayeredRollback>,
}

/// Decides between the cut and the set for a request that leaves it open; any other is returned as it is.
///
/// Errors: those of the plan that was decided for.
pub(super) fn decide<'a>(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &LayeredRequest<'a>,
    watch: &RestoreWatch,
) -> Result<Decided<'a>> {
    let RollbackTarget::Thread(point) = request.base.to else {
        return Ok(Decided { request: request.clone(), planned: None });
    };
    let to = |to: RollbackTarget<'a>| {
        let mut request = request.clone();
        request.base.to = to;
        request
    };
    let cut = to(RollbackTarget::Point(point));
    // Whether others are in the way is asked without the flags that decide about them.
    let mut undecided = cut.clone();
    (undecided.force.files, undecided.keep_theirs) = (false, false);
    let found = kernel.read(|snapshot| thread_of(kernel, snapshot, request.base.run, point))?;
    let Some(thread) = found.filter(|_| can_be_set(request)) else {
        return Ok(Decided { request: cut, planned: None });
    };
    let set = to(RollbackTarget::Since(thread.first));
    let plan = |request: &LayeredRequest<'_>| {
        let layers = request.layers.of(request.base.to, settings)?;
        preflight::plan(kernel, settings, request, &layers, watch)
    };
    if thread.is_beside_others {
        return Ok(Decided { request: set, planned: None });
    }
    let by_cut = plan(&undecided);
    if !takes_others(&by_cut, request) {
        let is_decided = request.force.files || request.keep_theirs;
        let planned = if is_decided { None } else { Some(by_cut?) };
        return Ok(Decided { request: cut, planned });
    }
    match plan(&set) {
        Ok(planned) => Ok(Decided { request: set, planned: Some(planned) }),
        // A conflict of the set says what a person has to decide, and work that was undone already leaves nothing but what others did.
        // Otherwise the set cannot be told, so the cut says what is in the way.
        Err(error) if matches!(error.code(), Code::FileConflict | Code::PointTakenBack) || is_unexpected(&by_cut) => {
            Err(error)
        }
        Err(_) => Ok(Decided { request: cut, planned: None }),
    }
}

/// The prompts of a session from one on.
struct Thread<'a> {
    /// The first of them, as the caller named it.
    first: &'a str,
    /// Whether the cut before it covers work of others too, or would bring back work that an undo took out.
    is_beside_others: bool,
}

/// The thread that begins with a point; `None` where the point is not before a prompt.
fn thread_of<'a>(kernel: &Kernel, snapshot: &Snapshot<'_>, run: &str, point: &'a str) -> Result<Option<Thread<'a>>> {
    let run = kernel.run(snapshot, run)?;
    let is_work = point.split_once(':').is_none_or(|(kind, _)| matches!(kind, "prompt" | "dispatch"));
    let work = if is_work { points::known(points::work_of(snapshot, &run, point))? } else { None };
    let Some(work) = work else { return Ok(None) };
    if ic_session::prompt_of(snapshot, &work.id)?.is_none() {
        return Ok(None);
    }
    let works = points::thread_since(snapshot, &run, point)?;
    let seq = points::place_of(snapshot, &run, &work)?.seq;
    let is_beside_others =
        others_since(snapshot, &run, seq, &works)? || !plan::undone_across(snapshot, &run.id, seq)?.is_empty();
    Ok(Some(Thread { first: point, is_beside_others }))
}

/// Whether a run has work after an event that stands and is of none of these dispatches.
fn others_since(snapshot: &Snapshot<'_>, run: &Run, seq: Seq, works: &[Dispatch]) -> Result<bool> {
    let is_of_thread = |one: &Dispatch| works.iter().any(|work| work.id == one.id);
    let filter = dispatch::DispatchFilter { run_id: Some(&run.id), phase: None, status: None, limit: i64::MAX };
    for one in dispatch::list(snapshot, &filter)? {
        // What a prompt began goes with it.
        let is_later = one.place() > seq && one.rolled_back_by.is_none() && one.work.parent_id.is_none();
        if is_later && !is_of_thread(&one) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the caller asks for nothing that only a cut does: it alone moves branches and rows.
fn can_be_set(request: &LayeredRequest<'_>) -> bool {
    let has_files = match request.layers {
        Layers::All => true,
        Layers::Only(chosen) => {
            chosen.contains(&LayerName::Files)
                && !chosen.iter().any(|layer| matches!(layer, LayerName::Git | LayerName::Data))
        }
    };
    has_files && !request.force.commits
}

/// Whether the cut would take what others did, or a person, or is refused because of that.
fn takes_others(by_cut: &Result<LayeredRollback>, request: &LayeredRequest<'_>) -> bool {
    let is_of_others =
        |error: &Diagnosis| matches!(error.code(), Code::FileConflict | Code::ForeignCommits | Code::BranchSwitched);
    match by_cut {
        // The caller approved a plan that is not the cut's: it may be the set's.
        Err(error) if error.code() == Code::PlanChanged => request.base.expect_plan.is_some(),
        Err(error) => is_of_others(error),
        Ok(planned) => {
            let mut warnings = planned.parts.tree.iter().flat_map(|tree| &tree.warnings);
            planned.refusals.iter().any(|refusal| is_of_others(&refusal.error))
                || warnings.any(|warning| warning.code == BETWEEN_CALLS)
        }
    }
}

fn is_unexpected(by_cut: &Result<LayeredRollback>) -> bool {
    by_cut.as_ref().is_err_and(|error| error.code() == Code::PlanChanged)
}
