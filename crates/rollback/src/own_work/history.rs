//! The history of the paths of one piece of work that other undos met.
//!
//! An undo of one dispatch, and what takes it back, change the tree in the middle of a history, and later work may have set back what others
//! did. So the undo of one does not look at its own steps alone: all that is undone goes out of the history together, with what the undos
//! restored. What comes back goes out of it no more, and has the place that it had.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use ic_base::{CheckpointId, DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::restore::journal::{self, Restore};
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::Dispatch;
use ic_events::EventType;
use ic_journal::made::safety_of;
use ic_journal::table::{self, RollbackRecord};
use ic_journal::{Layer, RollbackStatus, steps};
use ic_session::attribution::Attribution;
use ic_store::Snapshot;
use ic_worktree::Workspace;

use super::{Span, Whose, changes_of};

/// What other undos of one dispatch each have to do with one piece of work.
struct History {
    /// They stand, or stood when work of this history was done.
    undos: Vec<RollbackRecord>,
    /// What is undone.
    undone: Vec<DispatchId>,
    /// When it began.
    from: Seq,
    since: Timestamp,
    /// Where they met the work.
    paths: BTreeSet<Vec<u8>>,
}

/// Takes out of what is known of work what others did to the same paths, and is undone.
pub(super) fn leave_undone_out(
    workspace: &Workspace<'_>,
    work: &[DispatchId],
    span: &Span,
    changes: &mut Own,
) -> Result<()> {
    let all = workspace.kernel.read(alone)?;
    let Some(mut history) = History::of(workspace, span, &changes.known(), all)? else { return Ok(()) };
    history.undone.extend_from_slice(work);
    let mut together = history.changes(workspace, &[])?;
    for path in &history.paths {
        changes.take(path, &mut together);
    }
    Ok(())
}

/// What there is to be merged out of the tree so that the work of an undo comes back, and a tree with that work. `None`: nothing is to be
/// merged, because there is nothing, or because a database is taken back whole.
pub(crate) fn again(
    workspace: &Workspace<'_>,
    remembered: &RollbackRecord,
    restores: &[Restore],
) -> Result<Option<(Own, CheckpointId)>> {
    let Some(mut own) = ic_worktree::changed_by(workspace, restores)? else { return Ok(None) };
    let mut with = restores.first().map(|first| first.safety_id.clone());
    let mut others = workspace.kernel.read(alone)?;
    others.retain(|one| one.id != remembered.id);
    let work = work_of(remembered);
    let mut history = None;
    if !others.is_empty()
        && let Some((span, paths)) = touched(workspace, &work)?
    {
        history = History::of(workspace, &span, &paths, others)?;
        with = with.or(span.last.filter(|_| history.is_some()));
    }
    let mut history = history.unwrap_or_else(|| History::since(remembered.seq, remembered.created_at));
    history.undos.push(remembered.clone());
    history.paths.extend(own.paths());
    let mut together = history.changes(workspace, &work)?;
    for path in &history.paths {
        own.take(path, &mut together);
    }
    Ok(with.filter(|_| !own.paths().is_empty()).map(|with| (own, with)))
}

impl History {
    /// Of nothing yet.
    fn since(from: Seq, since: Timestamp) -> Self {
        Self { undos: Vec::new(), undone: Vec::new(), from, since, paths: BTreeSet::new() }
    }

    /// Of work that touched `paths`. `None`: none of these undos met it.
    fn of(
        workspace: &Workspace<'_>,
        span: &Span,
        paths: &BTreeSet<Vec<u8>>,
        mut rest: Vec<RollbackRecord>,
    ) -> Result<Option<Self>> {
        let mut history = Self::since(span.range.0, span.since);
        while let Some(at) = history.next(workspace, &rest)? {
            let one = rest.swap_remove(at);
            let work = work_of(&one);
            let Some((span, touched)) = touched(workspace, &work)? else { continue };
            let mut met = paths.intersection(&touched).peekable();
            if met.peek().is_none() {
                continue;
            }
            history.paths.extend(met.cloned());
            if one.status == RollbackStatus::Done {
                history.undone.extend(work);
            }
            if span.range.0 < history.from {
                (history.from, history.since) = (span.range.0, span.since);
            }
            history.undos.push(one);
        }
        Ok((!history.paths.is_empty()).then_some(history))
    }

    /// An undo that was made since the history began and stands, or was taken back since: before that its work was out of the tree.
    fn next(&self, workspace: &Workspace<'_>, rest: &[RollbackRecord]) -> Result<Option<usize>> {
        for (at, one) in rest.iter().enumerate() {
            let is_met = match one.status {
                RollbackStatus::Done => one.seq > self.from,
                RollbackStatus::Undone => {
                    workspace.kernel.read(|snapshot| taken_back_since(snapshot, one, self.from))?
                }
                _ => false,
            };
            if is_met {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// What all that is undone did, and what its undos restored. `back`: work that comes back.
    fn changes(&self, workspace: &Workspace<'_>, back: &[DispatchId]) -> Result<Own> {
        let (attribution, restores) = workspace.kernel.read(|snapshot| {
            let range = (self.from, ic_events::head(snapshot)?.0);
            let attribution = Attribution::between(snapshot, &workspace.root, range, self.since)?;
            Ok((attribution, restores_of(snapshot, workspace, &self.undos)?))
        })?;
        let is_own = |other: &DispatchId| self.undone.contains(other);
        let is_undone = |owner: &Dispatch| owner.rolled_back_by.is_some() && !back.contains(&owner.id);
        let left = restores.into_iter().filter_map(|one| one.restored_id).collect();
        changes_of(workspace, &attribution, &Whose { is_own: &is_own, is_undone: &is_undone, restored: left })
    }
}

/// The undos of one dispatch each that changed files, oldest first.
fn alone(snapshot: &Snapshot<'_>) -> Result<Vec<RollbackRecord>> {
    let mut all = table::all(snapshot)?;
    all.retain(|one| one.only().is_some() && one.layers.contains(&Layer::Files));
    Ok(all)
}

/// The dispatches whose work an undo of one undid.
fn work_of(one: &RollbackRecord) -> Vec<DispatchId> {
    one.only().into_iter().chain(one.descendants()).collect()
}

/// When work was done, and what it changed of which it is known; `None`: that is not kept any more.
fn touched(workspace: &Workspace<'_>, work: &[DispatchId]) -> Result<Option<(Span, BTreeSet<Vec<u8>>)>> {
    let Some((first, descendants)) = work.split_first() else { return Ok(None) };
    let found = workspace.kernel.read(|snapshot| {
        let Ok(span) = Span::of(snapshot, &workspace.root, first, descendants) else { return Ok(None) };
        let attribution = Attribution::between(snapshot, &workspace.root, span.range, span.since)?;
        Ok(Some((span, attribution)))
    })?;
    let Some((span, attribution)) = found else { return Ok(None) };
    let is_own = |other: &DispatchId| work.contains(other);
    let changes = changes_of(workspace, &attribution, &Whose::of(&is_own))?;
    Ok(Some((span, changes.known())))
}

/// Whether an undo was taken back after an event.
fn taken_back_since(snapshot: &Snapshot<'_>, one: &RollbackRecord, since: Seq) -> Result<bool> {
    let mut is_taken_back = false;
    ic_events::each_since(snapshot, Some(&one.run_id), since.max(one.seq), i64::MAX, |event| {
        is_taken_back |= event.event_type == EventType::RollbackUndone.as_str()
            && event.subject_id.as_deref() == Some(one.id.as_str());
        Ok(if is_taken_back { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(is_taken_back)
}

/// The restores that undid work alone, or brought it back.
fn restores_of(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    undos: &[RollbackRecord],
) -> Result<Vec<Restore>> {
    let mut made: HashSet<CheckpointId> = HashSet::new();
    for one in undos {
        made.extend(steps::of_rollback(snapshot, &one.id)?.iter().flat_map(safety_of));
        // Where an undo restored nothing, its work is brought back from the last look at it.
        if let Some((first, descendants)) = work_of(one).split_first()
            && let Ok(span) = Span::of(snapshot, &workspace.root, first, descendants)
        {
            made.extend(span.last);
        }
    }
    let mut all = journal::finished(snapshot, &workspace.root)?;
    all.retain(|one| made.contains(&one.safety_id) || made.contains(&one.target_id));
    Ok(all)
}
