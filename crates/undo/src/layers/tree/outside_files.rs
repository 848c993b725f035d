//! Files outside of the project that tool calls named: what the covered calls did to them is reverted, or made again.
//!
//! Nothing is journaled but the calls themselves: both states of a file are in the store before its row is. A file that has one of the two
//! states gets the other, so the step can be repeated after its process died. What was forced is journaled: no call knows its content.

use std::collections::BTreeMap;
use std::path::Path;

use ic_base::Result;
use ic_checkpoint::outside_state::OutsideStanding;
use ic_kernel::journal::steps::{self, StepEvent};
use ic_kernel::journal::{LayerName, RollbackStep, StepDetail};
use ic_session::outside_files::{self, OutsideFile};
use ic_worktree::Workspace;

use super::super::layer::{LayerWork, Site};
use crate::outside_change::OutsideChange;

const NOT_KEPT: &str = "no content of it is kept";

/// What stood at each path that was replaced by force.
type Forced = BTreeMap<String, OutsideStanding>;

/// Reverts or repeats the changes of the calls that a rollback covers, or says what that would do. A file that the rollback left is left by
/// its undo, too, and one that it forced gets back what stood there. Returns what was forced, which the journal of the step is to name.
pub(super) fn go(site: &Site<'_, '_>, step: &RollbackStep, work: &mut LayerWork) -> Result<Forced> {
    let mut forced = step.detail.outside_forced.clone();
    let covered = site.covered;
    if !covered.layers.contains(&LayerName::Files) {
        return Ok(forced);
    }
    let remembered = covered.remembered();
    let by = remembered.map(|remembered| remembered.id.as_str());
    let mut files = site.kernel.read(|snapshot| outside_files::of_run(snapshot, &covered.run.id, by))?;
    files.retain(|file| {
        // What calls did after the rollback began is not part of what it planned.
        let is_before = remembered.is_none_or(|remembered| file.seq < remembered.seq);
        is_before && covered.cut.covers(file.seq, &file.phase, Some(&file.dispatch_id))
    });
    let mut of_path: BTreeMap<String, Vec<OutsideFile>> = BTreeMap::new();
    let is_left = |file: &OutsideFile| site.course.is_back() && step.detail.outside_left.contains(&file.path);
    for file in files.into_iter().filter(|file| file.is_changed() && !is_left(file)) {
        of_path.entry(file.path.clone()).or_default().push(file);
    }
    if of_path.is_empty() {
        return Ok(forced);
    }
    let is_forced = !site.course.is_back() && covered.force(site.force)?.files;
    let workspace = Workspace::of_run(site.kernel, &covered.run, site.settings)?;
    let mut changes = Vec::new();
    for (path, mut files) in of_path {
        // The calls come oldest first. An undo goes through them newest first, and a redo in their order.
        if !site.course.is_back() {
            files.reverse();
        }
        let place = (&workspace, Path::new(&path));
        let change = match (forced.get(&path).filter(|_| site.course.is_back()), files.first()) {
            (Some(stood), Some(first)) => unforce(site, place, &first.was, stood),
            _ => one(site, place, &files),
        };
        let stays = change.as_ref().is_some_and(OutsideChange::is_incomplete);
        // The list was reversed above, so its last call is the oldest: what was there before that call was there before
        // all of them.
        changes.extend(match files.last().filter(|_| stays && is_forced) {
            Some(oldest) => Some(force(site, step, place, &oldest.was, &mut forced)?),
            None => change,
        });
    }
    work.has_changed |= !site.is_dry() && changes.iter().any(|change| change.left.is_none());
    work.outside = changes;
    Ok(forced)
}

/// Replaces what others left at a path by `to`, or says why not. What stands there is kept, and the journal names it before it is replaced.
fn force(
    site: &Site<'_, '_>,
    step: &RollbackStep,
    (workspace, path): (&Workspace<'_>, &Path),
    to: &OutsideStanding,
    forced: &mut Forced,
) -> Result<OutsideChange> {
    let now = workspace.outside_now(path, to);
    let change = |left: Option<String>| OutsideChange { path: path.to_owned(), action: action(&now, to), left };
    let allowed = workspace.may_replace(path, &now, to).and_then(|()| workspace.may_keep_outside(path));
    let (Ok(()), Some(saga), Some(remembered)) = (&allowed, site.saga, site.covered.remembered()) else {
        return Ok(change(allowed.err()));
    };
    let stood = workspace.keep_outside(path)?;
    if let OutsideStanding::Unkept { reason, .. } = &stood {
        return Ok(change(Some(reason.clone())));
    }
    forced.insert(path.to_string_lossy().into_owned(), stood.clone());
    let detail = StepDetail { outside_forced: forced.clone(), ..step.detail.clone() };
    saga.write(|tx, now| steps::set(tx, now, &remembered.id, step.ord, StepEvent::Learns, Some(&detail)))?;
    Ok(change(workspace.replace_outside(path, &stood, to).err()))
}

/// Brings back what stood at a path before it was forced to be `from`.
fn unforce(
    site: &Site<'_, '_>,
    (workspace, path): (&Workspace<'_>, &Path),
    from: &OutsideStanding,
    to: &OutsideStanding,
) -> Option<OutsideChange> {
    let now = workspace.outside_now(path, to);
    // An earlier attempt restored it.
    if now.is_as(to) {
        return None;
    }
    let done = match (now.is_as(from), site.is_dry()) {
        (false, _) => Err("it was changed since".to_owned()),
        (true, true) => workspace.may_replace(path, &now, to),
        (true, false) => workspace.replace_outside(path, &now, to),
    };
    Some(OutsideChange { path: path.to_owned(), action: action(&now, to), left: done.err() })
}

/// The files that a rollback left as they are, though their content is missing something.
pub(super) fn left(work: &LayerWork) -> Vec<String> {
    let incomplete = work.outside.iter().filter(|change| change.is_incomplete());
    incomplete.map(|change| change.path.to_string_lossy().into_owned()).collect()
}

/// `files`: what calls did at the path, in the order in which it is undone or repeated. `None`: the path has the wanted state already.
fn one(site: &Site<'_, '_>, (workspace, path): (&Workspace<'_>, &Path), all: &[OutsideFile]) -> Option<OutsideChange> {
    //   was ── call 1 ──▶ became, was ── call 2 ──▶ became
    // An undo goes from right to left, a redo from left to right.
    let ends = |file: &OutsideFile| match (site.course.is_back(), file.became.clone()) {
        (false, became) => (became, Some(file.was.clone())),
        (true, became) => (Some(file.was.clone()), became),
    };
    let first = all.first()?;
    let like = first.became.as_ref().unwrap_or(&first.was);
    let now = workspace.outside_now(path, like);
    let left = |why: String, action| Some(OutsideChange { path: path.to_owned(), action, left: Some(why) });
    // Each call is checked against the state that the one before leads to, so a change by others between two calls is noticed.
    let mut to = now.clone();
    for file in all {
        let (from, into) = ends(file);
        match (from, into) {
            // An earlier attempt, or another hand, made this step already.
            (_, Some(into)) if to.is_as(&into) => {}
            (Some(from), Some(into)) if to.is_as(&from) => to = into,
            (Some(from @ OutsideStanding::Unkept { .. }), Some(into)) => {
                let why = [&from, &into].map(reason).into_iter().find(|why| !why.is_empty());
                return left(why.unwrap_or(NOT_KEPT).to_owned(), "modify");
            }
            (None, _) | (_, None) => return left("the end of the call was not told".to_owned(), "modify"),
            _ => return left("it was changed since".to_owned(), action(&now, &file.was)),
        }
    }
    if to.is_as(&now) {
        return None;
    }
    let action = action(&now, &to);
    if [&now, &to].iter().any(|one| matches!(one, OutsideStanding::Unkept { .. })) {
        let was = all.iter().flat_map(|file| [Some(&file.was), file.became.as_ref()]).flatten();
        return left(was.map(reason).find(|why| !why.is_empty()).unwrap_or(NOT_KEPT).to_owned(), action);
    }
    let done =
        if site.is_dry() { workspace.may_replace(path, &now, &to) } else { workspace.replace_outside(path, &now, &to) };
    Some(OutsideChange { path: path.to_owned(), action, left: done.err() })
}

/// Why no content of this state is kept; empty where it is.
fn reason(standing: &OutsideStanding) -> &str {
    match standing {
        OutsideStanding::Unkept { reason, .. } => reason,
        OutsideStanding::Absent { .. } | OutsideStanding::File { .. } => "",
    }
}

fn action(now: &OutsideStanding, to: &OutsideStanding) -> &'static str {
    match (now, to) {
        (OutsideStanding::Absent { .. }, _) => "create",
        (_, OutsideStanding::Absent { .. }) => "delete",
        _ => "modify",
    }
}
