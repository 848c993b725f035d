//! What a target says of its files beside their content, in a plan and after it: owners, attributes, names of one file.

use std::cell::RefCell;

use ic_base::Result;
use ic_checkpoint::diff::{Difference, Finder};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::apply::ApplyOutcome;
use ic_checkpoint::restore::attribute_support::{Rights, attain};
use ic_checkpoint::restore::links::{Ties, tie};
use ic_checkpoint::restore::plan::{Limits, RestoreNode, RestorePlan};
use ic_checkpoint::tree::Groups;
use ic_ledger::events::Hash;

use super::super::capture::Shot;
use super::super::workspace::Workspace;

/// What of a target can come back.
#[derive(Default)]
pub(super) struct Attained {
    pub(super) differences: Vec<Difference>,
    /// What does not, by path.
    pub(super) lost: Vec<(PathText, String)>,
    /// The target's tree; `None` where files are not restored.
    pub(super) ties: Option<Hash>,
}

impl Workspace<'_> {
    /// What a restore with this strategy can make of the differences.
    pub(super) fn attain(
        differences: Vec<Difference>,
        limits: &Limits,
        shot: &Shot,
        target: &CheckpointRecord,
        strategy: Strategy,
    ) -> Attained {
        if !strategy.has_files() {
            return Attained::default();
        }
        let (differences, lost) = attain(differences, limits, &Rights::here(), shot.captured.owner);
        Attained { differences, lost, ties: Some(target.tree) }
    }

    /// Adds to a plan what makes names one file that are one in the target.
    pub(super) fn tie(&self, plan: &mut RestorePlan, limits: &Limits, shot: &Shot, target: &Hash) -> Result<()> {
        let now = &shot.captured.links;
        let wanted = self.objects.tree(target)?.links;
        if !now.is_empty() || !wanted.is_empty() {
            let finders = [&shot.captured.root, target].map(|tree| Finder::new(&self.objects, tree));
            let [is, becomes] = finders;
            // A finder moves as it looks, and the closures below only borrow it.
            let (is, becomes) = (RefCell::new(is?), RefCell::new(becomes?));
            // A directory that cannot be read was an error before: the differences are made of it.
            let look = |finder: &RefCell<Finder<'_>>, path: &[u8]| {
                finder.borrow_mut().find(path).ok().flatten().as_ref().and_then(RestoreNode::of)
            };
            let is = |path: &[u8]| look(&is, path);
            let becomes = |path: &[u8]| look(&becomes, path);
            let target = possible(wanted, &becomes);
            tie(plan, limits, &Ties { now, target: &target, is: &is, becomes: &becomes });
        }
        for path in &shot.captured.linked_outside {
            if plan.steps.iter().any(|step| step.path.0 == *path) {
                let what = "it is the same file as a name outside of the tree, which is not changed".to_owned();
                plan.not_kept.push((PathText(path.clone()), what));
            }
        }
        Ok(())
    }

    /// Names what should be one file after a restore and is not: a file system may not let a file have more names.
    pub(super) fn require_ties(plan: &RestorePlan, shot: &Shot, outcome: &mut ApplyOutcome) {
        let is_tied = |one: &PathText, other: &PathText| {
            shot.captured.links.iter().any(|group| group.contains(&one.0) && group.contains(&other.0))
        };
        for step in &plan.steps {
            let Some(other) = &step.link else { continue };
            let has_failed = outcome.failed.iter().any(|(path, _)| path == &step.path || path == other);
            if !has_failed && !is_tied(&step.path, other) {
                let what = format!("it was the same file as {}", String::from_utf8_lossy(&other.0));
                outcome.not_kept.push((step.path.clone(), what));
            }
        }
    }
}

/// Groups without names that cannot be one file with the first: a checkpoint may say anything.
fn possible(groups: Groups, becomes: &dyn Fn(&[u8]) -> Option<RestoreNode>) -> Groups {
    let keep = |group: Vec<Vec<u8>>| {
        let first =
            group.first().and_then(|path| becomes(path)).filter(|node| matches!(node, RestoreNode::File { .. }));
        let kept: Vec<Vec<u8>> = group.into_iter().filter(|path| first.is_some() && becomes(path) == first).collect();
        (kept.len() > 1).then_some(kept)
    };
    groups.into_iter().filter_map(keep).collect()
}
