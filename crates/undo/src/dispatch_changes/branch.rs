//! Whether a piece of work was done on what is checked out.

use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, Result, RollbackId};
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::Dispatch;
use ic_worktree::Workspace;

use super::commits::has_git;

/// Errors: `branch_switched` where the work ended on another branch than it began on, and that one lacks commits of the first: then the
/// switch took away more than the work's.
pub(super) fn require_one_branch(
    workspace: &Workspace<'_>,
    dispatch: &Dispatch,
    looks: &[CheckpointRecord],
) -> Result<()> {
    let mut states = Vec::new();
    for look in looks.iter().filter(|look| has_git(look)) {
        states.extend(workspace.git_at(look)?);
    }
    let Some((first, last)) = states.first().zip(states.last()) else { return Ok(()) };
    if has_commits_of(&workspace.root, first, last) {
        return Ok(());
    }
    let id = dispatch.id.short();
    let [began, ended] = [first, last].map(|state| branch_name(state.branch.as_ref()));
    let message = format!(
        "The dispatch {id} began on {began} and ended on {ended}, so what it did to the files cannot be told from that switch."
    );
    Err(Diagnosis::new(Code::BranchSwitched, message)
        .hint(format!("undo it with all that came after it, and switch back: ic undo dispatch:{id} --dry-run"))
        .detail("dispatch_id", dispatch.id.as_str()))
}

/// Errors: `branch_switched` where the present branch is not the one that an undo moved, or lacks the commit on which the undo left the tree:
/// a redo would write there what belongs to another branch. `before` and `left`: the checkpoints around the undo.
pub(crate) fn require_branch_of_undo(
    workspace: &Workspace<'_>,
    undo: &RollbackId,
    [before, left]: [&CheckpointId; 2],
) -> Result<()> {
    let state = |id| workspace.git_at(&workspace.kernel.read(|snapshot| record::get(snapshot, id))?);
    let Some(left) = state(left)? else { return Ok(()) };
    let (root, here) = (&workspace.root, git::branch(&workspace.root).map(PathText));
    let is_here = here.is_some() && here == left.branch;
    // A branch that is gone was merged or thrown away, and cannot be checked out.
    if is_here || !has_branch(root, &left) {
        return Ok(());
    }
    let [its, here] = [branch_name(left.branch.as_ref()), branch_name(here.as_ref())];
    let id = undo.short();
    let is_moved = left.branch.is_some()
        && state(before)?.is_some_and(|before| before.branch == left.branch && before.head != left.head);
    let message = if is_moved {
        format!("The undo {id} moved {its}, and {here} is checked out.")
    } else if !has_commit(root, left.head.as_deref()) {
        format!("The undo {id} was made on {its}, and {here} is checked out, which has not got that.")
    } else {
        return Ok(());
    };
    Err(Diagnosis::new(Code::BranchSwitched, message)
        .hint("check that branch out, and redo it there")
        .detail("rollback_id", undo.as_str())
        .detail("branch", its))
}

/// Whether work ended on the branch on which it began, or on a commit that has the one on which it began: what else it has was brought by
/// its commits.
fn has_commits_of(root: &Path, first: &GitState, last: &GitState) -> bool {
    let is_on_it = first.branch.is_some() && first.branch == last.branch;
    let heads = first.head.as_deref().zip(last.head.as_deref()).filter(|_| !is_on_it);
    heads.is_none_or(|(first, last)| git::commits_between(root, last, first, 1).is_empty())
}

/// Whether the branch on which the work was done still exists: one that is gone was merged or thrown away.
fn has_branch(root: &Path, last: &GitState) -> bool {
    let Some(branch) = &last.branch else { return true };
    let name = format!("refs/heads/{}", String::from_utf8_lossy(&branch.0));
    git::is_ref(root, &name)
}

/// Whether the present HEAD is a commit or has it among its ancestors.
fn has_commit(root: &Path, sha: Option<&str>) -> bool {
    // Without a commit the branch was unborn, and has nothing that could be missing.
    let Some(sha) = sha else { return true };
    git::merge_base(root, sha, "HEAD").as_deref() == Some(sha)
}

/// A branch by its name, for a message.
fn branch_name(branch: Option<&PathText>) -> String {
    branch.map_or("a detached HEAD".to_owned(), |name| ic_base::title(&String::from_utf8_lossy(&name.0)))
}
