//! Making a fork: a linked work tree of git's with the files of a checkpoint.

use std::fs;
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_checkpoint::git;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::apply::{ApplyProgress, apply};
use ic_checkpoint::restore::plan::{Limits, plan};
use ic_checkpoint::rootfs::RootDir;
use ic_ledger::events::Hash;

use super::super::restore::differences;
use super::super::workspace::{Warning, Workspace, require_kept};
use super::fork::{Fork, directory_of, is_registered, mark, marked};

/// Makes a fork of a work tree, with the files that it had at a checkpoint; returns what does not come along, too.
///
/// Errors: `file_conflict` if there is something in the place; `git_failed`, as where nothing is committed.
pub fn make(workspace: &Workspace<'_>, from: &CheckpointRecord, name: &str) -> Result<(Fork, Vec<Warning>)> {
    let directory = directory_of(&workspace.root, name);
    if is_leftover(&directory) {
        let file = directory.join(".git");
        // It may be there or not: a killed git makes the directory first.
        let _ = fs::remove_file(file);
        fs::remove_dir(&directory).while_doing(|| format!("removing {}", directory.display()))?;
    }
    if directory.symlink_metadata().is_ok() {
        let message = format!("{} is there already. Nothing was changed.", directory.display());
        return Err(Diagnosis::new(Code::FileConflict, message)
            .hint("name another one: ic fork --name NAME; or see: ic compare"));
    }
    if is_registered(&workspace.root, &directory) {
        let message =
            format!("The fork {name} was moved or removed by hand: git still knows of it. Nothing was changed.");
        return Err(Diagnosis::new(Code::FileConflict, message).hint(
            "if it was moved: git worktree repair DIRECTORY; if its commits are not needed: git worktree prune; or name another one",
        ));
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
    {
        // One at a time: git fails if it meets the half-made record of another work tree.
        let _held = workspace.lock(LockMode::Exclusive)?;
        git::add_work_tree(&workspace.root, &directory, &head)?;
        // An empty mark: until the fork has its files, it counts as unfinished.
        mark(&directory, "")?;
    }
    let root = fs::canonicalize(&directory).while_doing(|| format!("entering {}", directory.display()))?;
    let place = Workspace::open(workspace.kernel, root, workspace.settings)?;
    let mut warnings = place.fill(&from.tree)?;
    let base = place.record_look(Some("fork"))?;
    mark(&place.root, base.id.as_str())?;
    // Git makes their directories and leaves them empty.
    if place.root.join(".gitmodules").exists() {
        let message = "submodules are not checked out in the fork: git submodule update --init there".to_owned();
        warnings.push(Warning { code: "submodules", message });
    }
    let (name, root) = (name.to_owned(), place.root.clone());
    Ok((Fork { name, root, base: Some(base), is_finished: true, adopted: None }, warnings))
}

/// Whether a directory is what a killed call left of a fork before it had files: at most the file that names git's directory.
fn is_leftover(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let is_git = |entry: fs::DirEntry| entry.file_name() == ".git" && entry.path().is_file();
    entries.into_iter().all(|entry| entry.is_ok_and(is_git)) && marked(directory).is_none_or(|mark| mark.is_empty())
}

impl Workspace<'_> {
    /// Gives a work tree that has no files those of a captured tree. Tracked files that were too large for a checkpoint come from git. Returns
    /// what does not come along, but for what a rule ignores.
    fn fill(&self, tree: &Hash) -> Result<Vec<Warning>> {
        // Its lock has ended when it returns: a lock of the root is not taken twice.
        let now = self.tree_now(true)?;
        let _held = self.lock(LockMode::Exclusive)?;
        let root = RootDir::open(&self.root)?;
        let plan = plan(&differences(self, &now, tree)?, &Limits::default(), &|_| false);
        // No journal is needed: a fork whose making was killed is dropped and made again.
        let outcome = apply(&self.objects, &root, &plan, &self.kernel.context.new_id(), &ApplyProgress::default());
        let gaps = self.left_out(tree, |_, reason| reason.is_a_gap())?;
        git::write_tracked(&self.root, gaps.iter().map(Vec::as_slice))?;
        let is_missing = |path: &&Vec<u8>| self.root.join(ic_ledger::path_from_bytes(path)).symlink_metadata().is_err();
        let missing = gaps.iter().filter(is_missing).map(|path| (path, "no checkpoint holds it"));
        let failed = outcome.failed.iter().map(|(path, why)| (&path.0, why.as_str()));
        let warning = |(path, why): (&Vec<u8>, &str)| Warning {
            code: "not_in_fork",
            message: format!("{} is not in the fork: {why}", String::from_utf8_lossy(path)),
        };
        Ok(missing.chain(failed).map(warning).collect())
    }
}
