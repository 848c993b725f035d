//! Whether a piece of work was done on what is checked out.

use std::path::Path;

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_dispatch::Dispatch;
use ic_worktree::Workspace;

use super::commits::has_git;

/// Errors: `branch_switched` where the work ended on another branch than it began on, and that one lacks commits of the first: then the
/// switch took away more than the work's. Also where the present branch lacks the commit that the work was done on, because its files are not here.
pub(super) fn require_one_branch(
    workspace: &Workspace<'_>,
    dispatch: &Dispatch,
    looks: &[CheckpointRecord],
) -> Result<()> {
    let mut states = Vec::new();
    for look in looks.iter().filter(|look| has_git(look)) {
        states.extend(workspace.git_at(look)?);
    }
    let (Some(first), Some(last)) = (states.first(), states.last()) else { return Ok(()) };
    let id = dispatch.id.short();
    if !has_commits_of(&workspace.root, first, last) {
        let message = format!(
            "The dispatch {id} began on {} and ended on {}, so what it did to the files cannot be told from that switch.",
            branch_name(first.branch.as_ref()),
            branch_name(last.branch.as_ref())
        );
        let hint = format!("undo it with all that came after it, and switch back: ic undo dispatch:{id} --dry-run");
        return Err(Diagnosis::new(Code::BranchSwitched, message)
            .hint(hint)
            .detail("dispatch_id", dispatch.id.as_str()));
    }
    let here = git::branch(&workspace.root);
    let is_here = here.is_some() && here == last.branch.as_ref().map(|branch| branch.0.clone());
    let ends = first.head.as_deref().zip(last.head.as_deref());
    if is_here
        // Without commits its files are in the tree or on the stash: git brings them along.
        || first.head == last.head
        // A branch that is gone was merged or thrown away, and cannot be checked out.
        || !has_branch(&workspace.root, last)
        || has_commit(&workspace.root, last.head.as_deref())
        || ends.is_some_and(|(from, to)| git::has_changes(&workspace.root, from, to))
    {
        return Ok(());
    }
    let (its, here) = (branch_name(last.branch.as_ref()), branch_name(here.map(PathText).as_ref()));
    let message = format!("The dispatch {id} worked on {its}, and {here} is checked out, which has not got that.");
    Err(Diagnosis::new(Code::BranchSwitched, message)
        .hint("check that branch out, and undo it there")
        .detail("dispatch_id", dispatch.id.as_str())
        .detail("branch", its))
}

/// Whether this is the refusal of work that lies on a branch which is not checked out.
pub(crate) fn is_on_another_branch(error: &Diagnosis) -> bool {
    error.code() == Code::BranchSwitched && error.details().contains_key("branch")
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
    git::commits(root, &[sha.to_owned()]).first().is_some_and(|commit| commit.is_reached)
}

/// A branch by its name, for a message.
fn branch_name(branch: Option<&PathText>) -> String {
    branch.map_or("a detached HEAD".to_owned(), |name| ic_base::title(&String::from_utf8_lossy(&name.0)))
}
