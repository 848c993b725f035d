//! What a restore left, compared with its plan.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_checkpoint::attributes::missing;
use ic_checkpoint::diff::Finder;
use ic_checkpoint::restore::apply;
use ic_checkpoint::restore::plan::{RestoreNode, RestorePlan};

use super::super::capture::Shot;
use super::super::workspace::Workspace;

impl Workspace<'_> {
    /// Paths that the plan wrote and that the capture left out, because a rule hides them.
    pub(super) fn hidden(&self, plan: &RestorePlan, shot: &Shot) -> Result<BTreeSet<Vec<u8>>> {
        let mut hidden = BTreeSet::new();
        let mut finder = Finder::new(&self.objects, &shot.captured.root)?;
        for step in plan.steps.iter().filter(|step| step.after.is_some() && !step.path.0.is_empty()) {
            let found = finder.find(&step.path.0)?;
            if found.is_some_and(|state| !state.is_content()) {
                hidden.insert(step.path.0.clone());
            }
        }
        Ok(hidden)
    }

    /// Adds to the failures what does not stand in the tree as the plan has it.
    pub(super) fn verify(&self, plan: &RestorePlan, shot: &Shot, outcome: &mut apply::ApplyOutcome) -> Result<()> {
        let mut finder = Finder::new(&self.objects, &shot.captured.root)?;
        for step in &plan.steps {
            if outcome.failed.iter().any(|(path, _)| *path == step.path) || step.path.0.is_empty() {
                continue;
            }
            let found = finder.find(&step.path.0)?;
            // What a rule hides has no content to be compared with in this picture.
            let is_hidden = found.as_ref().is_some_and(|state| !state.is_content());
            let node = found.as_ref().and_then(RestoreNode::of);
            if is_hidden || node == step.after {
                continue;
            }
            let without = |node: &Option<RestoreNode>| node.clone().map(RestoreNode::plain);
            if without(&node) == without(&step.after) {
                let attributes = |node: &Option<RestoreNode>| node.as_ref().and_then(RestoreNode::attributes).cloned();
                if let Some((has, wanted)) = attributes(&node).zip(attributes(&step.after)) {
                    outcome.not_kept.push((step.path.clone(), missing(&wanted, &has)));
                }
            } else {
                // It was counted when it was written.
                outcome.done = outcome.done.saturating_sub(1);
                outcome.failed.push((step.path.clone(), "it is not as it should be after the restore".to_owned()));
            }
        }
        Ok(())
    }
}
