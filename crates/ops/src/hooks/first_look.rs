//! The look at the tree before a prompt's work begins. The prompt is on record before it, and its work is pending until it is taken.
//!
//! ```text
//!   prompt ──▶ PENDING ── its look ──▶ RUNNING
//!                 ├── its hook was killed, and its first call looks ──▶ RUNNING, with that look
//!                 ├── a call was begun, and its hook was killed, too ──▶ RUNNING with the next call, without a look: what it did is unsure
//!                 └── the agent stops without a call: nothing was done
//! ```

use ic_base::{CallId, DispatchId, Result, Timestamp};
use ic_checkpoint::git;
use ic_checkpoint::record::{self, CheckpointLink};
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch};
use ic_kernel::Kernel;
use ic_ledger::{Snapshot, Transaction};
use ic_phase::point::{self, PointKind};
use ic_phase::{Run, run};
use ic_session::{NewCall, Prompt, call, outside_files};
use ic_worktree::auto::{SeenTree, TakenTree};
use ic_worktree::{CaptureSettings, Warning, root_of};

use super::tool_call::ToldCall;
use super::uncaptured_files;

/// Whether the tree was not looked at yet for a prompt's work.
pub(super) fn is_missing(work: &Dispatch) -> bool {
    work.status == DispatchStatus::Pending && work.require_current().is_ok()
}

/// Looks at the tree, and begins the work of a prompt. Where the look was cut off, the work waits for its first call.
pub(super) fn take(kernel: &Kernel, work: Dispatch, kept: &CaptureSettings) -> Result<(Dispatch, Vec<Warning>)> {
    if !is_missing(&work) || !kernel.read(|snapshot| call::of_dispatch(snapshot, &work.id))?.is_empty() {
        return Ok((work, Vec::new()));
    }
    let run = kernel.read(|snapshot| run::get(snapshot, &work.run_id))?;
    let taken = TakenTree::take(kernel, kept, &run.project_dir, link(&run));
    if taken.is_cut_off() {
        return Ok((work, taken.warnings.clone()));
    }
    let begun = kernel.write_late_too(|tx, now| {
        // This is asked again: a call that began while the tree was captured may have changed what was seen. Then the look does not show
        // the tree from before the work, and the work begins without one.
        let is_first = call::of_dispatch(tx, &work.id)?.is_empty();
        begin(tx, now, &work.id, is_first.then_some(&taken)).map(|(begun, _)| begun)
    })?;
    Ok((begun, taken.warnings.clone()))
}

/// Records a call of a prompt whose work waits for its look, then looks, and begins the work: with what was seen if no other call was made
/// before. The tool runs after that, whatever became of the look.
pub(super) fn take_with_call(
    kernel: &Kernel,
    prompt: &Prompt,
    told: &ToldCall<'_>,
    kept: Option<&CaptureSettings>,
    warnings: &mut Vec<Warning>,
) -> Result<TakenTree> {
    let run = kernel.read(|snapshot| {
        let work = dispatch::get(snapshot, &prompt.dispatch_id)?;
        run::get(snapshot, &work.run_id)
    })?;
    let root = root_of(&run.project_dir);
    let (head, head_log_start) = (git::head(&root), git::log_size(&root));
    let id: CallId = kernel.context.new_id();
    let uncaptured = uncaptured_files::of_call(kernel, kept, &root, told, warnings);
    let is_first = kernel.write_late_too(|tx, now| {
        let is_first = call::of_dispatch(tx, &prompt.dispatch_id)?.is_empty();
        // The call is on record before its look: if the hook is killed in the look, it is known that a call was made.
        let newest = record::newest_look(tx, &root)?.map_or(0, |look| look.seq);
        let new = NewCall {
            head: head.as_deref(),
            head_log_start,
            ..told.call((&id, &prompt.dispatch_id, &prompt.session_id), (newest, newest))
        };
        call::begin(tx, now, &new)?;
        let mut uncaptured = uncaptured.iter();
        uncaptured.try_for_each(|(path, was)| outside_files::begin(tx, now, (&id, &prompt.dispatch_id), path, was))?;
        Ok(is_first)
    })?;
    let taken = TakenTree::take_if(kernel, kept, &run.project_dir, link(&run));
    kernel.write_late_too(|tx, now| {
        let (_, seen) = begin(tx, now, &prompt.dispatch_id, is_first.then_some(&taken))?;
        let seen = match seen {
            Some(seen) => seen,
            None => taken.record_news(tx, now, &root, run.epoch)?,
        };
        // Without a look the call keeps the newest checkpoint from before it: it may have made all changes since then.
        if seen.is_certain { call::looked_at(tx, &id, seen.seq) } else { Ok(()) }
    })?;
    Ok(taken)
}

/// Begins the work that waits for its look, as its agent stops; returns whether what was seen is recorded: without a call nothing was done, and
/// the tree is what it was.
pub(super) fn take_at_end(
    tx: &Transaction<'_>,
    now: Timestamp,
    work: &Dispatch,
    taken: &TakenTree,
) -> Result<(Dispatch, bool)> {
    if !is_missing(work) {
        return Ok((work.clone(), false));
    }
    // A subagent of it may have worked although the prompt itself made no call.
    let is_idle = call::of_dispatch(tx, &work.id)?.is_empty() && is_childless(tx, &work.id)?;
    let (begun, seen) = begin(tx, now, &work.id, is_idle.then_some(taken))?;
    Ok((begun, seen.is_some_and(|seen| seen.is_certain)))
}

fn is_childless(snapshot: &Snapshot<'_>, work: &DispatchId) -> Result<bool> {
    Ok(dispatch::descendants(snapshot, work)?.is_empty())
}

/// Begins work that waits, with what was seen, if that is its first look. In this order: what the look shows was there before the work.
fn begin(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &DispatchId,
    first: Option<&TakenTree>,
) -> Result<(Dispatch, Option<SeenTree>)> {
    let work = dispatch::get(tx, id)?;
    let run = run::get(tx, &work.run_id)?;
    // It was begun, ended or undone while the tree was looked at.
    if !is_missing(&work) || run.require_settled().is_err() {
        return Ok((work, None));
    }
    // The point was recorded with the prompt, without a tree. It gets this one, and keeps its place in the record.
    let point = point::named_in(tx, &run.id, PointKind::Prompt, id.as_str())?.pop();
    let seen = match first.zip(point) {
        Some((taken, point)) => Some(taken.record_at_point(tx, now, &run, &point)?),
        None => None,
    };
    Ok((dispatch::start(tx, now, &work, None)?, seen))
}

fn link(run: &Run) -> CheckpointLink {
    CheckpointLink { run_id: Some(run.id.clone()), phase: Some(run.phase.clone()), ..CheckpointLink::default() }
}
