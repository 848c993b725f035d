//! What a restore left, compared with its target: others may have worked in the tree since the plan was made.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{Result, shell_word};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::git::GitState;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::restore::plan::{Limits, RestoreNode, is_at_or_below};

use super::super::capture::Shot;
use super::super::git::GitRestore;
use super::super::workspace::Workspace;
use super::request::RestoreReport;

const BRANCHES: &[u8] = b"refs/heads/";

impl Workspace<'_> {
    /// What is not as the target has it now, after the restore, and why; what the report names already is not among it. Git's state is
    /// named `.git`.
    pub(super) fn differs(
        &self,
        report: &RestoreReport,
        limits: &Limits,
        now: &Shot,
    ) -> Result<Vec<(PathText, String)>> {
        let mut differs = Vec::new();
        if report.strategy.has_files() {
            self.files_that_differ(report, limits, now, &mut differs)?;
        }
        // Where git's state could not be restored, that is said already.
        let has_failed = report.failed.iter().any(|(path, _)| path.0 == b".git");
        if let Some((git, now)) = report.git.as_ref().zip(now.manifest.git.as_ref())
            && !has_failed
        {
            differs.extend(git_that_differs(git, now));
        }
        Ok(differs)
    }

    fn files_that_differ(
        &self,
        report: &RestoreReport,
        limits: &Limits,
        now: &Shot,
        differs: &mut Vec<(PathText, String)>,
    ) -> Result<()> {
        let plan = &report.plan;
        let is_named = |path: &[u8]| {
            let named = [&plan.skipped, &report.not_compared, &report.failed, &plan.not_kept];
            named.into_iter().flatten().any(|(named, _)| is_at_or_below(path, &named.0))
                || report.work_trees.iter().any(|(tree, _)| is_at_or_below(&tree.0, path))
                || report.conflicts.iter().any(|one| one.path.0 == path && limits.keep.contains(path))
        };
        // What one side left out cannot be compared, and neither can what lies below it. Of a new directory, only its own name is listed.
        let mut passed: Option<Vec<u8>> = None;
        diff::diff(&self.objects, Some(&now.captured.root), Some(&report.target.tree), &mut |difference| {
            let Difference { path, before, after } = difference;
            if passed.as_ref().is_some_and(|base| is_at_or_below(&path, base)) {
                return Ok(());
            }
            if [&before, &after].into_iter().flatten().any(|state| !state.is_content()) {
                passed = Some(path);
                return Ok(());
            }
            // Attributes that cannot come back are named by the plan.
            let node = |state: &Option<DiffState>| state.as_ref().and_then(RestoreNode::of).map(RestoreNode::plain);
            let (is, wanted) = (node(&before), node(&after));
            if path.is_empty() || is == wanted || !limits.covers(&path) || is_named(&path) {
                return Ok(());
            }
            let why = match (is, wanted) {
                (Some(_), None) => "it is there, and was not in the checkpoint",
                (None, _) => "it is not there, and is in the checkpoint",
                (Some(_), Some(_)) => "it differs from the checkpoint",
            };
            if after.is_none() {
                passed = Some(path.clone());
            }
            differs.push((PathText(path), why.to_owned()));
            Ok(())
        })
    }
}

/// The branches that stay where they are because another work tree uses them, and where the target has them: known before anything is
/// moved, and so when nothing is.
pub(super) fn left_to_others(git: &GitRestore) -> Vec<(PathText, String)> {
    let (here, wanted) = (branches(&git.current), branches(&git.target));
    // A branch is left to others where the state to restore has it where it is now, though the checkpoint has it elsewhere.
    let moved = branches_that_differ(&branches(&git.meant), &here, |name| wanted.get(name) == here.get(name));
    let branches = moved.into_iter().filter(|(_, is_left)| *is_left).map(|(why, _)| why);
    branches.chain(tags_that_differ(git, &git.target)).map(of_git).collect()
}

/// What was left to other work trees is among it.
fn git_that_differs(git: &GitRestore, now: &GitState) -> Vec<(PathText, String)> {
    let (wanted, here) = (branches(&git.target), branches(now));
    let moved = branches_that_differ(&branches(&git.meant), &here, |name| wanted.get(name) == here.get(name));
    let mut said: Vec<String> = moved.into_iter().map(|(why, _)| why).collect();
    said.extend(tags_that_differ(git, now));
    if !stand_alike(&git.target, now) {
        said.push(format!("HEAD is at {}, and was at {}", place(now), place(&git.target)));
    }
    let parts = [("index", git.target.index == now.index), ("stash", git.target.stash == now.stash)];
    said.extend(parts.iter().filter(|(_, is_same)| !is_same).map(|(part, _)| format!("the {part} is not as it was")));
    said.into_iter().map(of_git).collect()
}

/// Whether HEAD is on the same branch and commit.
pub(super) fn stand_alike(a: &GitState, b: &GitState) -> bool {
    (a.standing_on(), &a.head) == (b.standing_on(), &b.head)
}

/// Where HEAD is: its branch and commit.
pub(super) fn place(state: &GitState) -> String {
    match state.standing_on() {
        Some(branch) => format!("{branch} ({})", short(state.head.as_ref())),
        None => short(state.head.as_ref()),
    }
}

/// Tags that were there and are gone, or elsewhere.
fn tags_that_differ(git: &GitRestore, now: &GitState) -> Vec<String> {
    const TAGS: &[u8] = b"refs/tags/";
    let here: BTreeMap<&PathText, &String> = now.refs.iter().map(|(name, oid)| (name, oid)).collect();
    let mut said = Vec::new();
    for (name, was) in &git.meant.refs {
        let Some(tag) = name.0.strip_prefix(TAGS).filter(|_| here.get(name) != Some(&was)) else { continue };
        let is = here.get(name).map_or("gone".to_owned(), |oid| short(Some(oid)));
        let tag = String::from_utf8_lossy(tag);
        let way = if git.lost_tags.contains(&name.0) {
            "git has not what it named any more".to_owned()
        } else {
            format!("git tag -f {} {was}", shell_word(&tag))
        };
        said.push(format!("the tag {tag} is {is}, and was {was}: {way}"));
    }
    said
}

type Branches = BTreeMap<Vec<u8>, String>;

fn branches(state: &GitState) -> Branches {
    let all = state.refs.iter().filter(|(name, _)| name.0.starts_with(BRANCHES));
    all.map(|(name, oid)| (name.0.clone(), oid.clone())).collect()
}

/// How branches differ from what they were, each with whether it was left to another work tree.
fn branches_that_differ(then: &Branches, here: &Branches, is_left: impl Fn(&Vec<u8>) -> bool) -> Vec<(String, bool)> {
    let mut said = Vec::new();
    let names: BTreeSet<_> = then.keys().chain(here.keys()).collect();
    for name in names.into_iter().filter(|name| then.get(*name) != here.get(*name)) {
        let (was, is, is_left) = (then.get(name), here.get(name), is_left(name));
        let name = String::from_utf8_lossy(name.strip_prefix(BRANCHES).unwrap_or(name)).into_owned();
        let what = match (is_left, was) {
            (true, None) => format!("the branch {name} was created since, and stays"),
            (true, Some(_)) => {
                format!(
                    "the branch {name} is {}, and was {}: another work tree uses it, so it stays",
                    short(is),
                    short(was)
                )
            }
            (false, _) => format!("the branch {name} is {}, and was {}", short(is), short(was)),
        };
        said.push((what, is_left));
    }
    said
}

fn short(oid: Option<&String>) -> String {
    oid.map_or_else(|| "gone".to_owned(), |oid| oid.chars().take(8).collect())
}

fn of_git(why: String) -> (PathText, String) {
    (PathText(b".git".to_vec()), why)
}
