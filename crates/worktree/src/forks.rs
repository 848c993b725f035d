//! Forks: linked work trees in which work goes on apart, to be adopted into this one or dropped.
//!
//! A fork begins with a checkpoint of its own, named `fork`: what it became since then is what can be adopted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnose, Diagnosis, RestoreId, Result};
use ic_checkpoint::capture::{CaptureProgress, join};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::git;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::{CheckpointManifest, PathText};
use ic_checkpoint::record::{self, CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_checkpoint::restore::apply::{ApplyProgress, apply};
use ic_checkpoint::restore::plan::{Limits, RestorePlan, plan};
use ic_checkpoint::restore::reverse::{LineDecision, Now, Own, reverse};
use ic_checkpoint::rootfs::RootDir;
use ic_checkpoint::tree::{Reason, TreeNode};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_ledger::events::Hash;

use super::capture::{GitPart, Purpose};
use super::restore::{Conflict, refused};
use super::workspace::{Workspace, require_kept};

/// The name of the checkpoint with which a fork begins.
pub const BASE: &str = "fork";

/// A work tree that was forked from another one.
#[derive(Debug, Clone)]
pub struct Fork {
    /// Its name: that of its directory.
    pub name: String,
    /// The directory, without links.
    pub root: PathBuf,
    /// The tree with which it began.
    pub base: CheckpointRecord,
}

/// Where the fork of this name of a work tree lies: in a directory beside that.
pub fn directory_of(root: &Path, name: &str) -> PathBuf {
    let own = root.file_name().unwrap_or_default();
    let mut beside = own.to_owned();
    beside.push(".forks");
    root.with_file_name(beside).join(name)
}

/// The first name that no fork of this work tree has: 1, 2, 3.
pub fn free_name(root: &Path) -> String {
    let is_free = |number: &u32| directory_of(root, &number.to_string()).symlink_metadata().is_err();
    (1..u32::MAX).find(is_free).unwrap_or_default().to_string()
}

/// Makes the work tree of a fork, with the commit checked out that was so at a checkpoint. The files are not yet those of the checkpoint.
///
/// Errors: `file_conflict` if there is something in the place; `git_failed`, as where nothing is committed.
pub fn make(workspace: &Workspace<'_>, from: &CheckpointRecord, directory: &Path) -> Result<()> {
    if directory.symlink_metadata().is_ok() {
        let message = format!("{} is there already. Nothing was changed.", directory.display());
        return Err(Diagnosis::new(Code::FileConflict, message)
            .hint("name another one: ic fork --name NAME; or see: ic compare"));
    }
    require_kept(from)?;
    // The commit that was checked out at that moment: with today's, everything committed since would look like a change of the fork's.
    let head = CheckpointManifest::read(&workspace.objects, &from.manifest)?.git.and_then(|git| git.head);
    let Some(head) = head else {
        let message = format!("{} has no commit to fork from. Nothing was changed.", workspace.root.display());
        return Err(Diagnosis::new(Code::GitFailed, message).hint("commit something first: git commit"));
    };
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).while_doing(|| format!("making {}", parent.display()))?;
    }
    git::add_work_tree(&workspace.root, directory, &head)
}

/// The forks of a repository that are there, by name.
pub fn all(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<Fork>> {
    let mut forks = Vec::new();
    // Git knows which work trees are there. Which of them are forks, their first checkpoint tells: a second list could say something else.
    for other in git::other_work_trees(root) {
        if let Some(base) = record::named(snapshot, &other, BASE)? {
            let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
            forks.push(Fork { name, root: other, base });
        }
    }
    forks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(forks)
}

/// The fork with this name, or in this directory. Errors: `fork_not_found`.
pub fn find(kernel: &Kernel, text: &str) -> Result<Fork> {
    let root = &kernel.project.root;
    let meant = fs::canonicalize(kernel.project.directory.join(text)).ok();
    let forks = kernel.read(|snapshot| all(snapshot, root))?;
    let names: Vec<&str> = forks.iter().map(|fork| fork.name.as_str()).collect();
    let hint =
        if names.is_empty() { "make one: ic fork".to_owned() } else { format!("the forks here: {}", names.join(", ")) };
    let is_meant = |fork: &&Fork| fork.name == text || meant.as_ref() == Some(&fork.root);
    forks.iter().find(is_meant).cloned().ok_or_else(|| {
        Diagnosis::new(Code::ForkNotFound, format!("There is no fork {text:?} of this work tree."))
            .hint(hint)
            .detail("fork", text)
    })
}

/// What an adoption does, or would do.
#[derive(Debug, Default)]
pub struct Adoption {
    /// The changes of paths.
    pub plan: RestorePlan,
    /// Paths with lines that both changed, and what was decided about them.
    pub decided: Vec<Conflict>,
    /// Paths that stay as they are here, or in part, and why.
    pub left: Vec<(PathText, String)>,
}

impl Workspace<'_> {
    /// Takes a picture of the tree, durable and recorded; a fork is compared with it. One with a name is kept as those that people take.
    ///
    /// Errors: those of a capture.
    pub fn record_look(&self, name: Option<&str>) -> Result<CheckpointRecord> {
        let _held = self.lock(LockMode::Shared)?;
        let kind = if name.is_some() { CheckpointKind::Manual } else { CheckpointKind::Auto };
        let link = CheckpointLink { name: name.map(str::to_owned), ..CheckpointLink::default() };
        let shot = self.shoot(Purpose::new(kind, link), &CaptureProgress::default())?;
        self.kernel.write(|tx, now| shot.record(tx, now, None))
    }

    /// Merges what a fork became into this tree: `theirs` is its tree now. A file that is here as the fork began with it becomes that of the
    /// fork; text that both changed is merged. Nothing is written in a dry run.
    ///
    /// What was there must be captured before: no safety checkpoint is taken. A file that changes during the adoption is left alone and named.
    /// Errors: `file_conflict` where both changed the same lines and nothing is decided; nothing was written.
    pub fn adopt(&self, fork: &Fork, theirs: &Hash, decision: Option<LineDecision>, dry_run: bool) -> Result<Adoption> {
        // Alone in the tree: a capture of another call must not see one half of it.
        let _held = self.lock(LockMode::Exclusive)?;
        let own = self.made_by(fork, theirs)?;
        let link = CheckpointLink::default();
        // Git's state does not matter: only files come, and nothing is staged.
        let purpose = Purpose { git: GitPart::FilesAlone, ..Purpose::new(CheckpointKind::Auto, link) };
        let shot = self.shoot(purpose, &CaptureProgress::default())?;
        let root = RootDir::open(&self.root)?;
        let here = &shot.captured.root;
        let mut reversed = reverse(&self.objects, Now { root: &root, exact: here, usual: here, databases: &[] }, &own)?;
        let conflicts: Vec<Conflict> = std::mem::take(&mut reversed.conflicts)
            .into_iter()
            .map(|(path, reason)| Conflict {
                path: PathText(path),
                reason: reason.replace("others changed", "both changed"),
            })
            .collect();
        if decision.is_none() && !conflicts.is_empty() {
            return Err(in_conflict(&conflicts, &fork.name));
        }
        let mut left: Vec<(PathText, String)> =
            reversed.parts.drain(..).map(|(path, why)| (PathText(path), why)).collect();
        let mut differences: BTreeMap<Vec<u8>, Difference> =
            reversed.differences.drain(..).map(|one| (one.path.clone(), one)).collect();
        if decision == Some(LineDecision::Leave) {
            for Conflict { path, reason } in &conflicts {
                keep_own(&mut differences, &path.0, reversed.without_lines.remove(&path.0));
                left.push((path.clone(), format!("kept unchanged: {reason}")));
            }
        }
        let differences: Vec<Difference> = differences.into_values().collect();
        let plan = plan(&differences, &Limits::default(), &|_| false);
        left.extend(plan.skipped.iter().cloned());
        let mut adoption = Adoption { plan, decided: conflicts, left };
        if dry_run {
            return Ok(adoption);
        }
        // What is written comes from the store, so that a file is replaced by a whole one or not at all.
        self.keep_texts(&reversed.texts)?;
        let id: RestoreId = self.kernel.context.new_id();
        let outcome = apply(&self.objects, &root, &adoption.plan, &id, &ApplyProgress::default());
        adoption.left.extend(outcome.failed);
        Ok(adoption)
    }

    /// What a fork made, the other way round: to take that out of a tree is to adopt it.
    fn made_by(&self, fork: &Fork, theirs: &Hash) -> Result<Own> {
        let mut own = Own::default();
        diff::diff(&self.objects, Some(&fork.base.tree), Some(theirs), &mut |difference| {
            let Difference { before, after, .. } = difference;
            own.add(Difference { path: difference.path, before: after, after: before });
            Ok(())
        })?;
        Ok(own)
    }

    /// Stores merged texts, which no checkpoint holds yet.
    fn keep_texts(&self, texts: &[Vec<u8>]) -> Result<()> {
        if texts.is_empty() {
            return Ok(());
        }
        let writer = self.objects.writer(self.kernel.context.now())?;
        for text in texts {
            writer.put_reader(&mut text.as_slice())?;
        }
        writer.finish().map(drop)
    }
}

/// Leaves a path in conflict unchanged, or lets only the lines stay that both changed.
fn keep_own(differences: &mut BTreeMap<Vec<u8>, Difference>, path: &[u8], without_lines: Option<DiffState>) {
    match (differences.get_mut(path), without_lines) {
        (Some(difference), Some(state)) if difference.before.as_ref() != Some(&state) => {
            difference.after = Some(state);
        }
        _ => {
            differences.remove(path);
        }
    }
}

fn in_conflict(conflicts: &[Conflict], name: &str) -> Diagnosis {
    let shown: Vec<String> =
        conflicts.iter().map(|one| format!("{} ({})", String::from_utf8_lossy(&one.path.0), one.reason)).collect();
    let message =
        format!("This work tree and the fork {name} both changed: {}. Nothing was changed.", shown.join(", "));
    let listed = refused(&conflicts.iter().collect::<Vec<_>>()).details().get("conflicts").cloned();
    Diagnosis::new(Code::FileConflict, message).detail("conflicts", listed.unwrap_or_default()).hint(format!(
        "keep what is here where both changed the same lines: ic adopt {name} --ours; or take what the fork has: ic adopt {name} --theirs"
    ))
}

/// The paths of a captured tree whose content is in no checkpoint, from its root.
fn left_out(workspace: &Workspace<'_>, tree: &Hash) -> Result<Vec<String>> {
    let (mut left, mut waiting) = (Vec::new(), vec![(Vec::new(), *tree)]);
    while let Some((path, hash)) = waiting.pop() {
        for entry in workspace.objects.tree(&hash)?.entries {
            let path = join(&path, &entry.name);
            match entry.node {
                TreeNode::Directory(below) => waiting.push((path, below)),
                // What belongs to a database is in the database's own copy; git's own files stay in the repository.
                TreeNode::Passed(Reason::Database | Reason::Git | Reason::GitName | Reason::Store) => {}
                TreeNode::Passed(_) => left.push(String::from_utf8_lossy(&path).into_owned()),
                _ => {}
            }
        }
    }
    left.sort();
    Ok(left)
}

/// What a dropped fork leaves.
#[derive(Debug)]
pub struct DroppedFork {
    /// The checkpoint that has its last state.
    pub checkpoint: CheckpointId,
    /// The ref that keeps its commits; `None`: a branch or a tag does, or there are none.
    pub kept_ref: Option<String>,
}

/// Removes a fork after a last checkpoint of it. `workspace`: that of the fork.
///
/// Errors: `work_running` while work goes on in it; `file_conflict` where it has files that no checkpoint can hold, unless `force` says that
/// they may go. Then nothing was removed.
pub fn drop_fork(workspace: &Workspace<'_>, main: &Path, fork: &Fork, force: bool) -> Result<DroppedFork> {
    workspace.require_no_workers()?;
    let last = workspace.record_look(Some(&format!("{} as it was dropped", fork.name)))?;
    let unkept = left_out(workspace, &last.tree)?;
    if !force && !unkept.is_empty() {
        let shown = unkept.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let message =
            format!("The fork {} has files that no checkpoint holds: {shown}. Nothing was removed.", fork.name);
        return Err(Diagnosis::new(Code::FileConflict, message)
            .hint(format!("move what you need; or drop them with it: ic drop {} --force", fork.name))
            .detail("paths", unkept));
    }
    // Without its work tree, git would remove a commit that no ref reaches after a while.
    let head = git::head(&workspace.root);
    let name = format!("forks/{}", last.id);
    let is_kept = head.map_or(Ok(false), |head| git::keep_commit(main, &name, &head))?;
    git::remove_work_tree(main, &fork.root)?;
    if let Some(parent) = fork.root.parent() {
        // The directory of all forks goes with the last one; with others in it, it stays.
        let _ = fs::remove_dir(parent);
    }
    Ok(DroppedFork { checkpoint: last.id, kept_ref: is_kept.then(|| format!("refs/ic/{name}")) })
}
