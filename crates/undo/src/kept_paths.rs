//! Single paths that a caller wants to keep in an undo, by their names.

use std::path::PathBuf;
use std::slice::from_ref;

use ic_base::display::path_text;
use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::manifest::PathText;
use ic_kernel::Kernel;
use ic_ledger::path_bytes;
use ic_worktree::{CaptureSettings, RestoreWatch, Workspace, paths_in_root};

use super::layered_rollback::roll_back;
use super::request::{LayeredRequest, RollbackRequest};
use crate::compensation::Sink;

/// The paths that these names mean, as the plan has them or from the current directory: those in conflict, and those that stay anyway.
///
/// Errors: `usage` for any other name, which may be misspelt: no question is asked about what it was to mean. And those of [`roll_back`].
pub fn kept_paths(
    kernel: &Kernel,
    settings: &CaptureSettings,
    (request, names): (&LayeredRequest<'_>, &[PathBuf]),
    sink: &mut dyn Sink,
    watch: &RestoreWatch,
) -> Result<Vec<PathText>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    // What is in conflict is what a plan without any decision refuses.
    let mut open = request.clone();
    open.base = RollbackRequest { dry_run: true, expect_plan: None, ..open.base };
    (open.force.files, open.keep_theirs) = (false, false);
    let plan = roll_back(kernel, settings, &open, sink, watch)?;
    let mut kept = Vec::new();
    for name in names {
        let mut found = None;
        if let Some(tree) = &plan.parts.tree {
            let workspace = Workspace::open(kernel, tree.target.root.clone(), settings)?;
            let from_here = paths_in_root(&workspace, from_ref(name))?;
            let stays = tree.plan.skipped.iter().map(|(path, _)| path);
            let mut all = tree.conflicts.iter().map(|one| &one.path).chain(stays);
            found = all.find(|path| path.0 == path_bytes(name) || from_here.contains(&path.0)).cloned();
        }
        kept.push(found.ok_or_else(|| {
            let message = format!("{} is not in conflict with this undo.", path_text(name));
            Diagnosis::new(Code::Usage, message).hint("the paths in conflict are in the plan: --dry-run")
        })?);
    }
    Ok(kept)
}
