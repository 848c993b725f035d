//! Other work trees, as a checkpoint and the report of a restore name them: each is a place of its own, and is not changed.

use std::collections::BTreeSet;

use ic_base::{Result, shell_word};
use ic_checkpoint::capture::Captured;
use ic_checkpoint::diff::Finder;
use ic_checkpoint::manifest::{CheckpointManifest, PathText};
use ic_checkpoint::nested_work_trees::Places;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::{Limits, is_at_or_below};
use ic_ledger::path_from_bytes;

use super::forks::name_at;
use super::workspace::Workspace;

impl Workspace<'_> {
    /// The other work trees that a picture found, or that the repository has on record and are there or locked.
    pub(super) fn work_trees(&self, captured: &Captured) -> Vec<PathText> {
        let places = self.objects.places().unwrap_or_default();
        let all: BTreeSet<&Vec<u8>> = captured.work_trees.iter().chain(places.standing()).collect();
        all.into_iter().cloned().map(PathText).collect()
    }

    /// The other work trees that a restore of `target` leaves alone though there is a difference: made or removed since, or held by
    /// a checkpoint from before it became a work tree. Each with what is to be known of it.
    pub(super) fn left_work_trees(
        &self,
        target: &CheckpointRecord,
        captured: &Captured,
        (limits, is_without): (&Limits, bool),
    ) -> Result<Vec<(PathText, String)>> {
        let places = self.objects.places().unwrap_or_default();
        let then = CheckpointManifest::read(&self.objects, &target.manifest)?.work_trees;
        let now: BTreeSet<PathText> = self.work_trees(captured).into_iter().collect();
        let registered = places.registered().iter().cloned().map(PathText);
        let all: BTreeSet<PathText> = now.iter().cloned().chain(registered).chain(then.iter().cloned()).collect();
        // Unveiled: an ordinary finder hides what a checkpoint holds of a directory that is another work tree now.
        let mut finder = Finder::unveiled(&self.objects, &target.tree)?;
        let mut left = Vec::new();
        for path in all.into_iter().filter(|path| concerns(limits, is_without, &path.0)) {
            // One that lies elsewhere has its whole path, and no checkpoint holds it.
            let is_below = !path.0.starts_with(b"/");
            let held = if is_below { finder.find(&path.0)? } else { None };
            let was = if held.is_some_and(|state| state.is_content()) {
                Then::Held
            } else if then.contains(&path) {
                Then::WorkTree
            } else {
                Then::Nothing
            };
            if let Some(why) = why(&places, (target, &path), now.contains(&path), was) {
                left.push((path, why));
            }
        }
        Ok(left)
    }
}

/// What was at the path of another work tree when a checkpoint was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    WorkTree,
    /// Files, which the checkpoint holds.
    Held,
    Nothing,
}

/// Whether a restore that is limited so would say anything of a path.
fn concerns(limits: &Limits, is_without: bool, path: &[u8]) -> bool {
    let is_near = |one: &Vec<u8>| is_at_or_below(path, one) || is_at_or_below(one, path);
    let is_written = |only: &BTreeSet<Vec<u8>>| only.iter().any(|one| is_at_or_below(one, path));
    (limits.paths.is_empty() || limits.paths.iter().any(is_near))
        && (is_without || limits.only.as_ref().is_none_or(is_written))
}

/// What is to be known of a work tree that is there now or was there then; `None`: there is no difference.
fn why(places: &Places, (target, path): (&CheckpointRecord, &PathText), is_now: bool, was: Then) -> Option<String> {
    let id = target.id.short();
    let full = places.root().join(path_from_bytes(&path.0));
    let shown = shell_word(&full.to_string_lossy());
    let is_there = full.is_dir();
    let fork = name_at(places.root(), &full);
    let way_out = fork
        .as_ref()
        .map_or_else(|| format!("git worktree remove {shown}"), |name| format!("ic drop {}", shell_word(name)));
    let why = match (is_now, was) {
        (true, Then::WorkTree) | (false, Then::Nothing) => return None,
        // The directory is gone, and only git's record of it is left: nothing to report.
        (true, Then::Nothing) if !is_there => return None,
        (true, Then::Nothing) => {
            format!("a work tree that was made since: a place of its own, which stays; to remove it: {way_out}")
        }
        (_, Then::Held) => format!(
            "a work tree, which is a place of its own: what the checkpoint holds of it is not restored; to read a file of it: ic checkpoint cat {id} PATH; what was done there: ic -C {shown} log"
        ),
        (false, Then::WorkTree) if is_there => {
            "it was a work tree then and is none now: what is there stays".to_owned()
        }
        (false, Then::WorkTree) if fork.is_some() => format!(
            "a fork that was dropped since: it does not come back with this one; its last state: ic checkpoint list --root {shown}"
        ),
        (false, Then::WorkTree) => format!(
            "a work tree that was removed since: a place of its own, which does not come back with this one; to make it again: git worktree add {shown} BRANCH"
        ),
    };
    Some(why)
}
