//! Where a compensation may work: in the project, and not on the ledger.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::rootfs::check_path;
use ic_effects::EffectAction;
use ic_ledger::{path_bytes, path_from_bytes};

use ic_worktree::Workspace;
use ic_worktree::recorded_path;

/// The action with the working directory of its command in recorded form: from the project's directory, `None` for that directory itself.
///
/// It need not exist yet: the step may make it. Errors: `invalid_value` if it lies, or a link leads, outside of the project.
pub(super) fn in_project(mut action: EffectAction, project: &Path) -> Result<EffectAction> {
    if let EffectAction::Exec { how, .. } | EffectAction::Shell { how, .. } = &mut action
        && let Some(named) = how.directory.take()
    {
        let named = path_from_bytes(&named.0);
        let place = recorded_path(&named, project, project);
        // The recorded form is relative below the project. The project itself and paths outside of it stay absolute.
        let is_inside = place.is_relative() || place == project;
        let leads_outside =
            // A directory that does not exist yet leads nowhere: the step may make it.
            |place: &PathBuf| std::fs::canonicalize(project.join(place)).is_ok_and(|real| !real.starts_with(project));
        if !is_inside || leads_outside(&place) {
            let (named, project) = (named.display(), project.display());
            return Err(Diagnosis::new(
                Code::InvalidValue,
                format!("The directory {named} lies outside of the project {project}."),
            )
            .hint("give a directory in the project, from its top"));
        }
        how.directory = place.is_relative().then(|| PathText(path_bytes(&place).to_vec()));
    }
    Ok(action)
}

/// Refuses what cannot be restored later: the root itself, git's own files, the ledger, what lies behind a link.
///
/// Errors: `invalid_value`.
pub(super) fn check_file(workspace: &Workspace<'_>, path: &PathText) -> Result<()> {
    let named = path_from_bytes(&path.0);
    let refuse = |what: String, hint: &str| Err(Diagnosis::new(Code::InvalidValue, what).hint(hint));
    if check_path(&path.0).is_err() {
        let what = match path.0.as_slice() {
            b"" => "The root of the working tree is not a file.".to_owned(),
            _ => format!("{} is git's own, or not a valid path.", named.display()),
        };
        return refuse(what, "name the files, or undo it with a command");
    }
    let is_link = |place: &Path| workspace.root.join(place).is_symlink();
    let above = named.ancestors().skip(1).filter(|place| !place.as_os_str().is_empty());
    // The outermost link is named: the others lie behind it.
    if let Some(link) = above.filter(|place| is_link(place)).last() {
        let what = format!("{} lies behind the link {}.", named.display(), link.display());
        return refuse(what, "give the real path of the file");
    }
    if is_ledger(workspace, &workspace.root.join(&named)) {
        let what = format!("{} belongs to the ledger.", named.display());
        return refuse(what, "the ledger is never restored: rollbacks are recorded in it");
    }
    Ok(())
}

fn is_ledger(workspace: &Workspace<'_>, path: &Path) -> bool {
    let ledger = workspace.kernel.ledger.path();
    match ledger.parent() {
        // The store's directory is the ledger's own, unless the whole project lies in it.
        Some(store) if !workspace.root.starts_with(store) => path.starts_with(store),
        // The ledger lies loose in the root, or above it: its files alone are its own.
        _ => [ledger, workspace.objects.path()].iter().any(|file| {
            let rest = path_bytes(path).strip_prefix(path_bytes(file));
            // This covers the file itself and those that SQLite and locks put beside it: `ic.db-wal`,
            // `objects.db.lock`.
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'-' | b'.')))
        }),
    }
}
