//! Checks, where an approved plan is carried out, that nothing more is undone than the plan says: others may have written since the fence.
//!
//! What the undo of effects has restored already is no difference: less than the plan may be done, but nothing else. A call that resumes a
//! rollback was told of the failure, and does what is there now.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::git::GitRestorePlan;
use ic_checkpoint::restore::plan::RestoreStep;
use ic_ledger::path_from_bytes;
use ic_worktree::RestoreReport;

use super::outcome::Data;

/// Errors: `plan_changed`, naming files, branches or commits that go back now and would not have.
pub(super) fn require_tree(seen: &RestoreReport, now: &RestoreReport) -> Result<()> {
    let known: BTreeSet<_> = seen.plan.steps.iter().map(|step| &step.path).collect();
    let steps = now.plan.steps.iter().filter(|step| !known.contains(&step.path));
    let mut more: Vec<String> = steps.map(|step| path_from_bytes(&step.path.0).display().to_string()).collect();
    if let Some(now) = &now.git {
        more.extend(more_of_git(seen.git.as_ref().map(|git| &git.plan), &now.plan));
    }
    let Some(first) = more.first() else { return Ok(()) };
    let others = match more.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Err(changed(&format!("{first}{others}")))
}

/// The paths that are to be restored now, and were not, or from another state.
pub(super) fn changed_since(seen: &RestoreReport, now: &RestoreReport) -> BTreeSet<Vec<u8>> {
    let known: BTreeMap<_, _> = seen.plan.steps.iter().map(|step| (&step.path, &step.before)).collect();
    let is_new = |step: &&RestoreStep| known.get(&step.path) != Some(&&step.before);
    now.plan.steps.iter().filter(is_new).map(|step| step.path.0.clone()).collect()
}

fn more_of_git(seen: Option<&GitRestorePlan>, now: &GitRestorePlan) -> Vec<String> {
    let known = |commit: &String| seen.is_some_and(|seen| seen.new_commits.contains(commit));
    let commits = now.new_commits.iter().filter(|commit| !known(commit));
    let mut more: Vec<String> = commits.map(|commit| format!("commit {}", &commit[..commit.len().min(8)])).collect();
    let is_known = |name: &[u8]| seen.is_some_and(|seen| seen.refs.iter().any(|moved| moved.name == name));
    let refs = now.refs.iter().filter(|moved| !is_known(&moved.name));
    more.extend(refs.map(|moved| String::from_utf8_lossy(&moved.name).into_owned()));
    let of = |part: fn(&GitRestorePlan) -> bool| part(now) && !seen.is_some_and(part);
    let parts = [("HEAD", of(|git| git.head)), ("the index", of(|git| git.index)), ("the stash", of(|git| git.stash))];
    more.extend(parts.into_iter().filter(|(_, is_more)| *is_more).map(|(name, _)| name.to_owned()));
    more
}

/// Errors: `plan_changed`, naming a table of which more rows go now.
pub(super) fn require_rows(seen: &Data, now: &Data) -> Result<()> {
    let known = |table: &str| seen.rows.iter().find(|(name, _)| name == table).map_or(0, |(_, rows)| *rows);
    match now.rows.iter().find(|(table, rows)| *rows > known(table)) {
        None => Ok(()),
        Some((table, rows)) => Err(changed(&format!("{rows} rows of {table} instead of {}", known(table)))),
    }
}

fn changed(what: &str) -> Diagnosis {
    Diagnosis::new(
        Code::PlanChanged,
        format!("the plan that was approved does not name {what}; resuming would undo that as well"),
    )
}
