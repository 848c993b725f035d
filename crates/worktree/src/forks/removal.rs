//! Removing a fork: what it had is kept first.

use std::fs;
use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::git;
use ic_checkpoint::tree::Reason;

use super::super::workspace::Workspace;
use super::fork::Fork;

/// What a fork leaves that was removed.
#[derive(Debug)]
pub struct DroppedFork {
    /// The checkpoint that has its last state.
    pub checkpoint: CheckpointId,
    /// The ref that keeps its commits; `None`: a branch or a tag does, or there are none.
    pub kept_ref: Option<String>,
}

/// Removes a fork after a last checkpoint of it. `place`: its workspace; `main`: another work tree of the repository.
///
/// Errors: `work_running` while work goes on in it; `file_conflict` where it has another work tree in it, or files that no checkpoint can
/// hold and `force` does not say that they may go. Then nothing was removed.
pub fn remove(place: &Workspace<'_>, main: &Path, fork: &Fork, force: bool) -> Result<DroppedFork> {
    place.require_no_workers()?;
    let last = place.record_look(Some(&format!("{} as it was dropped", fork.name)))?;
    let inside = place.left_out(&last.tree, |_, reason| reason == Reason::WorkTree)?;
    if !inside.is_empty() {
        // Git would remove it with the fork.
        return Err(in_the_way(fork, "another work tree in it", &inside, "remove that first: git worktree remove DIR"));
    }
    // Its own `.git` is a file that only names git's directory; that of a repository in it is all that there is of that.
    let is_lost = |path: &[u8], reason: Reason| path != b".git" && !matches!(reason, Reason::Database | Reason::Store);
    let unkept = place.left_out(&last.tree, is_lost)?;
    if !force && !unkept.is_empty() {
        let hint = format!("move what you need; or drop them with it: ic drop {} --force", fork.name);
        return Err(in_the_way(fork, "files that no checkpoint holds", &unkept, &hint));
    }
    // Without its work tree, git would remove a commit that no ref reaches after a while.
    let head = git::head(&place.root);
    let name = format!("forks/{}", last.id);
    let is_kept = head.map_or(Ok(false), |head| git::keep_commit(main, &name, &head))?;
    git::remove_work_tree(main, &fork.root)?;
    if let Some(parent) = fork.root.parent() {
        // The directory of all forks goes with the last one; with others in it, it stays.
        let _ = fs::remove_dir(parent);
    }
    Ok(DroppedFork { checkpoint: last.id, kept_ref: is_kept.then(|| format!("refs/ic/{name}")) })
}

fn in_the_way(fork: &Fork, what: &str, paths: &[Vec<u8>], hint: &str) -> Diagnosis {
    let paths: Vec<String> = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    let more = if paths.len() > 5 { ", ..." } else { "" };
    let shown = paths.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let message = format!("The fork {} has {what}: {shown}{more}. Nothing was removed.", fork.name);
    Diagnosis::new(Code::FileConflict, message).hint(hint).detail("paths", paths)
}
