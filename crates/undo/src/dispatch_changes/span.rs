//! The checkpoints between which a dispatch was at work.

use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, dispatch};
use ic_ledger::Snapshot;
use ic_phase::run;
use ic_session::attribution::Attribution;
use ic_session::call;

/// The time in which a dispatch was at work in the tree, with the work that it began.
pub(super) struct WorkSpan {
    pub(super) dispatch: Dispatch,
    /// The events of the first checkpoint and of the last.
    pub(super) range: (Seq, Seq),
    /// When the first checkpoint was taken.
    pub(super) since: Timestamp,
    /// The checkpoint that shows the tree at its end.
    pub(super) ended: CheckpointId,
}

impl WorkSpan {
    /// Errors: `no_checkpoint` if the tree was not captured at its beginning or its end, or if that checkpoint is pruned.
    pub(super) fn of(
        snapshot: &Snapshot<'_>,
        root: &Path,
        id: &DispatchId,
        descendants: &[DispatchId],
    ) -> Result<Self> {
        let dispatch = dispatch::resolve(snapshot, id.as_str())?;
        let run = run::get(snapshot, &dispatch.run_id)?;
        let place = crate::points::place_of(snapshot, &run, &dispatch)?;
        let before = crate::points::checkpoint_at(snapshot, &run, place.seq)?;
        let before = kept(before, &dispatch, "as it began")?;
        let after = kept(at_end(snapshot, root, &dispatch)?, &dispatch, "as it ended")?;
        let mut last = after.seq;
        for own in std::iter::once(id).chain(descendants) {
            // Calls may continue after its end: a subagent was left in the background.
            let calls = call::of_dispatch(snapshot, own)?;
            last = calls.iter().filter_map(|call| call.ended_seq).fold(last, Seq::max);
        }
        // Where the end was not captured, the next checkpoint shows what was done until then.
        let last = record::look_since(snapshot, root, last)?.map_or(last, |look| look.seq);
        Ok(Self { dispatch, range: (before.seq, last), since: before.created_at, ended: after.id })
    }

    pub(super) fn attribution(&self, snapshot: &Snapshot<'_>, root: &Path) -> Result<Attribution> {
        Attribution::between(snapshot, root, self.range, self.since)
    }
}

/// The checkpoint with which a dispatch ended: the event right before the one that ended it. For work whose client reports calls but did
/// not report its end, the next checkpoint shows it.
fn at_end(snapshot: &Snapshot<'_>, root: &Path, dispatch: &Dispatch) -> Result<Option<CheckpointRecord>> {
    let Some(end) = dispatch.finished_seq else { return Ok(None) };
    if let Some(look) = record::of_event(snapshot, end - 1)? {
        return Ok(Some(look));
    }
    if call::told_by_calls(snapshot, std::iter::once(&dispatch.id))?.is_empty() {
        return Ok(None);
    }
    if let Some(look) = record::look_since(snapshot, root, end)? {
        return Ok(Some(look));
    }
    // No checkpoint was taken since: each of its calls ended with one.
    let calls = call::of_dispatch(snapshot, &dispatch.id)?;
    let last = calls.iter().filter_map(|call| call.ended_seq).max();
    last.map_or(Ok(None), |last| record::look_since(snapshot, root, last))
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
    .hint(format!("undo it with all that came after it: ic undo dispatch:{id} --dry-run; or its record and effects alone: ic undo --dispatch {id} --layer=workflow,effects --yes"))
    .detail("dispatch_id", dispatch.id.as_str())
}
