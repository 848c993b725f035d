//! Which paths of the tree the effects of a rollback may have changed.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_checkpoint::diff::DiffState;
use ic_effects::action::{CompensatedFile, EffectBefore};
use ic_effects::{Compensation, EffectAction, compensation};
use ic_kernel::journal::table::RollbackRecord;
use ic_worktree::Workspace;

use super::others_commits::OthersCommits;
use super::own_changes::changes_of;
use super::span::WorkSpan;

/// The paths of the tree that the effects of a rollback may have changed.
pub(crate) struct WorkReach {
    /// Of an undo of works, the paths that they changed.
    paths: BTreeSet<Vec<u8>>,
    /// The files that its effects restore by themselves.
    files: Vec<CompensatedFile>,
}

impl WorkReach {
    pub(crate) fn of(workspace: &Workspace<'_>, undo: &RollbackRecord) -> Result<Self> {
        let work = undo.works();
        // A cut covers all that was done after it, so each effect of its run counts.
        let is_its =
            |one: &Compensation| work.is_empty() || one.dispatch_id.as_ref().is_some_and(|id| work.contains(id));
        let (found, effects) = workspace.kernel.read(|snapshot| {
            let effects = compensation::list(snapshot, &undo.run_id)?;
            // Where checkpoints are pruned, the work cannot be told from that of others.
            let span = WorkSpan::of(snapshot, &workspace.root, &work).ok();
            Ok((span.map(|span| span.attribution(snapshot, &workspace.root)).transpose()?, effects))
        })?;
        let changes = found.map(|found| changes_of(workspace, &found, &work, &OthersCommits::default())).transpose()?;
        let files = effects.iter().filter(|one| is_its(one)).filter_map(restored_files).flatten().cloned().collect();
        Ok(Self { paths: changes.map(|changes| changes.paths()).unwrap_or_default(), files })
    }

    /// The files that the effects restore by themselves.
    pub(crate) fn files(&self) -> BTreeSet<Vec<u8>> {
        self.files.iter().map(|file| file.path.0.clone()).collect()
    }

    /// Whether a path is of the work, or a file that its effects restore.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.paths.contains(path) || self.files.iter().any(|file| file.path.0 == path)
    }

    /// Whether this is a file that effects restore, and it has the restored content.
    pub(crate) fn is_restored(&self, path: &[u8], is: Option<&DiffState>) -> bool {
        let is_as = |before: &EffectBefore| match (before, is) {
            (EffectBefore::Absent, None) => true,
            (EffectBefore::File { hash, .. }, Some(DiffState::File { hash: is, .. })) => hash == is,
            (EffectBefore::Symlink { target }, Some(DiffState::Symlink(is))) => target.0 == *is,
            _ => false,
        };
        self.files.iter().any(|file| file.path.0 == path && is_as(&file.before))
    }
}

/// The files that undoing these effects restores by itself.
pub(crate) fn files_of<'c>(effects: impl Iterator<Item = &'c Compensation>) -> BTreeSet<Vec<u8>> {
    let files = effects.filter_map(restored_files).flatten();
    files.map(|file| file.path.0.clone()).collect()
}

fn restored_files(effect: &Compensation) -> Option<&Vec<CompensatedFile>> {
    match &effect.action {
        EffectAction::RestoreFiles { files } => Some(files),
        _ => None,
    }
}
