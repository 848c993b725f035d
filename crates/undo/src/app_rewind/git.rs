//! The first stage: the tree goes to the task's commit.
//!
//! A safety checkpoint has everything that a forced checkout would lose before the checkout runs, whatever any rule leaves out. A ref keeps
//! the commit that was checked out reachable. Nothing is refused after that.

use std::collections::BTreeSet;
use std::path::Path;

use ic_base::{Code, Diagnosis, Result};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::git::{self, HeadStanding, Losses};
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{CheckpointKind, CheckpointLink};
use ic_rewind::journal::{self, LeftHead, RewindEntry};

use ic_kernel::Kernel;
use ic_worktree::capture::Purpose;
use ic_worktree::files_of_database;
use ic_worktree::{CaptureSettings, Workspace};

/// The number of paths that an error names.
const NAMED: usize = 5;

/// What git would do in a rewind.
#[derive(Debug, Clone)]
pub struct GitStagePlan {
    /// The full hash of the commit to which the tree goes.
    pub commit: String,
    /// The commit and the branch that are checked out now.
    pub standing: HeadStanding,
    /// What only the safety checkpoint would have after that.
    pub losses: Losses,
}

impl GitStagePlan {
    /// Whether anything would change.
    pub fn moves(&self) -> bool {
        self.standing.head.as_deref() != Some(self.commit.as_str()) || !self.losses.is_empty()
    }

    /// Errors: `file_conflict` when the checkout would replace this state database by another one.
    pub(super) fn refuse_to_replace(&self, root: &Path, database: &Path) -> Result<()> {
        // The list is empty if the database is outside of the tree: no checkout replaces it there.
        let files = files_of_database(root, database);
        let Some(head) = self.standing.head.as_deref().filter(|_| !files.is_empty()) else { return Ok(()) };
        if !git::differ_in(root, [head, &self.commit], &files.into_iter().collect::<Vec<_>>())? {
            return Ok(());
        }
        Err(Diagnosis::new(
            Code::FileConflict,
            format!(
                "{} is kept by git, and the task's commit has another one: its rows would be lost. Nothing was changed.",
                database.display()
            ),
        )
        .hint("untrack it: git rm --cached, and a line in .gitignore; or leave the tree unchanged: --no-git"))
    }

    /// Errors: `file_conflict`, which names the paths, for local changes without force, and for what cannot be saved.
    pub(super) fn refuse(&self, force: bool) -> Result<()> {
        if !self.losses.repositories.is_empty() {
            return Err(named(
                "Nested repositories are in the place of files of the task's commit",
                &self.losses.repositories,
            )
            .hint("move them away; or leave the tree unchanged: --no-git"));
        }
        if force || self.losses.is_empty() {
            return Ok(());
        }
        let paths: BTreeSet<Vec<u8>> = self.losses.paths().cloned().collect();
        Err(named("The tree has changes that the move to the task's commit would lose", &paths)
            .hint("commit them; or go anyway (a checkpoint keeps them): --force; or leave the tree: --no-git"))
    }
}

fn named(what: &str, paths: &BTreeSet<Vec<u8>>) -> Diagnosis {
    let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
    let shown: Vec<String> = paths.iter().take(NAMED).map(text).collect();
    let more = if paths.len() > NAMED { format!(", and {} more", paths.len() - NAMED) } else { String::new() };
    Diagnosis::new(Code::FileConflict, format!("{what}: {}{more}. Nothing was changed.", shown.join(", ")))
        .detail("paths", paths.iter().map(text).collect::<Vec<_>>())
}

/// What a move to a task's commit would do in the work tree of `root`.
pub(super) fn plan(root: &Path, task: &str, commit: &str) -> Result<GitStagePlan> {
    let refused = |why: &str| {
        Diagnosis::new(Code::CommitUnusable, format!("The task {task} has the commit {commit}, {why}."))
            .hint("leave the tree unchanged: --no-git")
            .detail("commit", commit)
    };
    if ic_ledger::git_dirs(root).is_none() {
        return Err(refused(&format!("but {} is not a git work tree", root.display())));
    }
    let standing = git::standing(root)?;
    let commit = git::commit_id(root, commit)
        .ok_or_else(|| refused("which this repository does not have, or is not the id of a commit"))?;
    let losses = git::losses(root, &commit)?;
    Ok(GitStagePlan { commit, standing, losses })
}

/// Moves the tree to the entry's commit, after its present state is in a safety checkpoint.
pub(super) fn carry_out(kernel: &Kernel, settings: &CaptureSettings, entry: &RewindEntry, commit: &str) -> Result<()> {
    let plan = plan(&entry.root, &entry.task_id, commit)?;
    if plan.moves() {
        // Once the move has begun, local changes may be its own.
        plan.refuse(entry.is_forced || entry.safety_id.is_some())?;
        let workspace = Workspace::open(kernel, entry.root.clone(), settings)?;
        // The lock is exclusive, as for a restore: a capture at this moment would show a half of the checkout.
        let _held = workspace.lock(LockMode::Exclusive)?;
        save(&workspace, entry, &plan)?;
        git::checkout(&entry.root, commit).map_err(|error| {
            error.hint("the safety checkpoint has what was there; resume it: ic rewind resume --yes")
        })?;
        let now = git::standing(&entry.root)?;
        if now.head.as_deref() != Some(commit) {
            return Err(Diagnosis::new(
                Code::GitFailed,
                "The tree is not at the task's commit although git reported no error.",
            ));
        }
    }
    // Also written for a caller whose dispatch was rolled back by now: the tree has moved, and the record must say so.
    kernel.write_late_too(|tx, now| journal::git_done(tx, now, &journal::get(tx, &entry.id)?))
}

/// Makes the present state durable, records that in the journal, and keeps the commit reachable.
fn save(workspace: &Workspace<'_>, entry: &RewindEntry, plan: &GitStagePlan) -> Result<()> {
    let message = format!("before the rewind {} to {}", entry.id.short(), entry.task_id);
    let link = CheckpointLink { message: Some(message), ..CheckpointLink::default() };
    let force = plan.losses.changed.union(&plan.losses.in_the_way).cloned().collect();
    let shot =
        // The ref comes before the journal: once the journal names it, an undo relies on it.
        workspace.shoot(Purpose { force, ..Purpose::new(CheckpointKind::Safety, link) }, &CaptureProgress::default())?;
    let kept_ref = plan.standing.head.as_ref().map(|_| {
        let name = plan.standing.branch.as_deref().unwrap_or(b"HEAD");
        [format!("refs/ic/rewound/{}/", entry.id).as_bytes(), name].concat()
    });
    if let (Some(name), Some(head)) = (&kept_ref, &plan.standing.head) {
        git::keep(&entry.root, name, head)?;
    }
    let left = LeftHead { branch: plan.standing.branch.clone(), head: plan.standing.head.clone(), kept_ref };
    workspace.kernel.write_late_too(|tx, now| {
        let safety = shot.record(tx, now, None)?;
        journal::leave(tx, now, &entry.id, &safety.id, &left)
    })
}

/// The command that restores the tree from before a rewind; `None` if it was not moved.
pub fn restore_command(entry: &RewindEntry) -> Option<String> {
    entry.safety_id.as_ref().map(|id| format!("ic checkpoint restore {} --yes", id.short()))
}
