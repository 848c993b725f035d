//! Registering artifacts. Hashing a file is slow, so it happens before the transaction.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_checkpoint::lock::{self, Lock, LockMode};
use ic_runtrack::artifact::{self, Artifact, NewArtifact};
use sha2::{Digest, Sha256};

use ic_kernel::Kernel;
use ic_worktree::{CaptureSettings, Warning, Workspace, recorded_path};

/// What is to be registered.
#[derive(Debug, Clone, Copy)]
pub struct ArtifactRequest<'a> {
    /// Where it lies, from the working directory or absolute.
    pub path: &'a Path,
    /// The phase it belongs to; `None`: the run's current one.
    pub phase: Option<&'a str>,
    /// The kind of artifact, as the caller names it.
    pub kind: &'a str,
}

/// An artifact that was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The artifact as it was recorded.
    pub artifact: Artifact,
    /// Whether its content is kept, so that [`cat`] shows it when the file has changed.
    pub is_kept: bool,
    /// That its file does not exist, or that it is too large to be kept.
    pub warnings: Vec<Warning>,
}

/// Registers an artifact of a run; an existing file gets its SHA-256, and with `keep` its content is kept, if it is no larger
/// than checkpoints take files.
///
/// Errors: `unknown_phase`, `run_not_active`, `rolling_back`, `stale_dispatch`; `permission_denied`, `io_error` if the file
/// exists and cannot be read.
pub fn add(
    kernel: &Kernel,
    reference: &str,
    request: &ArtifactRequest<'_>,
    keep: Option<&CaptureSettings>,
) -> Result<Added> {
    let id: ic_base::ArtifactId = kernel.context.new_id();
    let path = kernel.project.directory.join(request.path);
    let is_kept = |settings: &&CaptureSettings| {
        std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= settings.checkpointing.max_file_size)
    };
    let mut is_content_kept = false;
    // The lock is held until the row is committed: a sweep before that would remove content that no row needs yet.
    // The locks are taken in the order of all locks: that of the store, and then, in the transaction below, that of the
    // ledger. `_lock` lives to the end of this function. A plain `_` would release it here.
    let (content_hash, _lock) = match keep.filter(is_kept) {
        Some(settings) => {
            let (hash, lock) = keep_content(kernel, settings, &path)?;
            is_content_kept = hash.is_some();
            // What was purged is named as what it is, and not kept again.
            let hash = hash.map_or_else(|| hash_of_file(&path), |hash| Ok(Some(hash)))?;
            (hash, Some(lock))
        }
        None => (hash_of_file(&path)?, None),
    };
    let warnings = warnings(request.path, &path, keep);
    let artifact = kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        run.require_active()?;
        let phase = run.phase_or_current(request.phase)?;
        let dispatch_id = kernel.dispatch_in(tx, &run.id)?;
        // The path is recorded from the project of the run, which may be another directory than the caller's. It is known only here.
        let path = if artifact::is_address(request.path) {
            request.path.to_owned()
        } else {
            recorded_path(request.path, &kernel.project.directory, &run.project_dir)
        };
        let new = NewArtifact {
            id: id.clone(),
            run_id: &run.id,
            epoch: run.epoch,
            phase: &phase,
            path: &path,
            kind: request.kind,
            content_hash: content_hash.as_deref(),
            dispatch_id: dispatch_id.as_ref(),
        };
        artifact::add(tx, now, &new)
    })?;
    Ok(Added { artifact, is_kept: is_content_kept, warnings })
}

/// What the caller would not expect of an artifact: no file is there, or its content is not kept although others' is.
fn warnings(named: &Path, path: &Path, keep: Option<&CaptureSettings>) -> Vec<Warning> {
    let shown = named.display();
    if artifact::is_address(named) {
        return Vec::new();
    }
    match (std::fs::metadata(path), keep) {
        (Err(e), _) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            vec![Warning {
                code: "artifact_missing",
                message: format!("{shown} does not exist: no gate counts it until it does."),
            }]
        }
        (Ok(meta), Some(settings)) if meta.is_file() && meta.len() > settings.checkpointing.max_file_size => {
            vec![Warning {
                code: "content_not_kept",
                message: format!(
                    "{shown} has {} bytes, and max-file-size is {}: its hash is recorded, and its content is not kept.",
                    meta.len(),
                    settings.checkpointing.max_file_size
                ),
            }]
        }
        _ => Vec::new(),
    }
}

/// Writes the content that an artifact was registered with into `sink`.
///
/// Errors: `artifact_not_found`; `path_not_found` if it was no file, or too large to be kept; `corrupt`.
pub fn cat(kernel: &Kernel, settings: &CaptureSettings, reference: &str, sink: &mut dyn Write) -> Result<()> {
    let artifact = kernel.read(|snapshot| artifact::resolve(snapshot, reference))?;
    let workspace = Workspace::here(kernel, settings)?;
    let hash = artifact.content_hash.as_deref().and_then(ic_ledger::events::parse_hex);
    match hash {
        Some(hash) if workspace.objects.has(&hash)? => workspace.objects.read_to(&hash, sink).map(|_| ()),
        Some(hash) if workspace.objects.is_purged(&hash)? => Err(Diagnosis::new(
            Code::PathNotFound,
            format!(
                "The content of artifact {} ({}) is gone: it was purged, or lost.",
                artifact.id.short(),
                artifact.path.display()
            ),
        )
        .hint("it cannot be restored")
        .detail("artifact_id", artifact.id.as_str())),
        _ => Err(Diagnosis::new(
            Code::PathNotFound,
            format!("The content of artifact {} ({}) was not kept.", artifact.id.short(), artifact.path.display()),
        )
        .hint("only files of at most max-file-size are kept, from when checkpoints are enabled")
        .detail("artifact_id", artifact.id.as_str())),
    }
}

/// Keeps the content of a file; nothing is swept while the lock lives. `None` for what was purged.
fn keep_content(kernel: &Kernel, settings: &CaptureSettings, path: &Path) -> Result<(Option<String>, Lock)> {
    let workspace = Workspace::here(kernel, settings)?;
    let lock = lock::store(workspace.objects.path(), LockMode::Shared, settings.busy_timeout)?;
    let mut file = File::open(path).while_doing(|| format!("reading {}", path.display()))?;
    let writer = workspace.objects.writer(kernel.context.now())?;
    let kept = writer.put_file(&mut file)?;
    // The writer is finished before the row is written: at any crash the ledger names only content that is durable.
    writer.finish()?;
    Ok((kept.map(|(hash, _)| ic_ledger::events::hex(&hash)), lock))
}

/// The SHA-256 of a regular file in hex; `None` if there is none at this path.
fn hash_of_file(path: &Path) -> Result<Option<String>> {
    let doing = || format!("reading {}", path.display());
    // The path is looked at before it is opened: a directory is an artifact without content, and opening a pipe would
    // wait.
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        _ => return Ok(None),
    }
    let mut file = File::open(path).while_doing(doing)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).while_doing(doing)? {
            0 => return Ok(Some(ic_ledger::events::hex(&digest.finalize().into()))),
            n => digest.update(&buffer[..n]),
        }
    }
}
