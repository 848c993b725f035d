//! Paths that a caller names: one that could not be compared is never reported as unchanged.

use ic_base::{Code, Diagnosis, Result, shell_word};
use ic_checkpoint::diff::{DiffState, Finder};
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;

use super::workspace::Workspace;

/// Named paths of which neither tree has content because both left them out, each with the reason.
///
/// Errors: `foreign_root` for one in another work tree; `path_not_found` for one that both trees saw to be absent and that does not stand
/// in the working tree: it is mistyped.
pub(super) fn passed_over(
    workspace: &Workspace<'_>,
    paths: &[Vec<u8>],
    before: &Hash,
    after: &Hash,
) -> Result<Vec<(Vec<u8>, String)>> {
    let mut trees = [Finder::new(&workspace.objects, before)?, Finder::new(&workspace.objects, after)?];
    let mut passed = Vec::new();
    // The empty path is the root, which every tree has.
    for path in paths.iter().filter(|path| !path.is_empty()) {
        let mut reason = None;
        let mut is_held = false;
        for tree in &mut trees {
            match tree.find(path)? {
                Some(DiffState::Passed(why)) => reason = Some(why.as_str()),
                found => is_held |= found.is_some(),
            }
        }
        if is_held {
            continue;
        }
        require_here(workspace, path)?;
        // A file made since the tree was looked at is no typing error either.
        let stands = || workspace.root.join(path_from_bytes(path)).symlink_metadata().is_ok();
        match reason {
            Some(reason) => passed.push((path.clone(), reason.to_owned())),
            None if stands() => passed.push((path.clone(), "not captured".to_owned())),
            None => return Err(unknown(path)),
        }
    }
    Ok(passed)
}

/// Errors: `foreign_root` for a path in another work tree, which is a place of its own.
pub fn require_here(workspace: &Workspace<'_>, path: &[u8]) -> Result<()> {
    let places = workspace.objects.places();
    let Some(place) = places.and_then(|places| places.around(path)) else { return Ok(()) };
    let top = workspace.root.join(path_from_bytes(&place)).to_string_lossy().into_owned();
    let path = String::from_utf8_lossy(path).into_owned();
    Err(Diagnosis::new(
        Code::ForeignRoot,
        format!("{path} belongs to the work tree {top}, which is a place of its own. Nothing was changed."),
    )
    .hint(format!("work there: ic -C {} ...", shell_word(&top)))
    .detail("root", top)
    .detail("path", path))
}

fn unknown(path: &[u8]) -> Diagnosis {
    let path = String::from_utf8_lossy(path).into_owned();
    Diagnosis::new(
        Code::PathNotFound,
        format!("{path} is neither in the checkpoint nor in what it is compared with. Nothing was changed."),
    )
    .hint("paths are relative to the working directory; see what a checkpoint holds: ic checkpoint show ID --files")
    .detail("path", path)
}
