//! Which differences between checkpoints are a piece of work's own, as far as that is known.

use std::collections::BTreeSet;

use ic_base::{DispatchId, Result};
use ic_checkpoint::diff::{self, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::{Dispatch, code};
use ic_kernel::journal::{Choices, PathDecisions};
use ic_ledger::{Snapshot, path_bytes, path_from_bytes};
use ic_session::attribution::{Attribution, OwnerDecisions, Window};
use ic_session::outside_files;
use ic_worktree::Workspace;

use super::others_commits::{MadeCommits, NOT_MADE, OthersCommits, add_after_commit};
use super::parcels::{CHANGED_ON_RETURN, Parcels, Returned, STASHED_BY_BOTH};
use super::skipped_files::{self, Differences};

/// The reason for a path that is shared by several: each of them was in a call as it changed.
const AT_ONCE: &str = "ran at the same time, and may have changed it";

/// The reason for a path that is unsure: a person may have changed it too.
pub(crate) const CUT_OFF: &str = "it changed in or after a tool call whose end was not told, so it may be yours";

/// The reason for a path that is unsure because nothing told what the work did, or that it ended.
const UNTOLD: &str = "it changed during work that tells no calls and was not completed, so it may be yours";

/// Whether a person may have changed a path, and can say so.
pub fn may_be_yours(reason: &str) -> bool {
    matches!(reason, CUT_OFF | UNTOLD | STASHED_BY_BOTH)
}

/// Whether the owner of a change of a path is unknown, so that a person can say that it is the work's.
pub(crate) fn is_unsure(reason: &str) -> bool {
    may_be_yours(reason)
        || [AT_ONCE, CHANGED_ON_RETURN].iter().any(|why| reason.ends_with(why))
        || reason.starts_with(NOT_MADE)
}

/// What was decided about changes whose owner is not known.
pub(crate) fn owners(choices: &Choices) -> OwnerDecisions {
    let paths = |all: &[PathText]| all.iter().map(|path| path.0.clone()).collect();
    let PathDecisions { take, leave } = &choices.paths;
    OwnerDecisions { take_all: choices.force.files, take: paths(take), leave: paths(leave) }
}

/// The commits that this work recorded, newest first.
pub(super) fn recorded_by(snapshot: &Snapshot<'_>, ids: &[DispatchId]) -> Result<Vec<String>> {
    let mut recorded = Vec::new();
    for own in ids.iter().rev() {
        recorded.extend(code::commits_of(snapshot, own)?.into_iter().rev().map(|commit| commit.sha));
    }
    Ok(recorded)
}

/// The differences between the checkpoints that are of the work, and what commits of others have of them. The commits of work whose client
/// reports calls are all on record: any other commit was pulled, or made by others. Of other work, all commits count that were made here.
pub(super) fn own_changes(
    workspace: &Workspace<'_>,
    (attribution, ids): (&Attribution, &[DispatchId]),
    recorded: &[String],
) -> Result<(Own, OthersCommits)> {
    // Without commits at first: which of them matter depends on the paths that the work changed.
    let changes = changes_of(workspace, attribution, ids, &OthersCommits::default())?;
    let mut others = OthersCommits::of(workspace, (attribution, ids), recorded, &changes.paths())?;
    others.parcels = Parcels::of(workspace, (attribution, ids), recorded)?;
    if !others.brought_any() && others.parcels.is_empty() {
        return Ok((changes, others));
    }
    Ok((changes_of(workspace, attribution, ids, &others)?, others))
}

/// The differences between the checkpoints that are of the work.
pub(super) fn changes_of(
    workspace: &Workspace<'_>,
    attribution: &Attribution,
    ids: &[DispatchId],
    by_others: &OthersCommits,
) -> Result<Own> {
    // Ignored files that a call named are kept, and restored, by themselves.
    let (named, recorded) = workspace.kernel.read(|snapshot| {
        let of_all = ids.iter().map(|id| outside_files::paths_of(snapshot, id)).collect::<Result<Vec<_>>>()?;
        let recorded = code::named_by(snapshot, ids.iter())?.into_iter().map(|file| path_bytes(&file.path).to_vec());
        Ok((of_all.into_iter().flatten().collect::<BTreeSet<_>>(), recorded.collect::<BTreeSet<_>>()))
    })?;
    let is_by_itself = |path: &[u8]| named.contains(&workspace.root.join(path_from_bytes(path)));
    let is_own = |work: &&Dispatch| ids.contains(&work.id);
    let mut changes = Own::default();
    let mut differences = Differences::new(workspace);
    for window in attribution.windows() {
        let found = differences.between(window.from, window.to)?;
        let is_its = |path: &[u8]| window.makers(path).iter().any(is_own);
        for difference in skipped_files::leave_hidden(workspace, found, is_its, &mut changes) {
            if skipped_files::is_ignored(&difference) && is_by_itself(&difference.path) {
                continue;
            }
            let makers = window.makers(&difference.path);
            let is_its = makers.iter().any(is_own);
            let is_sure = is_its && attribution.is_sure(&difference.path);
            let is_untold =
                is_its && makers.iter().any(|one| attribution.is_untold_of(one, &recorded, &difference.path));
            if is_untold && attribution.is_left(&difference.path) {
                changes.add_since(difference);
                continue;
            }
            let doubt = match difference.change() {
                Some(_) if window.is_unsure(&difference.path) => Some(CUT_OFF),
                Some(_) if is_untold => Some(UNTOLD),
                _ => None,
            };
            let others: Vec<&Dispatch> = makers.iter().filter(|one| !is_sure && !is_own(one)).copied().collect();
            match (is_its, others.as_slice()) {
                (true, []) if let Some(why) = doubt => changes.share(difference.path, why),
                (true, []) => add_own(&mut changes, by_others, (difference, is_sure)),
                (true, others) if difference.change().is_some() => {
                    let why = format!("{} {AT_ONCE}", names(others));
                    changes.share(difference.path, &why);
                }
                // A change of others that is undone by now does not count.
                (false, others) if !is_undone(&window, others) => {
                    let is_between_calls = makers.is_empty()
                        && !window.is_left(&difference.path)
                        && window.owners(&difference.path).iter().any(is_own);
                    if is_between_calls && difference.change().is_some() {
                        let why = "it changed between the tool calls of this work, so it may be yours";
                        changes.note(difference.path.clone(), why);
                    }
                    add_others(workspace, &mut changes, &by_others.parcels, (difference, attribution));
                }
                _ => {}
            }
        }
    }
    changes.sources = differences.sources;
    Ok(changes)
}

/// Adds a change of the work, but for what a commit of others brought of it.
fn add_own(changes: &mut Own, by_others: &OthersCommits, (difference, is_sure): (Difference, bool)) {
    match by_others.made(&difference.path, difference.after.as_ref()) {
        MadeCommits::Unsure(why) if !is_sure => changes.share(difference.path, why),
        MadeCommits::ByWork | MadeCommits::Unsure(_) => {
            if let Some(why) = skipped_files::unkept(&difference) {
                changes.leave_unkept(difference.path.clone(), why);
            }
            changes.add(difference);
        }
        MadeCommits::ByCommit => changes.add_since(difference),
        MadeCommits::AfterCommit(text) => add_after_commit(changes, difference, text),
    }
}

/// Adds what others did to the paths of the work after its last checkpoint.
pub(super) fn add_since(
    workspace: &Workspace<'_>,
    changes: &mut Own,
    since: &Attribution,
    parcels: &Parcels,
) -> Result<()> {
    for window in since.windows() {
        let trees = (Some(&window.from.tree), Some(&window.to.tree));
        diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
            if !is_undone(&window, &window.makers(&difference.path)) {
                add_others(workspace, changes, parcels, (difference, since));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Adds a change that the work did not make, with what git returned of the work in it.
pub(super) fn add_others(
    workspace: &Workspace<'_>,
    changes: &mut Own,
    parcels: &Parcels,
    (difference, attribution): (Difference, &Attribution),
) {
    let (parts, texts) = match parcels.returned(workspace, &difference, &[]) {
        Returned::Nothing => return changes.add_since(difference),
        Returned::Unsure(why, ..) if may_be_yours(why) && attribution.is_left(&difference.path) => {
            return changes.add_since(difference);
        }
        Returned::Unsure(why, ..) if !attribution.is_sure(&difference.path) => {
            return changes.share(difference.path, why);
        }
        Returned::Unsure(_, parts, texts) | Returned::Parts(parts, texts) => (parts, texts),
    };
    for text in texts {
        changes.add_text(text);
    }
    // No look shows it, and it may have another name by now.
    if difference.before.is_none() && difference.after.is_none() {
        changes.came_and_went(difference.path);
    }
    for (is_its, part) in parts {
        if is_its { changes.add(part) } else { changes.add_since(part) }
    }
}

/// Whether a change of these dispatches was undone; a change without a dispatch is a person's. Work from before the cut of the rollback
/// that covers it stands.
fn is_undone(window: &Window<'_>, owners: &[&Dispatch]) -> bool {
    let is_gone = |owner: &&Dispatch| owner.undone_from.is_some_and(|cut| window.is_after(cut));
    !owners.is_empty() && owners.iter().all(is_gone)
}

/// The names of these dispatches, for people.
fn names(others: &[&Dispatch]) -> String {
    let names = others.iter().map(|other| match &other.work.name {
        Some(name) => format!("{} ({})", ic_base::title(name), other.id.short()),
        None => other.id.short().to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}
