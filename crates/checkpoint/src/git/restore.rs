//! Restoring git's state: HEAD, branches, index, stash. The working tree is not touched.
//!
//! Refs first, in one transaction with their old values; the index after the files, because it knows their times. What is
//! moved or removed stays reachable below `refs/ic/rolled-back/<id>/`. Planning anew and applying again completes what
//! was interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_store::GitDirs;

use super::index::{self, Line};
use super::program::Git;
use super::record::existing;
use super::{GitState, Stash};
use crate::objects::Objects;

/// A ref that is made, moved or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its name.
    pub name: Vec<u8>,
    /// Where it is; `None`: it is made.
    pub from: Option<String>,
    /// Where it goes; `None`: it is removed.
    pub to: Option<String>,
}

/// What restoring a state would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitPlan {
    /// Branches.
    pub refs: Vec<Moved>,
    /// Whether HEAD goes to another branch, or is detached elsewhere.
    pub head: bool,
    /// Whether the index changes.
    pub index: bool,
    /// Whether the stash changes.
    pub stash: bool,
    /// Commits that are on no branch of the state to be restored, newest first.
    pub new_commits: Vec<String>,
}

impl GitPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty() && !self.head && !self.index && !self.stash
    }
}

/// What restoring `target` over `current` would do in the work tree whose top is `root`.
///
/// Errors: `git_in_progress`, `git_busy` (an index.lock), `git_unsupported` (a branch that would move is checked out in
/// another work tree, skip-worktree entries or submodules that differ), `git_failed`.
pub fn plan(root: &Path, target: &GitState, current: &GitState, objects: &Objects) -> Result<GitPlan> {
    let dirs = dirs(root)?;
    let git = Git::new(root);
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (current.branches().collect(), target.branches().collect());
    let names: BTreeSet<&[u8]> = old.keys().chain(new.keys()).copied().collect();
    let refs: Vec<Moved> = names
        .into_iter()
        .filter(|name| old.get(name) != new.get(name))
        .map(|name| Moved {
            name: name.to_vec(),
            from: old.get(name).map(|oid| (*oid).to_owned()),
            to: new.get(name).map(|oid| (*oid).to_owned()),
        })
        .collect();
    let is_elsewhere = target.branch.is_none() && target.head != current.head;
    let mut plan = GitPlan {
        refs,
        head: target.branch != current.branch || is_elsewhere,
        index: target.index != current.index,
        stash: target.stash != current.stash,
        new_commits: Vec::new(),
    };
    if plan.is_empty() {
        return Ok(plan);
    }
    refuse_operations(target, current, &dirs)?;
    if plan.index {
        refuse_special_entries(&index::read(objects, target.index)?, &index::read(objects, current.index)?)?;
    }
    refuse_branches_elsewhere(&git, root, &plan)?;
    plan.new_commits = new_commits(&git, &plan, target, current)?;
    Ok(plan)
}

/// Moves branches, HEAD and stash as planned; what goes is kept below `refs/ic/rolled-back/<id>/`.
///
/// Errors: `git_busy` if a ref is not any more where the plan found it: then nothing was moved.
pub fn apply_refs(
    root: &Path,
    plan: &GitPlan,
    target: &GitState,
    current: &GitState,
    id: &str,
    objects: &Objects,
) -> Result<()> {
    let git = Git::new(root);
    bring_back(&git, target, objects)?;
    let kept = format!("refs/ic/rolled-back/{id}/");
    let mut commands = Commands::default();
    for moved in &plan.refs {
        let name = moved.name.strip_prefix(b"refs/").unwrap_or(&moved.name);
        if let Some(from) = &moved.from {
            commands.set(&[kept.as_bytes(), name].concat(), from);
        }
        match (&moved.from, &moved.to) {
            (from, Some(to)) => commands.update(&moved.name, to, from.as_deref()),
            (Some(from), None) => commands.delete(&moved.name, from),
            (None, None) => {}
        }
    }
    if (plan.head || current.branch.is_none())
        && let Some(head) = &current.head
    {
        commands.set(format!("{kept}HEAD").as_bytes(), head);
    }
    if plan.stash {
        for (i, stash) in current.stash.iter().enumerate().filter(|(_, s)| !target.stash.contains(s)) {
            commands.set(format!("{kept}stash/{i}").as_bytes(), &stash.commit);
        }
    }
    git.run_with(&["update-ref", "-m", REFLOG, "--stdin", "-z"], &commands.0)?;
    if plan.head {
        restore_head(&git, target, current)?;
    }
    if plan.stash {
        restore_stash(&git, &target.stash, &current.stash)?;
    }
    Ok(())
}

/// Makes the index what it was, and lets it look at the files, which are restored already.
///
/// Errors: `git_busy` if another command holds the index, or changed it since the plan.
pub fn apply_index(root: &Path, target: &GitState, current: &GitState, objects: &Objects) -> Result<()> {
    let dirs = dirs(root)?;
    let text = index::read(objects, target.index)?;
    let expected = index::read(objects, current.index)?;
    let made = tempfile::Builder::new()
        .prefix("ic-index-")
        .tempdir_in(&dirs.git_dir)
        .while_doing(|| format!("making an index in {}", dirs.git_dir.display()))?;
    let path = made.path().join("index");
    make_index(root, &path, &text)?;
    let git = Git::new(root);
    let lock_path = dirs.git_dir.join("index.lock");
    let lock = std::fs::File::options().write(true).create_new(true).open(&lock_path);
    let mut lock = lock.map_err(|_| busy("another git command holds the index"))?;
    let placed = (|| {
        let (listed, _) = index::parse(&expected);
        let found = git.run(&index::LIST)?;
        if index::parse(&found).0 != listed {
            return Err(busy("another git command changed the index meanwhile"));
        }
        let bytes = std::fs::read(&path).while_doing(|| "reading the new index".to_owned())?;
        lock.write_all(&bytes).while_doing(|| "writing the index".to_owned())?;
        std::fs::rename(&lock_path, dirs.git_dir.join("index"))
            .while_doing(|| "replacing the index".to_owned())
    })();
    if placed.is_err() {
        // Ours, since it was made above; when it cannot be removed, git itself will name it.
        let _ = std::fs::remove_file(&lock_path);
        return placed;
    }
    // Files that differ are not a failure: they are what the index is for.
    let _ = git.run(&["update-index", "-q", "--refresh"]);
    Ok(())
}

const REFLOG: &str = "ic: restore checkpoint";

fn dirs(root: &Path) -> Result<GitDirs> {
    ic_store::git_dirs(root).ok_or_else(|| {
        Diagnosis::new(Code::GitFailed, format!("{} is not a git work tree any more.", root.display()))
            .hint("the files alone can be restored: --strategy files-only")
    })
}

fn busy(what: &str) -> Diagnosis {
    Diagnosis::new(Code::GitBusy, format!("Git's state was not restored: {what}."))
        .hint("try again; or restore the files alone: --strategy files-only")
}

fn unsupported(what: &str) -> Diagnosis {
    Diagnosis::new(Code::GitUnsupported, format!("Git's state cannot be restored: {what}."))
        .hint("restore the files alone: --strategy files-only")
}

fn refuse_operations(target: &GitState, current: &GitState, dirs: &GitDirs) -> Result<()> {
    let in_progress = |operation: &str, when: &str| {
        Diagnosis::new(Code::GitInProgress, format!("A {operation} {when} in progress."))
            .hint("finish or abort it, or restore the files alone: --strategy files-only")
            .detail("operation", operation)
    };
    if let Some(operation) = &current.operation {
        return Err(in_progress(operation, "is"));
    }
    if let Some(operation) = &target.operation {
        return Err(in_progress(operation, "was, when the checkpoint was taken,"));
    }
    if dirs.git_dir.join("index.lock").exists() {
        return Err(busy("another git command holds the index"));
    }
    Ok(())
}

fn refuse_special_entries(target: &[u8], current: &[u8]) -> Result<()> {
    let (target, current) = (index::parse(target).0, index::parse(current).0);
    let sparse = |lines: &[Line<'_>]| lines.iter().any(|line| line.tag.eq_ignore_ascii_case(&b'S'));
    if sparse(&target) || sparse(&current) {
        return Err(unsupported("the checkout is sparse"));
    }
    let submodules = |lines: &[Line<'_>]| -> Vec<(Vec<u8>, String)> {
        let of = |line: &&Line<'_>| line.is_submodule();
        lines.iter().filter(of).map(|line| (line.path.to_vec(), line.meta.to_owned())).collect()
    };
    if submodules(&target) != submodules(&current) {
        return Err(unsupported("a submodule changed"));
    }
    Ok(())
}

fn refuse_branches_elsewhere(git: &Git<'_>, root: &Path, plan: &GitPlan) -> Result<()> {
    if plan.refs.is_empty() {
        return Ok(());
    }
    let listed = git.run(&["worktree", "list", "--porcelain", "-z"])?;
    let own = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let mut tree: &[u8] = b"";
    for field in listed.split(|b| *b == 0) {
        if let Some(path) = field.strip_prefix(b"worktree ") {
            tree = path;
        } else if let Some(branch) = field.strip_prefix(b"branch ")
            && ic_store::path_from_bytes(tree) != own
            && plan.refs.iter().any(|moved| moved.name == branch)
        {
            let (branch, tree) = (String::from_utf8_lossy(branch), String::from_utf8_lossy(tree));
            return Err(unsupported(&format!("{branch} would move and is checked out in {tree}")));
        }
    }
    Ok(())
}

/// Commits that were reachable and will not be.
fn new_commits(git: &Git<'_>, plan: &GitPlan, target: &GitState, current: &GitState) -> Result<Vec<String>> {
    let detached = current.head.as_deref().filter(|_| plan.head && current.branch.is_none());
    let gone: Vec<&str> =
        plan.refs.iter().filter_map(|moved| moved.from.as_deref()).chain(detached).collect();
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let tips: Vec<&str> = target.tips().collect::<BTreeSet<_>>().into_iter().collect();
    let known = existing(git, &tips)?;
    let lines: String = gone
        .iter()
        .map(|oid| format!("{oid}\n"))
        .chain(known.iter().map(|oid| format!("^{oid}\n")))
        .collect();
    let output = git.run_with(&["rev-list", "--stdin"], lines.as_bytes())?;
    Ok(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
}

/// Puts objects back that git has collected since.
fn bring_back(git: &Git<'_>, target: &GitState, objects: &Objects) -> Result<()> {
    let text = index::read(objects, target.index)?;
    let lines = index::parse(&text).0;
    let entries = lines.iter().filter(|line| !line.is_submodule()).map(Line::oid);
    let needed: Vec<&str> = target
        .branches()
        .map(|(_, commit)| commit)
        .chain(target.head.as_deref())
        .chain(target.stash.iter().map(|stash| stash.commit.as_str()))
        .chain(entries)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    if existing(git, &needed)?.len() == needed.len() {
        return Ok(());
    }
    for pack in &target.packs {
        git.run_with(&["unpack-objects", "-q"], &objects.read(&pack.0)?)?;
    }
    let there: BTreeSet<&str> = existing(git, &needed)?.into_iter().collect();
    match needed.iter().find(|oid| !there.contains(*oid)) {
        None => Ok(()),
        Some(oid) => Err(Diagnosis::new(
            Code::GitFailed,
            format!("Git has lost {oid}, and it is from before the first checkpoint."),
        )
        .hint("restore the files alone: --strategy files-only")
        .detail("object", *oid)),
    }
}

fn restore_head(git: &Git<'_>, target: &GitState, current: &GitState) -> Result<()> {
    let found = git.run(&["rev-parse", "--verify", "-q", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    let expected = current.branch.as_ref().map(|name| [b"refs/heads/", &name.0[..]].concat());
    let found = found.strip_suffix(b"\n").unwrap_or(&found).to_vec();
    if !found.is_empty()
        && found != b"HEAD"
        && expected.as_ref() != Some(&found)
        && !is_target(target, &found)
    {
        return Err(busy("HEAD was moved meanwhile"));
    }
    match (&target.branch, &target.head) {
        (Some(branch), _) => {
            let name = format!("refs/heads/{}", String::from_utf8_lossy(&branch.0));
            git.run(&["symbolic-ref", "-m", REFLOG, "HEAD", &name]).map(|_| ())
        }
        (None, Some(head)) => git.run(&["update-ref", "--no-deref", "-m", REFLOG, "HEAD", head]).map(|_| ()),
        (None, None) => Ok(()),
    }
}

fn is_target(target: &GitState, name: &[u8]) -> bool {
    target.branch.as_ref().is_some_and(|branch| name.strip_prefix(b"refs/heads/") == Some(&branch.0[..]))
}

/// Makes the stash anew, oldest entry first: its reflog is its order.
fn restore_stash(git: &Git<'_>, target: &[Stash], current: &[Stash]) -> Result<()> {
    if let Some(top) = current.first() {
        let mut commands = Commands::default();
        commands.delete(b"refs/stash", &top.commit);
        git.run_with(&["update-ref", "--stdin", "-z"], &commands.0)?;
    }
    for stash in target.iter().rev() {
        git.run(&["stash", "store", "-q", "-m", &stash.message, &stash.commit])?;
    }
    Ok(())
}

/// Makes an index file with these entries and flags.
fn make_index(root: &Path, path: &Path, text: &[u8]) -> Result<()> {
    let git = Git { root, index: Some(path) };
    let (lines, intended) = index::parse(text);
    let is_intended: BTreeSet<&[u8]> = intended.iter().copied().collect();
    git.run(&["read-tree", "--empty"])?;
    let mut input = Vec::new();
    for line in lines.iter().filter(|line| !is_intended.contains(line.path)) {
        input.extend_from_slice(line.meta.as_bytes());
        input.push(b'\t');
        input.extend_from_slice(line.path);
        input.push(0);
    }
    git.run_with(&["update-index", "-z", "--index-info"], &input)?;
    let unchanged: Vec<u8> = lines
        .iter()
        .filter(|line| line.tag.is_ascii_lowercase())
        .flat_map(|line| line.path.iter().copied().chain([0]))
        .collect();
    if !unchanged.is_empty() {
        git.run_with(&["update-index", "-z", "--assume-unchanged", "--stdin"], &unchanged)?;
    }
    for path in intended {
        let name = String::from_utf8_lossy(path);
        // A file that is gone again cannot be intended to be added.
        let _ = git.run(&["--literal-pathspecs", "add", "-N", "--", &name]);
    }
    Ok(())
}

/// Input of `git update-ref --stdin -z`.
#[derive(Default)]
struct Commands(Vec<u8>);

impl Commands {
    fn set(&mut self, name: &[u8], to: &str) {
        self.command(b"update ", name, &[to, ""]);
    }

    /// `from`: what it must be; `None`: it must not be there.
    fn update(&mut self, name: &[u8], to: &str, from: Option<&str>) {
        let nothing = "0".repeat(to.len());
        self.command(b"update ", name, &[to, from.unwrap_or(&nothing)]);
    }

    fn delete(&mut self, name: &[u8], from: &str) {
        self.command(b"delete ", name, &[from]);
    }

    fn command(&mut self, verb: &[u8], name: &[u8], values: &[&str]) {
        self.0.extend_from_slice(verb);
        self.0.extend_from_slice(name);
        for value in values {
            self.0.push(0);
            self.0.extend_from_slice(value.as_bytes());
        }
        self.0.push(0);
    }
}
