//! What a person changed between the works of a place, as far as checkpoints show it.

use std::ops::ControlFlow;
use std::path::Path;

use ic_base::{Result, Seq, Timestamp};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_ledger::Snapshot;
use ic_phase::run::{self, PlaceRun};

use crate::attribution::Attribution;

/// The checkpoints between which a person changed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnChange {
    /// The tree before it.
    pub from: CheckpointRecord,
    /// The next checkpoint, which shows it.
    pub to: CheckpointRecord,
}

/// Whether a run was open at some time between two checkpoints.
fn was_open(run: &PlaceRun, from: &CheckpointRecord, to: &CheckpointRecord) -> bool {
    // A run that ends with an advance ends at the time of the checkpoint that the advance took. Of one moment, events tell the order.
    let had_not_ended = |at: Timestamp| at > from.created_at || (at >= to.created_at && run.newest > to.seq);
    run.seq < to.seq && run.ended_at.is_none_or(had_not_ended)
}

/// Passes on what a person changed in a root, newest first, until `visit` breaks: what was seen after the event `after`, and whose first
/// checkpoint is older than `before`.
///
/// A change is left out where it cannot be told: work was under way, a checkpoint is missing so that work lies between the two that are
/// there, or a run was open to which it belongs.
pub fn each_between(
    snapshot: &Snapshot<'_>,
    root: &Path,
    (after, before): (Seq, Seq),
    mut visit: impl FnMut(OwnChange) -> Result<ControlFlow<()>>,
) -> Result<()> {
    /// How many checkpoints are read at once: a log shows about as many.
    const PART: usize = 32;
    // These are read with the first checkpoint that shows a change, and kept for the others.
    let mut runs = None;
    // The checkpoint that shows a change may be newer than the end of the page that the change is on.
    let mut until = if before == Seq::MAX { None } else { record::look_since(snapshot, root, before)? }
        .map_or(before, |next| next.seq + 1);
    loop {
        let looks = record::changed_between(snapshot, root, (after, until), PART)?;
        let is_last = looks.len() < PART;
        for to in looks {
            // The next part ends before the last checkpoint of this one.
            until = to.seq;
            let runs = match &runs {
                Some(runs) => runs,
                None => &*runs.insert(opened_runs(snapshot, root)?),
            };
            if let Some(own) = own_until(snapshot, to, runs)?
                && own.from.seq < before
                && visit(own)?.is_break()
            {
                return Ok(());
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// What a person changed after this checkpoint and before the next one; `None` where nothing is told.
pub fn since(snapshot: &Snapshot<'_>, from: &CheckpointRecord) -> Result<Option<OwnChange>> {
    let next = record::look_since(snapshot, &from.root, from.seq + 1)?;
    // A look of a call is taken while work is under way, so what it shows cannot be told.
    match next.filter(|next| !next.link.of_call && next.tree != from.tree) {
        Some(to) => own_until(snapshot, to, &opened_runs(snapshot, &from.root)?),
        None => Ok(None),
    }
}

fn own_until(snapshot: &Snapshot<'_>, to: CheckpointRecord, runs: &[PlaceRun]) -> Result<Option<OwnChange>> {
    // Any look counts as the beginning, even one of a call or a restore: the shorter the time, the less happened in it.
    let Some(from) = record::newest_of_root_until(snapshot, &to.root, to.seq)? else { return Ok(None) };
    // This is asked before the attribution, because it needs no query.
    if runs.iter().any(|run| was_open(run, &from, &to)) {
        return Ok(None);
    }
    let attribution = Attribution::between(snapshot, &to.root, (from.seq, to.seq), from.created_at)?;
    let is_own = attribution.window(&from, &to).is_own();
    Ok(is_own.then_some(OwnChange { from, to }))
}

/// The runs that a person or a script opened: what changes while one is open, without other work, counts at its points.
fn opened_runs(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<PlaceRun>> {
    let is_of_no_session = "NOT EXISTS (SELECT 1 FROM dispatches d JOIN prompts p ON p.dispatch_id = d.id \
                            WHERE d.run_id = r.id AND p.owns_run = 1)";
    run::of_place(snapshot, root, is_of_no_session)
}
