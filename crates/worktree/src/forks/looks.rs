//! Looks at a work tree and at its forks.

use ic_base::Result;
use ic_checkpoint::capture::{CaptureProgress, join};
use ic_checkpoint::diff;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_checkpoint::tree::{Reason, TreeNode};
use ic_ledger::events::Hash;

use super::super::capture::{GitPart, Purpose};
use super::super::workspace::{Workspace, require_kept};
use super::fork::Fork;

impl Workspace<'_> {
    /// Takes a picture of the tree, durable and recorded. One with a name is kept as those that people take.
    ///
    /// Errors: those of a capture.
    pub fn record_look(&self, name: Option<&str>) -> Result<CheckpointRecord> {
        let _held = self.lock(LockMode::Exclusive)?;
        let kind = if name.is_some() { CheckpointKind::Manual } else { CheckpointKind::Auto };
        let link = CheckpointLink { name: name.map(str::to_owned), ..CheckpointLink::default() };
        let shot = self.shoot(Purpose::new(kind, link), &CaptureProgress::default())?;
        self.kernel.write(|tx, now| shot.record(tx, now, None))
    }

    /// The present tree; no row is written. `keeps`: its content is stored, to be merged; else it can only be compared, and only by this
    /// workspace.
    pub(super) fn tree_now(&self, keeps: bool) -> Result<Hash> {
        let _held = self.lock(LockMode::Shared)?;
        let git = if keeps { GitPart::FilesAlone } else { GitPart::Nothing };
        let purpose = Purpose { git, ..Purpose::new(CheckpointKind::Auto, CheckpointLink::default()) };
        Ok(self.shoot(purpose, &CaptureProgress::default())?.captured.root)
    }

    /// The files that a fork changed since it began, and how; nothing is written. `self`: the workspace of the fork.
    ///
    /// Errors: those of a capture; an unfinished fork has changed nothing.
    pub fn changed_in_fork(&self, fork: &Fork) -> Result<Vec<(Vec<u8>, diff::TreeChange)>> {
        let Some(base) = &fork.base else { return Ok(Vec::new()) };
        require_kept(base)?;
        let now = self.tree_now(false)?;
        let mut files = Vec::new();
        diff::diff(&self.objects, Some(&base.tree), Some(&now), &mut |difference| {
            if !difference.is_of_directory() {
                files.extend(difference.change().map(|change| (difference.path.clone(), change)));
            }
            Ok(())
        })?;
        Ok(files)
    }

    /// The paths of a captured tree whose content is in no checkpoint for such a reason, from its root.
    pub(super) fn left_out(&self, tree: &Hash, is_meant: impl Fn(&[u8], Reason) -> bool) -> Result<Vec<Vec<u8>>> {
        let passed = self.passed(tree)?.into_iter();
        Ok(passed.filter(|(path, reason)| is_meant(path, *reason)).map(|(path, _)| path).collect())
    }

    /// What a captured tree left out, and why, in the order of paths.
    pub(crate) fn passed(&self, tree: &Hash) -> Result<Vec<(Vec<u8>, Reason)>> {
        let (mut passed, mut waiting) = (Vec::new(), vec![(Vec::new(), *tree)]);
        while let Some((path, hash)) = waiting.pop() {
            for entry in self.objects.tree(&hash)?.entries {
                let path = join(&path, &entry.name);
                match entry.node {
                    TreeNode::Directory(below) => waiting.push((path, below)),
                    TreeNode::Passed(reason) => passed.push((path, reason)),
                    _ => {}
                }
            }
        }
        passed.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(passed)
    }
}
