//! What a prompt changed itself, where others were at work in the same tree at the same time: its tool calls tell.
//!
//! A log is shown within milliseconds, so nothing of this is looked at for work that was alone.

use std::collections::HashSet;

use ic_base::{DispatchId, Result, Seq};
use ic_checkpoint::diff::{self, Change, Difference};
use ic_checkpoint::objects::Objects;
use ic_checkpoint::record::{self, Checkpoint};
use ic_dispatch::{Dispatch, dispatch};
use ic_session::attribution::Attribution;
use ic_session::call;
use ic_store::Snapshot;

use super::list::Listed;
use super::log::{Entry, Files, What};

/// A prompt beside which others were at work.
pub(super) struct Beside {
    /// Which entry of the log stands before it.
    at: usize,
    work: Dispatch,
    family: Family,
}

/// The prompts among these entries beside which others were at work while they changed something.
pub(super) fn beside(snapshot: &Snapshot<'_>, entries: &[&mut Entry]) -> Result<Vec<Beside>> {
    let is_counted = |what: &What| match what {
        What::Point { point, files: Some(files), .. } => {
            matches!(point.kind, "prompt" | "dispatch") && *files != Files::default()
        }
        _ => false,
    };
    let counted = || entries.iter().enumerate().filter(|(_, entry)| is_counted(&entry.what));
    let Some(since) = counted().map(|(_, entry)| entry.created_at).min() else { return Ok(Vec::new()) };
    let from = counted().map(|(_, entry)| entry.seq).min().unwrap_or(0);
    let workers = dispatch::at_work_between(snapshot, from, Seq::MAX, since)?;
    let mut found = Vec::new();
    for (at, entry) in counted() {
        let What::Point { point, .. } = &entry.what else { continue };
        let work = workers.iter().find(|work| Some(work.id.as_str()) == point.before.as_deref());
        let Some(work) = work else { continue };
        let family = Family::of(work, &workers);
        if workers.iter().any(|other| !family.has(&other.id) && overlaps(work, other)) {
            found.push(Beside { at, work: work.clone(), family });
        }
    }
    Ok(found)
}

/// Counts again what changed at such prompts: what is theirs.
pub(super) fn count(
    snapshot: &Snapshot<'_>,
    objects: &Objects,
    entries: &mut [&mut Entry],
    beside: &[Beside],
) -> Result<()> {
    for Beside { at, work, family } in beside {
        if let Some(What::Point { point, files, .. }) = entries.get_mut(*at).map(|entry| &mut entry.what)
            && let Some(own) = own(snapshot, objects, point, work, family)?
        {
            *files = Some(own);
        }
    }
    Ok(())
}

fn overlaps(work: &Dispatch, other: &Dispatch) -> bool {
    let is_after =
        |one: &Dispatch, other: &Dispatch| other.finished_seq.is_some_and(|end| end <= one.place());
    !is_after(work, other) && !is_after(other, work)
}

/// Work with what it began and what began it.
struct Family {
    own: HashSet<DispatchId>,
    above: HashSet<DispatchId>,
}

impl Family {
    fn of(work: &Dispatch, workers: &[Dispatch]) -> Self {
        let mut own = HashSet::from([work.id.clone()]);
        // Whoever begins work is older.
        for one in workers {
            if one.work.parent_id.as_ref().is_some_and(|parent| own.contains(parent)) {
                own.insert(one.id.clone());
            }
        }
        let mut above = HashSet::new();
        let mut next = work.work.parent_id.clone();
        while let Some(id) = next.filter(|id| above.insert(id.clone())) {
            next = workers.iter().find(|one| one.id == id).and_then(|one| one.work.parent_id.clone());
        }
        Self { own, above }
    }

    fn has(&self, id: &DispatchId) -> bool {
        self.own.contains(id) || self.above.contains(id)
    }
}

/// What work changed itself between its point and its end; `None` where its client tells of no calls, or a look is not there.
fn own(
    snapshot: &Snapshot<'_>,
    objects: &Objects,
    point: &Listed,
    work: &Dispatch,
    family: &Family,
) -> Result<Option<Files>> {
    let Some(id) = &point.checkpoint_id else { return Ok(None) };
    if call::told_by_calls(snapshot, std::iter::once(&work.id))?.is_empty() {
        return Ok(None);
    }
    let before = record::get(snapshot, id)?;
    let after = match work.finished_seq {
        Some(end) => record::of_event(snapshot, end - 1)?,
        None => record::newest_look(snapshot, &before.root)?,
    };
    let is_there = |look: &Checkpoint| look.root == before.root && look.pruned_at.is_none();
    let Some(after) = after.filter(is_there).filter(|_| before.pruned_at.is_none()) else { return Ok(None) };
    let range = (before.seq, after.seq);
    let attribution = Attribution::between(snapshot, &before.root, range, before.created_at)?;
    let (mut own, mut shared) = (HashSet::new(), HashSet::new());
    for window in attribution.windows().filter(|window| window.from.tree != window.to.tree) {
        let seen = each_change(objects, window.from, window.to, |difference, _| {
            let owners = window.owners(&difference.path);
            if owners.iter().any(|owner| family.own.contains(&owner.id)) {
                let is_alone = owners.iter().all(|owner| family.has(&owner.id));
                let paths = if is_alone { &mut own } else { &mut shared };
                paths.insert(difference.path);
            }
        });
        if !seen {
            return Ok(None);
        }
    }
    let mut files = Files::default();
    let seen = each_change(objects, &before, &after, |difference, change| {
        if shared.contains(&difference.path) {
            files.shared += 1;
        } else if own.contains(&difference.path) {
            files.add(change);
        }
    });
    Ok(seen.then_some(files))
}

/// Hands on what differs between two looks; false where content is missing.
fn each_change(
    objects: &Objects,
    from: &Checkpoint,
    to: &Checkpoint,
    mut hand_on: impl FnMut(Difference, Change),
) -> bool {
    let done = diff::diff(objects, Some(&from.tree), Some(&to.tree), &mut |difference| {
        if let Some(change) = difference.change() {
            hand_on(difference, change);
        }
        Ok(())
    });
    done.is_ok()
}
