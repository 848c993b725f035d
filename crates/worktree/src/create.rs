//! Taking a checkpoint on request, of a person or of a hook.

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::git;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_phase::Run;

use super::capture::Purpose;
use super::retention;
use super::workspace::{CaptureSettings, Warning, Workspace, root_of};
use crate::database_mark::Marked;

/// What is to be taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckpointRequest<'a> {
    /// The run it belongs to.
    pub run: Option<&'a str>,
    /// What it is called.
    pub name: Option<&'a str>,
    /// The message that it is taken for.
    pub message: Option<&'a str>,
    /// The conversation it belongs to.
    pub conversation: Option<&'a str>,
    /// A hook took it, not a person: retention may prune it.
    pub is_auto: bool,
    /// The work before it has ended: later changes are not that work's.
    pub is_settled: bool,
}

/// A checkpoint that was taken.
#[derive(Debug)]
pub struct CreatedCheckpoint {
    /// The checkpoint as the ledger has it.
    pub checkpoint: CheckpointRecord,
    /// What the row does not hold.
    pub manifest: CheckpointManifest,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// Takes a checkpoint of the run's working tree, else of the caller's.
///
/// Errors: `unsafe_root`, `tree_too_large`, `run_not_found`, `stale_dispatch`, `disk_full`, `busy`: nothing is recorded.
pub fn create(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &CheckpointRequest<'_>,
    progress: &CaptureProgress,
) -> Result<CreatedCheckpoint> {
    let (link, run) = kernel.read(|snapshot| link(kernel, snapshot, request))?;
    let workspace = match &run {
        Some(run) => Workspace::of_run(kernel, run, settings)?,
        None => Workspace::here(kernel, settings)?,
    };
    // Held until the row is committed: no restore runs in the tree, and no sweep takes content that no row
    // names yet.
    let held = workspace.lock(LockMode::Exclusive)?;
    let kind = if request.is_auto { CheckpointKind::Auto } else { CheckpointKind::Manual };
    let purpose = Purpose { settled: request.is_settled, ..Purpose::new(kind, link) };
    let shot = workspace.shoot(purpose, progress)?;
    let epoch = run.as_ref().map(|run| run.epoch);
    // A checkpoint of a run is a point of it, and rows go back with a run as files do.
    let own = run.as_ref().filter(|run| root_of(&run.project_dir) == workspace.root);
    let marked = own.map_or_else(Marked::nothing, |_| Marked::look(settings));
    let checkpoint = kernel.write(|tx, now| {
        let checkpoint = shot.record(tx, now, epoch)?;
        if let Some(run) = own {
            marked.record(tx, checkpoint.seq, &run.id)?;
        }
        Ok(checkpoint)
    })?;
    // If a restore was interrupted here, the capture has a half-restored tree: the caller is told.
    let note = super::restore::settle_note(&workspace)?;
    // Released before retention runs, which needs the store alone.
    drop(held);
    let mut warnings = shot.warnings;
    warnings.extend(note);
    warnings.extend(marked.warning);
    warnings.extend(not_whole(&workspace, &shot.manifest));
    warnings.extend(retention::tidy(kernel, settings, &workspace.root));
    Ok(CreatedCheckpoint { checkpoint, manifest: shot.manifest, warnings })
}

/// A warning of what a restore of this checkpoint will refuse: better said while the caller can still take another one.
fn not_whole(workspace: &Workspace<'_>, manifest: &CheckpointManifest) -> Option<Warning> {
    let git = manifest.git.as_ref()?;
    let refused = match &git.operation {
        Some(operation) => {
            format!("a {operation} is in progress: a restore of this checkpoint refuses git's state")
        }
        None if git::is_sparse(&workspace.root) => {
            "the checkout is sparse: a restore of this checkpoint refuses to change git's index".to_owned()
        }
        None => return None,
    };
    let message = format!("{refused}; --strategy files-only restores its files alone");
    Some(Warning { code: "git_not_restorable", message })
}

/// What the checkpoint belongs to: the run that was named, else that of the calling dispatch.
fn link(
    kernel: &Kernel,
    snapshot: &Snapshot<'_>,
    request: &CheckpointRequest<'_>,
) -> Result<(CheckpointLink, Option<Run>)> {
    let dispatch = kernel.calling_dispatch(snapshot)?;
    let run = match (request.run, &dispatch) {
        (Some(reference), _) => Some(kernel.run(snapshot, reference)?),
        (None, Some(dispatch)) => Some(ic_phase::run::get(snapshot, &dispatch.run_id)?),
        (None, None) => None,
    };
    let dispatch_id = match &run {
        Some(run) => kernel.dispatch_in(snapshot, &run.id)?,
        None => None,
    };
    if let Some(run) = &run
        && request.conversation.is_none()
        && !root_of(&run.project_dir).is_dir()
    {
        return Err(Diagnosis::new(
            Code::InvalidValue,
            format!("The project of the run is gone: {} is not a directory.", run.project_dir.display()),
        ));
    }
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let link = CheckpointLink {
        name: owned(request.name),
        message: owned(request.message),
        conversation: owned(request.conversation),
        run_id: run.as_ref().map(|run| run.id.clone()),
        phase: run.as_ref().map(|run| run.phase.clone()),
        dispatch_id,
        ..CheckpointLink::default()
    };
    Ok((link, run))
}
