//! What a dry run assumes about a tree that earlier restores of the same plan will have changed before it.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::Result;
use ic_checkpoint::diff::{self, Difference};
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_checkpoint::restore::journal::{self, RestoreRecord};
use ic_ledger::events::Hash;

use super::super::workspace::Workspace;
use super::kept_plan;

/// What a dry run knows of a tree that others will have changed by then.
#[derive(Default)]
pub(super) struct AsIf {
    /// These paths are not as they will be.
    paths: BTreeSet<Vec<u8>>,
    /// How the target will differ there.
    differences: Vec<Difference>,
}

impl AsIf {
    /// By then these paths are as the first tree has them; the target is the second.
    pub(super) fn of(workspace: &Workspace<'_>, paths: BTreeSet<Vec<u8>>, then: &Hash, target: &Hash) -> Result<Self> {
        let mut differences = differences(workspace, then, target)?;
        // Everywhere else the current tree is compared.
        differences.retain(|difference| paths.contains(&difference.path));
        Ok(Self { paths, differences })
    }

    /// The same; where nothing else was to be taken for granted, what an interrupted restore will leave once it is finished.
    pub(super) fn or_settled(self, workspace: &Workspace<'_>, target: &CheckpointRecord) -> Result<Self> {
        let unfinished = workspace.kernel.read(|snapshot| journal::unfinished(snapshot, &workspace.root))?;
        let Some(unfinished) = unfinished.filter(|_| self.paths.is_empty()) else { return Ok(self) };
        let then = workspace.kernel.read(|snapshot| record::get(snapshot, &unfinished.target_id))?;
        // Directories that it opened up to write into are closed again at its end.
        let closed = kept_plan::read_plan(workspace, &unfinished)?.closed.into_iter().map(|(path, _)| path.0);
        let mut paths = paths_of(workspace, std::slice::from_ref(&unfinished))?;
        paths.extend(closed);
        // What others changed since is left alone.
        let theirs = workspace.paths_of_theirs(&unfinished)?;
        paths.retain(|path| !theirs.contains(path));
        Self::of(workspace, paths, &then.tree, &target.tree)
    }

    /// Differences as they will be; a directory comes before what is in it.
    pub(super) fn instead_of(self, found: Vec<Difference>) -> Vec<Difference> {
        if self.paths.is_empty() {
            return found;
        }
        let as_now = found.into_iter().filter(|difference| !self.paths.contains(&difference.path));
        // Sorted by path, because a plan needs a directory before what lies in it.
        let by_path = as_now.chain(self.differences).map(|difference| (difference.path.clone(), difference));
        by_path.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}

/// How the second tree differs from the first.
pub(crate) fn differences(workspace: &Workspace<'_>, before: &Hash, after: &Hash) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    diff::diff(&workspace.objects, Some(before), Some(after), &mut |difference| {
        differences.push(difference);
        Ok(())
    })?;
    Ok(differences)
}

/// The paths that restores changed.
pub(super) fn paths_of(workspace: &Workspace<'_>, restores: &[RestoreRecord]) -> Result<BTreeSet<Vec<u8>>> {
    let mut paths = BTreeSet::new();
    for restore in restores {
        paths.extend(kept_plan::read_plan(workspace, restore)?.steps.into_iter().map(|step| step.path.0));
    }
    Ok(paths)
}
