//! Files outside of the project that tool calls named: what the covered calls did to them is reverted, or made again.
//!
//! Nothing is journaled but the calls themselves: both states of a file are in the store before its row is. A file that has one of the two
//! states gets the other, so the step can be repeated after its process died.

use std::collections::BTreeMap;
use std::path::Path;

use ic_base::Result;
use ic_kernel::journal::{Course, LayerName};
use ic_session::outside_files::{self, OutsideFile, OutsideStanding};
use ic_worktree::Workspace;
use serde_json::Value;

use super::super::layer::{LayerWork, Site};
use crate::outside_change::OutsideChange;

const NOT_KEPT: &str = "no content of it is kept";

/// The member of a tree step's detail that names the files which the rollback left as they were.
pub(super) const LEFT: &str = "outside_left";

/// Reverts or repeats the changes of the calls that a rollback covers, or says what that would do. `detail`: what the journal has of the
/// step. A file that the rollback left is left by its undo, too.
pub(super) fn go(site: &Site<'_, '_>, course: Course, detail: &Value, work: &mut LayerWork) -> Result<()> {
    let covered = site.covered;
    if !covered.layers.contains(&LayerName::Files) {
        return Ok(());
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
    let left = detail[LEFT].as_array().filter(|_| course.is_back());
    let is_left = |file: &OutsideFile| left.is_some_and(|left| left.iter().any(|path| *path == *file.path));
    for file in files.into_iter().filter(|file| file.is_changed() && !is_left(file)) {
        of_path.entry(file.path.clone()).or_default().push(file);
    }
    if of_path.is_empty() {
        return Ok(());
    }
    let workspace = Workspace::of_run(site.kernel, &covered.run, site.settings)?;
    let mut changes = Vec::new();
    for (path, mut files) in of_path {
        if !course.is_back() {
            files.reverse();
        }
        changes.extend(one(site, &workspace, Path::new(&path), &files, course));
    }
    work.has_changed |= !site.is_dry() && changes.iter().any(|change| change.left.is_none());
    work.outside = changes;
    Ok(())
}

/// The files that a rollback left as they are, though their content is missing something.
pub(super) fn left(work: &LayerWork) -> Vec<String> {
    let incomplete = work.outside.iter().filter(|change| change.is_incomplete());
    incomplete.map(|change| change.path.to_string_lossy().into_owned()).collect()
}

/// `files`: what calls did at the path, in the order in which it is undone or repeated. `None`: the path has the wanted state already.
fn one(
    site: &Site<'_, '_>,
    workspace: &Workspace<'_>,
    path: &Path,
    files: &[OutsideFile],
    course: Course,
) -> Option<OutsideChange> {
    let ends = |file: &OutsideFile| match (course.is_back(), file.became.clone()) {
        (false, became) => (became, Some(file.was.clone())),
        (true, became) => (Some(file.was.clone()), became),
    };
    let first = files.first()?;
    let like = first.became.as_ref().unwrap_or(&first.was);
    let now = workspace.outside_now(path, like);
    let left = |why: String, action| Some(OutsideChange { path: path.to_owned(), action, left: Some(why) });
    // Each call is checked against the state that the one before leads to, so a change by others between two calls is noticed.
    let mut to = now.clone();
    for file in files {
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
        let was = files.iter().flat_map(|file| [Some(&file.was), file.became.as_ref()]).flatten();
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
