//! The checkpoints between which some dispatches were at work.

use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::git::GitState;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::{Run, run};
use ic_session::attribution::Attribution;
use ic_session::call;
use ic_worktree::Workspace;

/// The time in which some dispatches were at work in the tree.
pub(super) struct WorkSpan {
    /// The one that began first.
    pub(super) first: Dispatch,
    /// The events of the first checkpoint and of the last.
    pub(super) range: (Seq, Seq),
    /// When the first checkpoint was taken.
    pub(super) since: Timestamp,
    /// The checkpoint that shows the tree at their end.
    pub(super) ended: CheckpointId,
}

impl WorkSpan {
    /// Errors: `no_checkpoint` if the tree was not captured at the beginning of the first, or at the end of one that no other of them began,
    /// or if that checkpoint is pruned.
    pub(super) fn of(snapshot: &Snapshot<'_>, root: &Path, works: &[DispatchId]) -> Result<Self> {
        let all: Vec<Dispatch> = works.iter().map(|id| dispatch::get(snapshot, id)).collect::<Result<_>>()?;
        let Some(first) = all.first().cloned() else {
            return Err(Diagnosis::new(Code::Corrupt, "An undo names no work.").hint("run `ic events verify`"));
        };
        let run = run::get(snapshot, &first.run_id)?;
        let place = crate::points::place_of(snapshot, &run, &first)?;
        let before = crate::points::checkpoint_at(snapshot, &run, place.seq)?;
        let before = kept(before, &first, "as it began")?;
        // A subagent is part of the work that began it, whose end shows what both made.
        let is_begun = |one: &Dispatch| one.work.parent_id.as_ref().is_some_and(|parent| works.contains(parent));
        // If none of them made a call, the tree at their end is that of their beginning.
        let mut ended = before.clone();
        for one in all.iter().filter(|one| !is_begun(one)) {
            let end = match at_end(snapshot, root, one)? {
                // It changed nothing, so a checkpoint of its end is not needed.
                None if made_no_call(snapshot, one)? => continue,
                end => kept(end, one, "as it ended")?,
            };
            if end.seq > ended.seq {
                ended = end;
            }
        }
        let mut last = ended.seq;
        for own in works {
            // Calls may continue after its end: a subagent was left in the background.
            let calls = call::of_dispatch(snapshot, own)?;
            last = calls.iter().filter_map(|call| call.ended_seq).fold(last, Seq::max);
        }
        // Where the end was not captured, the next checkpoint shows what was done until then.
        let last = record::look_since(snapshot, root, last)?.map_or(last, |look| look.seq);
        Ok(Self { first, range: (before.seq, last), since: before.created_at, ended: ended.id })
    }

    pub(super) fn attribution(&self, snapshot: &Snapshot<'_>, root: &Path) -> Result<Attribution> {
        Attribution::between(snapshot, root, self.range, self.since)
    }
}

/// The checkpoint with which a dispatch ended: the event right before the one that ended it. Work whose client reports calls changes nothing
/// outside of them: where its end was not captured, or is still to come, the next checkpoint after it shows the end, or after its last call.
fn at_end(snapshot: &Snapshot<'_>, root: &Path, dispatch: &Dispatch) -> Result<Option<CheckpointRecord>> {
    let at_end = dispatch.finished_seq.map_or(Ok(None), |end| record::of_event(snapshot, end - 1))?;
    if at_end.is_some() || call::told_by_calls(snapshot, std::iter::once(&dispatch.id))?.is_empty() {
        return Ok(at_end);
    }
    if let Some(end) = dispatch.finished_seq
        && let Some(look) = record::look_since(snapshot, root, end)?
    {
        return Ok(Some(look));
    }
    let calls = call::of_dispatch(snapshot, &dispatch.id)?;
    // What a call did that runs, or was stopped, the newest checkpoint shows. The end of its work is none that was reported.
    if calls.last().is_some_and(|call| call.finished_at.is_none()) {
        return record::newest_of_root_until(snapshot, root, dispatch.finished_seq.unwrap_or(Seq::MAX));
    }
    let last = calls.iter().filter_map(|call| call.ended_seq).fold(dispatch.place(), Seq::max);
    record::look_since(snapshot, root, last)
}

/// Whether work changed nothing, because its client reports calls and reported none.
fn made_no_call(snapshot: &Snapshot<'_>, dispatch: &Dispatch) -> Result<bool> {
    let is_told = !call::told_by_calls(snapshot, std::iter::once(&dispatch.id))?.is_empty();
    Ok(is_told && call::of_dispatch(snapshot, &dispatch.id)?.is_empty())
}

fn kept(found: Option<CheckpointRecord>, dispatch: &Dispatch, when: &str) -> Result<CheckpointRecord> {
    found.filter(|checkpoint| checkpoint.pruned_at.is_none()).ok_or_else(|| missing(dispatch, when))
}

pub(super) fn missing(dispatch: &Dispatch, when: &str) -> Diagnosis {
    let id = dispatch.id.short();
    Diagnosis::new(
        Code::NoCheckpoint,
        format!("There is no checkpoint of the tree {when}, so the changes of the dispatch {id} cannot be told from others."),
    )
    .hint(format!("undo it with all that came after it: ic undo dispatch:{id} --dry-run; or its record and effects alone: ic undo --only {id} --layer=workflow,effects --yes"))
    .detail("dispatch_id", dispatch.id.as_str())
}

/// Git's state before a piece of work, and after it, which is the present one where no look was taken since; `None` for the second: the
/// checkpoint of its end is pruned, or has no state of git.
type GitEnds = (GitState, Option<GitState>);

/// As [`git_around`], of dispatches by their ids.
pub(crate) fn git_around_ids(
    kernel: &Kernel,
    workspace: &Workspace<'_>,
    run: &Run,
    ids: &[DispatchId],
) -> Result<Vec<GitEnds>> {
    let works = kernel.read(|snapshot| ids.iter().map(|id| dispatch::get(snapshot, id)).collect::<Result<Vec<_>>>())?;
    git_around(kernel, workspace, run, works.iter())
}

/// Git's state around each of these works of a run. Work whose checkpoints are pruned or have no state of git is left out.
pub(crate) fn git_around<'w>(
    kernel: &Kernel,
    workspace: &Workspace<'_>,
    run: &Run,
    works: impl Iterator<Item = &'w Dispatch>,
) -> Result<Vec<GitEnds>> {
    let state = |look: &CheckpointRecord| -> Result<Option<GitState>> {
        let is_kept = look.pruned_at.is_none();
        if is_kept { Ok(CheckpointManifest::read(&workspace.objects, &look.manifest)?.git) } else { Ok(None) }
    };
    let (mut found, mut now) = (Vec::new(), None);
    for work in works {
        let Some((before, after)) = kernel.read(|snapshot| ends(snapshot, workspace, run, work))? else { continue };
        let after = match (&after, &now) {
            (Some(look), _) => state(look)?,
            (None, Some(now)) => Option::clone(now),
            (None, None) => now.insert(workspace.git_now()?).clone(),
        };
        found.extend(state(&before)?.map(|before| (before, after)));
    }
    Ok(found)
}

/// The checkpoints around a piece of work.
fn ends(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    run: &Run,
    work: &Dispatch,
) -> Result<Option<(CheckpointRecord, Option<CheckpointRecord>)>> {
    let place = crate::points::place_of(snapshot, run, work)?;
    let Some(before) = crate::points::checkpoint_at(snapshot, run, place.seq)? else { return Ok(None) };
    let after = match work.finished_seq {
        // The checkpoint of an end is recorded just before the event of the end.
        Some(end) => match record::of_event(snapshot, end - 1)? {
            Some(look) => Some(look),
            None => record::look_since(snapshot, &workspace.root, end)?,
        },
        None => None,
    };
    Ok(Some((before, after)))
}
