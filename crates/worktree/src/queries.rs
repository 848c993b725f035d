//! Looking at checkpoints.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::capture::{self, CaptureProgress};
use ic_checkpoint::diff::{self, DiffState, Difference, Finder};
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{self, CheckpointFilter, CheckpointRecord};
use ic_checkpoint::restore::plan::is_at_or_below;
use ic_checkpoint::retention;
use ic_ledger::events::Hash;
use ic_session::{Prompt, prompt_of_checkpoint};

use super::named_paths;
use super::workspace::{Which, Workspace, find, require_kept};

/// A checkpoint with what its row does not hold.
#[derive(Debug)]
pub struct ShownCheckpoint {
    /// The checkpoint as the ledger has it.
    pub checkpoint: CheckpointRecord,
    /// What the row does not hold; `None` if it was pruned.
    pub manifest: Option<CheckpointManifest>,
    /// The prompt that hooks took it for.
    pub prompt: Option<Prompt>,
}

/// Two trees that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// The older tree; `None`: an empty one, so that everything is new.
    pub before: Option<Hash>,
    /// The newer tree, which may be a look at the working tree.
    pub after: Hash,
}

/// What two checkpoints, or one and the tree, are compared by.
#[derive(Debug)]
pub struct ComparedTrees {
    /// The older checkpoint, or the only one.
    pub from: CheckpointRecord,
    /// The newer checkpoint; `None`: the current working tree.
    pub to: Option<CheckpointRecord>,
    /// The trees to compare, for [`changes_of`].
    pub changes: Changes,
    /// Paths that the caller named and neither has content of, and why.
    pub skipped: Vec<(Vec<u8>, String)>,
}

/// Shows a checkpoint. Errors: `checkpoint_not_found`, `corrupt`.
pub fn show(workspace: &Workspace<'_>, which: Which<'_>) -> Result<ShownCheckpoint> {
    let mut checkpoint = workspace.kernel.read(|snapshot| find(snapshot, &workspace.root, which))?;
    loop {
        let manifest = match checkpoint.pruned_at {
            None => CheckpointManifest::read(&workspace.objects, &checkpoint.manifest).map(Some),
            Some(_) => Ok(None),
        };
        let error = match manifest {
            Ok(manifest) => {
                let prompt = workspace.kernel.read(|snapshot| prompt_of_checkpoint(snapshot, &checkpoint))?;
                return Ok(ShownCheckpoint { checkpoint, manifest, prompt });
            }
            Err(error) => error,
        };
        // Nothing is locked here. A prune or purge changes the row before it removes the content, so a changed row explains the error.
        let now = workspace.kernel.read(|snapshot| record::get(snapshot, &checkpoint.id))?;
        if now.pruned_at == checkpoint.pruned_at && now.manifest == checkpoint.manifest {
            return Err(error);
        }
        checkpoint = now;
    }
}

/// Corrects the result of reading these checkpoints: if one was pruned during the read, nothing is damaged.
///
/// A reader may take any time, and must not keep others from pruning: it holds no lock. The row of a checkpoint is marked before its
/// content is removed, so missing content belongs to a marked row, or it is lost.
///
/// Errors: `checkpoint_not_found` instead of `corrupt` if one of them is pruned by now.
pub fn unless_pruned<T>(workspace: &Workspace<'_>, read: &[&CheckpointId], ended: Result<T>) -> Result<T> {
    if ended.as_ref().is_err_and(|error| error.code() == Code::Corrupt) {
        for id in read {
            require_kept(&workspace.kernel.read(|snapshot| record::get(snapshot, id))?)?;
        }
    }
    ended
}

/// Gives the wanted checkpoints to `visit`, oldest first, each with its manifest.
pub fn list(
    workspace: &Workspace<'_>,
    filter: CheckpointFilter<'_>,
    mut visit: impl FnMut(ShownCheckpoint) -> Result<ControlFlow<()>>,
) -> Result<()> {
    workspace.kernel.read(|snapshot| {
        record::list(snapshot, filter, |checkpoint| {
            let manifest = match checkpoint.pruned_at {
                // A damaged checkpoint must not hide the others: it is listed without its manifest, and `verify` names it.
                None => retention::readable(CheckpointManifest::read(&workspace.objects, &checkpoint.manifest))?,
                Some(_) => None,
            };
            let prompt = prompt_of_checkpoint(snapshot, &checkpoint)?;
            visit(ShownCheckpoint { checkpoint, manifest, prompt })
        })
    })
}

/// The roots that have checkpoints and are gone, and how many each has: a project that was moved has its own under the old name.
pub fn gone_roots(workspace: &Workspace<'_>) -> Result<Vec<(PathBuf, usize)>> {
    let mut roots = workspace.kernel.read(record::roots)?;
    roots.retain(|(root, _)| !root.is_dir());
    Ok(roots)
}

/// Gives every file, link and directory of a checkpoint to `visit`, in byte order.
pub fn changes_of(
    workspace: &Workspace<'_>,
    changes: Changes,
    visit: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<()> {
    diff::diff(&workspace.objects, changes.before.as_ref(), Some(&changes.after), visit)
}

/// The trees of two checkpoints; without `to`, the second is the current working tree. `paths`: the paths that the caller names, from the
/// root.
///
/// Errors: `checkpoint_not_found`, `path_not_found`, and those of a capture.
pub fn diff(
    workspace: &Workspace<'_>,
    from: Which<'_>,
    to: Option<Which<'_>>,
    paths: &[Vec<u8>],
    progress: &CaptureProgress,
) -> Result<ComparedTrees> {
    let root = workspace.root.as_path();
    // Looked up only under the lock: a prune while this waits for the lock removes content, and the row then says so.
    let _held = if to.is_none() { Some(workspace.lock(LockMode::Shared)?) } else { None };
    let (from, to) = workspace.kernel.read(|snapshot| {
        let from = find(snapshot, root, from)?;
        let to = to.map(|which| find(snapshot, root, which)).transpose()?;
        Ok((from, to))
    })?;
    require_kept(&from)?;
    let after = if let Some(to) = &to {
        require_kept(to)?;
        to.tree
    } else {
        require_same_root(workspace, &from)?;
        workspace.check_root()?;
        let now = workspace.kernel.context.now();
        capture::look(&workspace.objects, root, now, &workspace.options(), progress)?.root
    };
    // The error is kept for the check below: a checkpoint that was pruned during the look explains it.
    let passed = named_paths::passed_over(workspace, paths, &from.tree, &after);
    let read: Vec<&CheckpointId> = [&from].into_iter().chain(&to).map(|one| &one.id).collect();
    let skipped = unless_pruned(workspace, &read, passed)?;
    let changes = Changes { before: Some(from.tree), after };
    Ok(ComparedTrees { from, to, changes, skipped })
}

/// Writes the exact content of a file in a checkpoint into `sink`.
///
/// Errors: `path_not_found` if it has no file with this name, it was left out, or its content was purged; `corrupt`.
pub fn cat(workspace: &Workspace<'_>, which: Which<'_>, path: &Path, sink: &mut dyn Write) -> Result<()> {
    let checkpoint = workspace.kernel.read(|snapshot| find(snapshot, &workspace.root, which))?;
    require_kept(&checkpoint)?;
    unless_pruned(workspace, &[&checkpoint.id], content_of(workspace, &checkpoint, path, sink))
}

fn content_of(
    workspace: &Workspace<'_>,
    checkpoint: &CheckpointRecord,
    path: &Path,
    sink: &mut dyn Write,
) -> Result<()> {
    let bytes = path_in_root(workspace, path)?;
    // Older checkpoints hold files of other work trees: no restore brings them back, and this reads them.
    let state = Finder::unveiled(&workspace.objects, &checkpoint.tree)?.find(&bytes)?;
    let refuse = |what: &str| {
        Diagnosis::new(Code::PathNotFound, format!("{} {what} checkpoint {}.", path.display(), checkpoint.id.short()))
            .hint(format!("see what it holds: ic checkpoint show {} --files", checkpoint.id.short()))
            .detail("path", path.to_string_lossy().into_owned())
    };
    match state {
        Some(DiffState::File { hash, .. }) => match workspace.objects.read_to(&hash, sink) {
            // Asked for only now: a purge may have been faster than the reading.
            Err(_) if workspace.objects.is_purged(&hash)? => Err(content_is_gone(checkpoint, path)),
            read => read.map(|_| ()),
        },
        Some(DiffState::Symlink(target)) => {
            use ic_base::Diagnose;
            sink.write_all(&target).while_doing(|| "writing content".to_owned())
        }
        Some(DiffState::Directory { .. }) => Err(refuse("is a directory in")),
        Some(DiffState::Passed(reason)) => Err(refuse(&format!("was left out ({}) of", reason.as_str()))),
        None => Err(refuse("is not in")),
    }
}

fn content_is_gone(checkpoint: &CheckpointRecord, path: &Path) -> Diagnosis {
    let (path, id) = (path.display(), checkpoint.id.short());
    Diagnosis::new(
        Code::PathNotFound,
        format!("The content of {path} in checkpoint {id} is gone: it was purged, or lost."),
    )
    .hint("it cannot be restored; another checkpoint may have another content of it: ic checkpoint list")
    .detail("path", path.to_string())
}

/// Paths as checkpoints have them, from the root. Errors: `path_not_found` if one lies outside.
pub fn paths_in_root(workspace: &Workspace<'_>, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    paths.iter().map(|path| path_in_root(workspace, path)).collect()
}

/// Whether a path is one of these or lies below one; of no paths, every path is.
pub fn is_among(path: &[u8], paths: &[Vec<u8>]) -> bool {
    paths.is_empty() || paths.iter().any(|base| is_at_or_below(path, base))
}

/// A path as checkpoints have it, from the root; the caller's is from its directory.
pub fn path_in_root(workspace: &Workspace<'_>, path: &Path) -> Result<Vec<u8>> {
    let clean = crate::path::recorded_path(path, &workspace.kernel.project.directory, &workspace.root);
    if clean.is_relative() {
        return Ok(ic_ledger::path_bytes(&clean).to_vec());
    }
    if clean == workspace.root {
        return Ok(Vec::new());
    }
    Err(Diagnosis::new(Code::PathNotFound, format!("{} is not in {}.", path.display(), workspace.root.display()))
        .hint("give a path in the working tree"))
}

/// Errors: `foreign_root` if the checkpoint holds another working tree.
pub(crate) fn require_same_root(workspace: &Workspace<'_>, checkpoint: &CheckpointRecord) -> Result<()> {
    if checkpoint.root == workspace.root {
        return Ok(());
    }
    let hint = if checkpoint.root.is_dir() {
        format!("work there: ic -C {} ..., or give --into for this tree", checkpoint.root.display())
    } else {
        "that directory is gone; if it was moved here, give --into".to_owned()
    };
    Err(Diagnosis::new(
        Code::ForeignRoot,
        format!(
            "Checkpoint {} belongs to {}, not to {}.",
            checkpoint.id.short(),
            checkpoint.root.display(),
            workspace.root.display()
        ),
    )
    .hint(hint)
    .detail("root", checkpoint.root.to_string_lossy().into_owned()))
}
