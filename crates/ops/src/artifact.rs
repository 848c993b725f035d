//! Registering artifacts. Hashing a file is slow, so it happens before the transaction.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use ic_base::{Diagnose, Result};
use ic_runtrack::artifact::{self, Artifact, NewArtifact};
use sha2::{Digest, Sha256};

use crate::Kernel;

/// What is to be registered.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Where it lies, from the working directory or absolute.
    pub path: &'a Path,
    /// The phase it belongs to; `None`: the run's current one.
    pub phase: Option<&'a str>,
    /// What it is.
    pub kind: &'a str,
}

/// Registers an artifact of a run; an existing file gets its SHA-256.
///
/// Errors: `unknown_phase`, `run_not_active`, `rolling_back`, `stale_dispatch`; `permission_denied`, `io_error` if the file
/// exists and cannot be read.
pub fn add(kernel: &Kernel, reference: &str, request: &Request<'_>) -> Result<Artifact> {
    let id: ic_base::ArtifactId = kernel.context.new_id();
    let content_hash = hash_of_file(&kernel.project.directory.join(request.path))?;
    kernel.write(|tx, now| {
        let run = kernel.run(tx, reference)?;
        run.require_active()?;
        let phase = run.phase_or_current(request.phase)?;
        let dispatch_id = kernel.dispatch_in(tx, &run.id)?;
        let path = recorded_path(request.path, &kernel.project.directory, &run.project_dir);
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
    })
}

/// The SHA-256 of a regular file in hex; `None` if there is none at this path.
fn hash_of_file(path: &Path) -> Result<Option<String>> {
    let doing = || format!("reading {}", path.display());
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        _ => return Ok(None),
    }
    let mut file = File::open(path).while_doing(doing)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).while_doing(doing)? {
            0 => return Ok(Some(ic_events::hex(&digest.finalize().into()))),
            n => digest.update(&buffer[..n]),
        }
    }
}

/// The path as it is recorded: from the project's root if it lies inside, else absolute. Links are not followed.
pub(crate) fn recorded_path(path: &Path, directory: &Path, root: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in directory.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    match clean.strip_prefix(root) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.to_owned(),
        _ => clean,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::recorded_path;

    #[test]
    fn paths_are_recorded_from_the_root() {
        let recorded = |path: &str, directory: &str| {
            recorded_path(Path::new(path), Path::new(directory), Path::new("/p")).display().to_string()
        };
        assert_eq!(recorded("docs/a.md", "/p"), "docs/a.md");
        assert_eq!(recorded("./a.md", "/p/docs"), "docs/a.md");
        assert_eq!(recorded("../x/a.md", "/p/docs"), "x/a.md");
        assert_eq!(recorded("../../a.md", "/p/docs"), "/a.md");
        assert_eq!(recorded("/tmp/a.md", "/p"), "/tmp/a.md");
        assert_eq!(recorded("/p", "/p"), "/p");
    }
}
