//! Prompts that did nothing: a question that was answered. A person would not undo them, and they do not block a redo.

use std::ops::ControlFlow;
use std::path::Path;

use ic_base::{DispatchId, Result, Seq};
use ic_checkpoint::outside_state::OutsideStanding;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, DispatchStatus, code, dispatch};
use ic_ledger::Snapshot;
use ic_ledger::events::{Event, EventType};
use ic_phase::{Run, run};
use ic_session::call::{self, ToolCall};
use ic_session::outside_files::{self, OutsideFile};
use ic_worktree::outside_files::OF_CLIENT;

use super::point_position::place_of;
use super::point_reference::checkpoint_at;

/// Whether a dispatch is a prompt that changed no file in the project or outside of it and recorded no commit, and nothing else happened in
/// its run during it.
pub fn is_idle(snapshot: &Snapshot<'_>, run: &Run, dispatch: &Dispatch) -> Result<bool> {
    if call::told_by_calls(snapshot, std::iter::once(&dispatch.id))?.is_empty()
        || !code::commits_of(snapshot, &dispatch.id)?.is_empty()
    {
        return Ok(false);
    }
    let begun = dispatch::descendants(snapshot, &dispatch.id)?;
    for one in &begun {
        if !code::commits_of(snapshot, &one.id)?.is_empty() {
            return Ok(false);
        }
    }
    // No checkpoint shows files outside of the project.
    for work in std::iter::once(dispatch).chain(&begun) {
        if has_changed_outside(snapshot, work)? {
            return Ok(false);
        }
    }
    let place = place_of(snapshot, run, dispatch)?;
    let Some(before) = checkpoint_at(snapshot, run, place.seq)? else {
        // A prompt that was never begun waits for its first call: it did nothing.
        return Ok(dispatch.started_seq.is_none()
            && begun.is_empty()
            && call::of_dispatch(snapshot, &dispatch.id)?.is_empty());
    };
    // A call that runs, or whose end was not reported, may have done anything.
    for work in std::iter::once(dispatch).chain(&begun) {
        if call::of_dispatch(snapshot, &work.id)?.iter().any(|call| call.finished_at.is_none()) {
            return Ok(false);
        }
    }
    let after = match dispatch.finished_seq {
        // Without a call, the only checkpoint was taken at its end, and its beginning was recorded after that checkpoint.
        Some(end) if is_begun_at_end(dispatch, end) => record::of_event(snapshot, end - 2)?,
        Some(end) => record::of_event(snapshot, end - 1)?,
        None => record::newest_look(snapshot, &before.root)?,
    };
    let Some(after) = after.filter(|after| after.tree == before.tree) else { return Ok(false) };
    // Branches and the stash are work too. Where a checkpoint has the tree alone, no call may have moved them.
    let moves_no_ref = match dispatch.finished_seq {
        Some(_) => after.has_git_as(&before),
        None => call::of_dispatch(snapshot, &dispatch.id)?.is_empty(),
    };
    if !moves_no_ref {
        return Ok(false);
    }
    let end = dispatch.finished_seq.unwrap_or(Seq::MAX);
    let mut is_quiet = true;
    ic_ledger::events::each_since(snapshot, Some(&run.id), place.seq, i64::MAX, |event| {
        if event.seq > end {
            return Ok(ControlFlow::Break(()));
        }
        let is_of = |work: &Dispatch| event.subject_id.as_deref() == Some(work.id.as_str());
        is_quiet = !blocks(&event) || is_of(dispatch) || begun.iter().any(is_of);
        Ok(if is_quiet { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(is_quiet)
}

/// Whether the only checkpoint of a prompt was taken as its agent stopped, and its beginning recorded with it: it made no call.
fn is_begun_at_end(dispatch: &Dispatch, end: Seq) -> bool {
    dispatch.status == DispatchStatus::Completed && dispatch.started_seq == Some(end - 1)
}

/// Whether a call of this work changed a file that no checkpoint shows. A file that a client writes for itself is no change that a person
/// would undo.
fn has_changed_outside(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<bool> {
    let is_of_client =
        |state: &OutsideStanding| matches!(state, OutsideStanding::Unkept { reason, .. } if reason == OF_CLIENT);
    let counts = |file: &OutsideFile| file.is_changed() && !is_of_client(&file.was);
    Ok(outside_files::of_dispatch(snapshot, &work.id)?.iter().any(counts))
}

/// Whether a prompt changed the tree or a named file outside of it in one of its calls, or recorded a commit, itself or through what it
/// began. Where no checkpoint shows what a call did, a call whose end was reported counts.
pub fn has_changed(snapshot: &Snapshot<'_>, root: &Path, dispatch: &Dispatch) -> Result<bool> {
    let mut calls = Vec::new();
    for work in std::iter::once(dispatch.clone()).chain(dispatch::descendants(snapshot, &dispatch.id)?) {
        if !code::commits_of(snapshot, &work.id)?.is_empty() || has_changed_outside(snapshot, &work)? {
            return Ok(true);
        }
        calls.extend(call::of_dispatch(snapshot, &work.id)?);
    }
    let Some(first) = calls.iter().map(|call| call.began_seq).min() else { return Ok(false) };
    // The looks are read once for all calls: the first look at which a call began is the oldest that is needed.
    let looks = record::of_root_between(snapshot, root, first, Seq::MAX)?;
    let changed = |call: &ToolCall| {
        let before = looks.iter().find(|look| look.seq == call.began_seq);
        let is_after = |look: &&CheckpointRecord| call.ended_seq.is_some_and(|end| look.seq >= end);
        let after = looks.iter().find(is_after).or(looks.last());
        match before.zip(after) {
            Some((before, after)) => before.tree != after.tree,
            None => call.finished_at.is_some(),
        }
    };
    Ok(calls.iter().any(changed))
}

/// Whether an event belongs to a prompt that did nothing.
pub fn is_of_idle(snapshot: &Snapshot<'_>, event: &Event) -> Result<bool> {
    let (Some(id), "dispatch") = (&event.subject_id, event.source.as_str()) else { return Ok(false) };
    let Some(work) = dispatch::find(snapshot, &DispatchId::from_ledger(id.clone()))? else {
        return Ok(false);
    };
    is_idle(snapshot, &run::get(snapshot, &work.run_id)?, &work)
}

/// Whether an event blocks an undo; a type that is not known does.
fn blocks(event: &Event) -> bool {
    EventType::parse(&event.event_type).is_none_or(EventType::blocks_undo)
}
