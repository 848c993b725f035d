//! Files that tool calls name and no capture has: each is kept by itself as the call begins and as it ends.

use std::path::{Path, PathBuf};

use ic_checkpoint::outside_state::OutsideStanding;
use ic_kernel::Kernel;
use ic_worktree::{CaptureSettings, Warning, Workspace};

use super::tool_call::ToldCall;

/// What stands at the paths that a call names and no capture has: those outside of the project, and those that a rule ignores.
pub(super) fn of_call(
    kernel: &Kernel,
    kept: Option<&CaptureSettings>,
    root: &Path,
    told: &ToldCall<'_>,
    warnings: &mut Vec<Warning>,
) -> Vec<(String, OutsideStanding)> {
    let paths = told.outside.iter().cloned().chain(ignored(kernel, kept, root, told.paths));
    look(kernel, kept, root, paths, warnings)
}

/// What stands at these paths, with its content in the store. One that cannot be looked at is a warning.
pub(super) fn look(
    kernel: &Kernel,
    kept: Option<&CaptureSettings>,
    root: &Path,
    paths: impl Iterator<Item = PathBuf>,
    warnings: &mut Vec<Warning>,
) -> Vec<(String, OutsideStanding)> {
    let mut paths = paths.peekable();
    let Some(settings) = kept.filter(|kept| kept.checkpointing.auto && paths.peek().is_some()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    // The workspace is opened once. If that fails, each path is named with the reason, because none of them can be
    // undone.
    let workspace = Workspace::open(kernel, root.to_owned(), settings);
    for path in paths {
        let standing = workspace
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|workspace| workspace.keep_outside(&path).map_err(|error| error.message().to_owned()));
        match (standing, path.to_str()) {
            (Ok(standing), Some(path)) => found.push((path.to_owned(), standing)),
            // Paths are text in the ledger's table, so one that is not UTF-8 cannot be named there.
            (Ok(_), None) => {}
            (Err(why), _) => {
                let message = format!("{} is not kept, so it cannot be undone: {why}", path.display());
                warnings.push(Warning { code: "outside_not_kept", message });
            }
        }
    }
    found
}

/// Those of these paths of the project that no capture has, because a rule ignores them, absolute.
fn ignored(kernel: &Kernel, kept: Option<&CaptureSettings>, root: &Path, paths: &[String]) -> Vec<PathBuf> {
    let Some(settings) = kept.filter(|kept| kept.checkpointing.auto && !paths.is_empty()) else {
        return Vec::new();
    };
    let Ok(workspace) = Workspace::open(kernel, root.to_owned(), settings) else { return Vec::new() };
    let is_ignored = |path: &&String| workspace.is_ignored(Path::new(path)).unwrap_or(false);
    let ignored = paths.iter().filter(is_ignored).map(|path| root.join(path));
    // What lies in another work tree is captured there.
    ignored.filter(|path| workspace.not_ours(path).is_none()).collect()
}
