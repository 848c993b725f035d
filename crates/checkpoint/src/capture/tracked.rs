//! What git tracks, asked of the `git` program.

use std::path::Path;
use std::process::{Command, Stdio};

/// The paths that git tracks in a work tree, from its top; `only` narrows it down (`-i --exclude-standard`).
///
/// Empty when git cannot be asked: the ignore rules then stand alone.
pub(crate) fn tracked(root: &Path, only: &[&str]) -> Vec<Vec<u8>> {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command.arg("-C").arg(root).args(["-c", "core.fsmonitor=false", "ls-files", "-z", "-c"]).args(only);
    command.env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null()).stderr(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => {
            output.stdout.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect()
        }
        _ => Vec::new(),
    }
}
