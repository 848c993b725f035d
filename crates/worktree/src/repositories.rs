//! Repositories that no checkpoint has: those inside of the tree, and the root's own where it was made, or lost, since.
//!
//! Their files go back, and what they have committed or checked out does not: that is named, with the command for it.

use ic_base::{Result, shell_word};
use ic_checkpoint::capture::Captured;
use ic_checkpoint::diff;
use ic_checkpoint::git;
use ic_checkpoint::manifest::{CheckpointManifest, PathText, Repository};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::{Limits, RestorePlan, is_at_or_below};
use ic_ledger::path_from_bytes;

use super::workspace::Workspace;

/// What is said where the root's own repository is gone.
const HISTORY_GONE: &str = "the repository is gone: files are restored, its commits and branches are not; clone it again, or begin a new \
    one: git init";

impl Workspace<'_> {
    /// What the repositories inside of the tree have checked out.
    pub(super) fn repositories(&self, captured: &Captured) -> Vec<Repository> {
        let top = |path: &[u8]| self.root.join(path_from_bytes(path));
        // The `.git` of a submodule is a file.
        let own = captured.nested_git.iter().filter(|path| top(path).join(".git").is_dir());
        own.map(|path| Repository {
            path: PathText(path.clone()),
            head: git::head_in_files(&top(path)),
            branch: git::branch(&top(path)).map(PathText),
        })
        .collect()
    }

    /// Whether there was no repository of the root when a checkpoint was taken.
    pub fn had_no_repository(&self, target: &CheckpointRecord) -> Result<bool> {
        // A tree has an entry for `.git` even where git's state was not recorded. Without one there was no repository.
        Ok(CheckpointManifest::read(&self.objects, &target.manifest)?.git.is_none()
            && diff::find(&self.objects, &target.tree, b".git")?.is_none())
    }

    /// Repositories whose history stays though a restore of `target` takes their files back, and the command that moves it.
    pub(super) fn left_repositories(
        &self,
        target: &CheckpointRecord,
        captured: &Captured,
        (limits, is_without): (&Limits, bool),
        plan: &RestorePlan,
    ) -> Result<Vec<(PathText, String)>> {
        let then = CheckpointManifest::read(&self.objects, &target.manifest)?.repositories;
        let is_written = |path: &PathText| plan.steps.iter().any(|step| is_at_or_below(&step.path.0, &path.0));
        let mut left = Vec::new();
        // A repository that is gone has no history that could be moved.
        for now in self.repositories(captured) {
            let is_meant = limits.covers(&now.path.0) && (!is_without || is_written(&now.path));
            let was = then.iter().find(|was| was.path == now.path).filter(|was| **was != now && is_meant);
            left.extend(was.map(|was| (now.path.clone(), self.moved(was, &now))));
        }
        let has_git = self.settings.checkpointing.include_git && ic_ledger::git_dirs(&self.root).is_some();
        let is_whole = limits.is_everything() && !is_without;
        // Only of the whole tree: a restore of some paths says nothing of the root's repository.
        if has_git && is_whole && self.had_no_repository(target)? {
            let why = "a repository was made here since: it stays, with its commits; to remove it: rm -rf .git";
            left.push((PathText(b".git".to_vec()), why.to_owned()));
        }
        Ok(left)
    }

    fn moved(&self, was: &Repository, now: &Repository) -> String {
        let top = self.root.join(path_from_bytes(&now.path.0));
        let git = format!("git -C {}", shell_word(&top.to_string_lossy()));
        let shown = |one: &Repository| {
            let branch = one.branch.as_ref().map(|branch| String::from_utf8_lossy(&branch.0).into_owned());
            let head = one.head.as_deref().map_or("no commit", |head| head.get(..8).unwrap_or(head)).to_owned();
            branch.map_or(head.clone(), |branch| format!("{branch} ({head})"))
        };
        let switch = match (&was.branch, &was.head) {
            _ if was.branch == now.branch => None,
            (Some(branch), _) => {
                let name = format!("refs/heads/{}", String::from_utf8_lossy(&branch.0));
                Some(format!("{git} symbolic-ref HEAD {}", shell_word(&name)))
            }
            // No branch was checked out: a reset alone would move the one that is now.
            (None, head) => head.as_ref().map(|head| format!("{git} update-ref --no-deref HEAD {head}")),
        };
        let reset = match &was.head {
            Some(head) => Some(format!("{git} reset -q {head}")),
            // Its first commit was made since: the branch was not there.
            None if switch.is_none() => Some(format!("{git} update-ref -d HEAD && {git} read-tree --empty")),
            None => None,
        };
        let commands: Vec<String> = switch.into_iter().chain(reset).collect();
        format!(
            "a repository of its own: its files go back, its history stays: it is at {}, and was at {}; to move it back: {}",
            shown(now),
            shown(was),
            commands.join(" && ")
        )
    }

    /// What is said where the target had git's state and there is no repository any more.
    pub(super) fn lost_history(&self, target: &CheckpointRecord) -> Result<Option<(PathText, String)>> {
        let had_git = CheckpointManifest::read(&self.objects, &target.manifest)?.git.is_some();
        let is_lost = had_git && ic_ledger::git_dirs(&self.root).is_none();
        Ok(is_lost.then(|| (PathText(b".git".to_vec()), HISTORY_GONE.to_owned())))
    }
}
