//! Removing a fork: what it had is kept first.

use std::fs;
use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnose, Diagnosis, Result};
use ic_checkpoint::git;
use ic_checkpoint::tree::Reason;

use super::super::workspace::Workspace;
use super::fork::{Fork, directory_of, forks_in, records_of, replace};

/// The file in git's record of a fork that says that all of it is kept, and that it may go.
const DROPPED: &str = "ic-fork-dropped";

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
/// Errors: `work_running` while work goes on in it; `file_conflict` where it has forks of its own or another work tree in it, or files that
/// no checkpoint can hold and `force` does not say that they may go. Then nothing was removed.
pub fn remove(place: &Workspace<'_>, main: &Path, fork: &Fork, force: bool) -> Result<DroppedFork> {
    place.require_no_workers().map_err(|error| match error.code() {
        // No flag removes a fork in which work goes on.
        Code::WorkRunning => error.hint("wait for its end: ic wait; or end it: ic dispatch show ID names its process"),
        _ => error,
    })?;
    // They are known by their names in it alone.
    let forks = forks_in(&fork.root);
    if !forks.is_empty() {
        return Err(in_the_way(fork, "forks of its own", &forks, "drop those first: ic drop DIR"));
    }
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
    let dropped = DroppedFork { checkpoint: last.id, kept_ref: is_kept.then(|| format!("refs/ic/{name}")) };
    // From here on nothing is lost: what a killed git leaves of it is removed by the same call again.
    if let Some(dirs) = ic_ledger::git_dirs(&place.root) {
        replace(&dirs.git_dir.join(DROPPED), dropped.checkpoint.as_str())?;
    }
    git::remove_work_tree(main, &fork.root)?;
    remove_if_empty(&fork.root);
    Ok(dropped)
}

/// Removes what is left of a fork whose removal was killed in the middle. `None`: there is no such one of this name.
pub fn finish_removal(root: &Path, name: &str) -> Result<Option<DroppedFork>> {
    let directory = directory_of(root, name);
    let Some(record) = records_of(root, &directory).into_iter().find(|record| record.join(DROPPED).exists()) else {
        return Ok(None);
    };
    let path = record.join(DROPPED);
    let checkpoint = fs::read_to_string(&path).while_doing(|| format!("reading {}", path.display()))?;
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).while_doing(|| format!("removing {}", directory.display()))
        }
        _ => Ok(()),
    }?;
    // The record goes last: by it the next call finds what this one left.
    fs::remove_dir_all(&record).while_doing(|| format!("removing {}", record.display()))?;
    remove_if_empty(&directory);
    Ok(Some(DroppedFork { checkpoint: CheckpointId::from_ledger(checkpoint), kept_ref: None }))
}

/// The directory of all forks goes with the last one; with others in it, it stays.
fn remove_if_empty(fork: &Path) {
    if let Some(parent) = fork.parent() {
        let _ = fs::remove_dir(parent);
    }
}

fn in_the_way(fork: &Fork, what: &str, paths: &[Vec<u8>], hint: &str) -> Diagnosis {
    let paths: Vec<String> = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    let more = if paths.len() > 5 { ", ..." } else { "" };
    let shown = paths.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let message = format!("The fork {} has {what}: {shown}{more}. Nothing was removed.", fork.name);
    Diagnosis::new(Code::FileConflict, message).hint(hint).detail("paths", paths)
}
