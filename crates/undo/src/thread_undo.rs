//! How `ic undo` undoes the prompts of a session from one on: as a set of works, whose tree either goes back exactly to what it was, or is
//! merged with what anybody else did. Where more than these works is recorded after the point, by a cut of their run.
//!
//! ```text
//!                 is any later work of the run of another thread, was anything
//!                 restored since, or would the cut bring back undone work?
//!                 no ┌─────────────┴─────────────┐ yes
//!        does the cut record more than           │
//!        the set, such as a phase?               │
//!      yes ┌─────────┴─────────┐ no              │
//!     plan the cut     plan the exact set        │
//!          │                   │                 │
//!    takes it what a person or others did, or    │
//!    is the work on another branch, or stashed?  │
//!        no ┌────────┴────────┐ yes              │
//!        as planned           └──────────▶ the merged set
//! ```
//!
//! A cut and an exact set restore bytes, empty directories and branches. So they are taken wherever they take nothing else.

use ic_base::{Code, Diagnosis, DispatchId, Result, Seq};
use ic_checkpoint::git::{self, Stash};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointLink;
use ic_dispatch::{Dispatch, dispatch};
use ic_effects::{Compensation, compensation};
use ic_kernel::Kernel;
use ic_kernel::journal::{LayerName, PathDecisions};
use ic_ledger::Snapshot;
use ic_ledger::events::Cut;
use ic_phase::Run;
use ic_session::call;
use ic_worktree::auto::TakenTree;
use ic_worktree::{CaptureSettings, GitRestore, RestoreWatch, Workspace, root_of};

use super::apply;
use super::dispatch_changes::{git_around_ids, is_branch_since};
use super::later_restores;
use super::outcome::LayeredRollback;
use super::plan;
use super::preflight;
use super::request::{LayeredRequest, Layers, RollbackRequest, RollbackTarget};
use super::sole_work;
use super::unsure_changes::{BETWEEN_CALLS, UNTOLD};
use crate::points;

/// A request whose target is decided, and its plan where the decision made it.
pub(super) struct Decided<'a> {
    pub(super) request: LayeredRequest<'a>,
    pub(super) planned: Option<LayeredRollback>,
}

/// Decides between the cut and the set for a request that leaves it open; any other is returned unchanged.
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
    let found = kernel.read(|snapshot| thread_of(kernel, snapshot, request.base.run, point))?;
    let Some(thread) = found.filter(|_| can_be_set(request)) else {
        return Ok(Decided { request: cut, planned: None });
    };
    // These three requests differ in their target alone: `cut`, `set`, and `exact`.
    let set = to(RollbackTarget::Since(thread.first));
    // What the caller expects decides nothing: the preview that it saw was decided in the same way.
    let plan = |request: &LayeredRequest<'_>| {
        let layers = request.layers.of(request.base.to, settings)?;
        let base = RollbackRequest { expect_plan: None, ..request.base };
        preflight::plan(kernel, settings, &LayeredRequest { base, ..request.clone() }, &layers, watch)
    };
    let as_expected = |planned: LayeredRollback| -> Result<Option<LayeredRollback>> {
        preflight::require_expected(&planned.rollback, request.base.expect_plan)?;
        Ok(Some(planned))
    };
    if thread.is_in_call {
        look(kernel, settings, request)?;
    }
    if thread.is_beside_others {
        return Ok(Decided { request: set, planned: None });
    }
    // Rows go with cuts only. An undo of works would leave them without a word.
    let exact = to(RollbackTarget::Exactly(thread.first));
    let works = if thread.is_in_call { &set } else { &exact };
    let is_same = settings.state.is_none() && kernel.read(|snapshot| is_same_record(kernel, snapshot, &cut, works))?;
    let whole = if is_same { exact } else { cut.clone() };
    // Whether others are in the way is asked without the flags that decide about them.
    let mut undecided = whole.clone();
    (undecided.force.files, undecided.keep_theirs) = (false, false);
    undecided.decisions = PathDecisions::default();
    // What changed in or after a call that a person stopped may be theirs, in git, too: no checkpoint tells that.
    let is_unbounded = is_same && thread.is_in_call;
    // This plans the exact set if the record allows it, and otherwise the cut. Both restore the tree to the same
    // checkpoint.
    let by_whole = if is_unbounded { None } else { Some(plan(&undecided)) };
    let alone = by_whole.as_ref().map(|whole| is_only_of_thread(kernel, settings, whole, &thread));
    if let Some((is_told, by_whole)) = alone.transpose()?.flatten().zip(by_whole) {
        // What an agent did without a call is known to a cut alone.
        let is_exact = is_same && is_told;
        let is_decided = request.force.files || request.keep_theirs || !request.decisions.is_empty();
        // `by_whole` was planned without the flags. With flags, or if the cut is taken although the exact set was
        // planned, the caller plans again.
        let planned = if is_decided || is_exact != is_same { None } else { as_expected(by_whole?)? };
        let request = if is_exact { whole } else { cut };
        return Ok(Decided { request, planned });
    }
    // A conflict of the set says what a person has to decide, work that lies on another branch is undone there, and work that was undone
    // already leaves nothing but what others did. Otherwise the set cannot be told, so the cut says what is in the way.
    let is_said = |error: &Diagnosis| matches!(error.code(), Code::FileConflict | Code::PointTakenBack);
    match plan(&set) {
        Ok(planned) => Ok(Decided { request: set, planned: as_expected(planned)? }),
        Err(error) if is_said(&error) => Err(error),
        Err(_) => Ok(Decided { request: cut, planned: None }),
    }
}

/// The prompts of a session from one on.
struct Thread<'a> {
    /// The first of them, as the caller named it.
    first: &'a str,
    /// They, the work that they began, and the work in which they began: a call of one of these is none of others.
    kin: Vec<DispatchId>,
    /// The newest of them.
    last: DispatchId,
    /// Whether the cut before it covers work or restores of others too, or would bring back work that an undo took out.
    is_beside_others: bool,
    /// Whether one of them is in the middle of a tool call, as far as its client says.
    is_in_call: bool,
}

/// Records the tree in the middle of a tool call, if no checkpoint shows it yet. Without that, what changed since the call began is unknown.
fn look(kernel: &Kernel, settings: &CaptureSettings, request: &LayeredRequest<'_>) -> Result<()> {
    let run = kernel.read(|snapshot| kernel.run(snapshot, request.base.run))?;
    let root = root_of(&run.project_dir);
    let link = CheckpointLink { run_id: Some(run.id.clone()), ..CheckpointLink::default() };
    let taken = TakenTree::look_for_call(kernel, Some(settings), root.clone(), link, false);
    kernel.write(|tx, now| taken.record_news(tx, now, &root, run.epoch)).map(drop)
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
    let (works, _) = points::thread_since(snapshot, &run, point)?;
    let last = works.last().unwrap_or(&work).id.clone();
    let seq = points::place_of(snapshot, &run, &work)?.seq;
    let is_beside_others = others_since(snapshot, &run, seq, &works)?
        || !plan::undone_across(snapshot, &run.id, seq)?.is_empty()
        || later_restores::is_any_of_others(snapshot, &root_of(&run.project_dir), seq)?;
    let kin: Vec<Vec<DispatchId>> = works.iter().map(|work| dispatch::kin(snapshot, work)).collect::<Result<_>>()?;
    let kin = kin.concat();
    let mut is_in_call = false;
    for one in &kin {
        // Of a process it is known whether it runs.
        is_in_call = is_in_call || call::is_running(snapshot, one)? && dispatch::get(snapshot, one)?.pid().is_none();
    }
    Ok(Some(Thread { first: point, kin, last, is_beside_others, is_in_call }))
}

/// Whether a cut changes nothing in the record but what an undo of works does: no phase, no record of others.
fn is_same_record(
    kernel: &Kernel,
    snapshot: &Snapshot<'_>,
    cut: &LayeredRequest<'_>,
    works: &LayeredRequest<'_>,
) -> Result<bool> {
    let (Ok(cut), Ok(works)) =
        (apply::planned_by_cut(kernel, snapshot, &cut.base), apply::planned_by_cut(kernel, snapshot, &works.base))
    else {
        return Ok(false);
    };
    // An undo of works leaves the run where it is, and a completed run completed. A session's own run has no phases but its end, which comes
    // when its client is closed.
    let moves = (cut.run.phase != cut.to_phase || cut.reopens()) && !ic_session::is_own_run(snapshot, &cut.run.id)?;
    let is_same = !moves && cut.marks() == works.marks() && cut.cut.seq == works.cut.seq;
    // An effect may be declared for the run alone.
    let is_of_both = |effect: &Compensation| {
        let covers = |of: &Cut| of.covers(effect.seq, &effect.phase, effect.dispatch_id.as_ref());
        // What a rollback undid already is in neither plan.
        effect.rolled_back_by.is_some() || covers(&cut.cut) == covers(&works.cut)
    };
    Ok(is_same && compensation::list(snapshot, &cut.run.id)?.iter().all(is_of_both))
}

/// Whether a plan that restores a whole tree takes what the thread did and nothing else: `None` if it takes what others did, or may; else
/// whether the calls of the thread tell so.
fn is_only_of_thread(
    kernel: &Kernel,
    settings: &CaptureSettings,
    by_whole: &Result<LayeredRollback>,
    thread: &Thread<'_>,
) -> Result<Option<bool>> {
    // `None` leads to the merged set, `Some(false)` to the cut, and `Some(true)` to the exact set where the record
    // allows it.
    if takes_others(by_whole) {
        return Ok(None);
    }
    let Ok(planned) = by_whole else { return Ok(Some(false)) };
    let Some(tree) = planned.parts.tree.as_ref().filter(|_| !warns_of(planned, UNTOLD)) else {
        return Ok(Some(false));
    };
    let run = &planned.rollback.plan.run;
    let workspace = Workspace::of_run(kernel, run, settings)?;
    // Where HEAD stays, and no branch and no entry of the stash is new, the end of the work need not be looked up.
    let has_new = |git: &GitRestore| {
        let own = git.current.branch.as_ref().map(|branch| branch.0.as_slice());
        let is_other = |name: &PathText| name.0.strip_prefix(b"refs/heads/").is_some_and(|name| Some(name) != own);
        let is_moved = |one: &(PathText, String)| is_other(&one.0) && git.meant.refs.binary_search(one).is_err();
        let is_put = |entry: &Stash| !git.meant.stash.contains(entry);
        git.current.refs.iter().any(is_moved) || git.current.stash.iter().any(is_put)
    };
    let is_still = tree.git.as_ref().is_some_and(|git| !git.plan.head && !has_new(git));
    let is_all = sole_work::is_all_of(&workspace, &thread.kin, (&tree.target, &tree.plan.steps))?
        && (is_still || !is_switched_or_stashed(kernel, &workspace, run, &thread.last)?);
    Ok(is_all.then_some(true))
}

/// Whether others switched to another branch, or put something onto one or onto the stash, since this work ended.
fn is_switched_or_stashed(kernel: &Kernel, workspace: &Workspace<'_>, run: &Run, last: &DispatchId) -> Result<bool> {
    let looks = git_around_ids(kernel, workspace, run, std::slice::from_ref(last))?;
    let Some((_, Some(left))) = looks.into_iter().next() else { return Ok(false) };
    let is_new = |commit: &String| !left.stash.iter().any(|entry| entry.commit == *commit);
    let is_stashed = git::stash_ids(&workspace.root)?.iter().any(is_new);
    let is_put = is_stashed || is_branch_since(&workspace.root, &left)?;
    Ok(is_put || git::branch(&workspace.root) != left.branch.map(|branch| branch.0))
}

/// Whether a run has work after an event that stands and is of none of these dispatches.
fn others_since(snapshot: &Snapshot<'_>, run: &Run, seq: Seq, works: &[Dispatch]) -> Result<bool> {
    let is_of_thread = |one: &Dispatch| works.iter().any(|work| work.id == one.id);
    for one in dispatch::of_run(snapshot, &run.id)? {
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
    // That flag decides about commits that leave a branch, and a set moves none.
    has_files && !request.force.commits
}

/// Whether a plan that restores a whole tree would take what others did, or a person, or is refused because of that.
fn takes_others(by_whole: &Result<LayeredRollback>) -> bool {
    // The set can be undone beside an agent of another session that is at work, and beside a work tree that has the branch.
    const OF_OTHERS: [Code; 5] =
        [Code::FileConflict, Code::ForeignCommits, Code::BranchSwitched, Code::WorkRunning, Code::GitUnsupported];
    let is_of_others = |error: &Diagnosis| OF_OTHERS.contains(&error.code());
    match by_whole {
        Err(error) => is_of_others(error),
        Ok(planned) => {
            planned.refusals.iter().any(|refusal| is_of_others(&refusal.error))
                || warns_of(planned, BETWEEN_CALLS)
                || planned.parts.tree.as_ref().is_some_and(|tree| !tree.beside.is_empty())
        }
    }
}

fn warns_of(planned: &LayeredRollback, code: &str) -> bool {
    planned.parts.tree.iter().flat_map(|tree| &tree.warnings).any(|warning| warning.code == code)
}
