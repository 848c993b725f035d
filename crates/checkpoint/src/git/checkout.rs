//! Checking a commit out over whatever is there, as a rewind does; the caller saves what that would lose.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use ic_base::{Code, Diagnosis, Result};

use super::program::Git;
use super::record::operation;
use super::safe_settings::Filters;

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadStanding {
    /// The branch, without `refs/heads/`; `None`: HEAD is detached.
    pub branch: Option<Vec<u8>>,
    /// The commit; `None`: there is none yet.
    pub head: Option<String>,
}

/// What checking a commit out by force would lose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// Tracked paths that differ from HEAD, in the tree or in the index.
    pub changed: BTreeSet<Vec<u8>>,
    /// Untracked files, ignored ones too, that stand where the commit has something.
    pub in_the_way: BTreeSet<Vec<u8>>,
    /// Untracked repositories that stand where the commit has something.
    pub repositories: BTreeSet<Vec<u8>>,
}

impl Losses {
    /// Whether nothing would be lost.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.in_the_way.is_empty() && self.repositories.is_empty()
    }

    /// Every path of it.
    pub fn paths(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.changed.iter().chain(&self.in_the_way).chain(&self.repositories)
    }
}

/// What is checked out in the work tree whose top is `root`. Errors: `git_failed` also where there is no `git`.
pub fn standing(root: &Path) -> Result<HeadStanding> {
    let git = Git::new(root);
    // The two questions below answer "no" with exit code 1, and a broken repository fails as well. So that is found here first.
    git.run(&["rev-parse", "--git-dir"])?;
    // Both end with 1 where there is no such thing.
    let line = |arguments: &[&str]| {
        git.run(arguments).ok().map(|said| said.trim_ascii_end().to_vec()).filter(|said| !said.is_empty())
    };
    let branch = line(&["symbolic-ref", "--quiet", "HEAD"])
        .and_then(|name| name.strip_prefix(b"refs/heads/").map(<[u8]>::to_vec));
    let head = line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]);
    Ok(HeadStanding { branch, head: head.map(|id| String::from_utf8_lossy(&id).into_owned()) })
}

/// The whole id of the commit that `text`, at least four hex digits, names; `None` if the repository has no such commit.
pub fn commit_id(root: &Path, text: &str) -> Option<String> {
    // The text is from a row of the application. Only hex digits reach git, so it cannot be an option or an expression.
    let is_id = (4..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_id {
        return None;
    }
    let name = format!("{text}^{{commit}}");
    let said = Git::new(root).run(&["rev-parse", "--quiet", "--verify", &name]).ok()?;
    Some(String::from_utf8_lossy(said.trim_ascii_end()).into_owned()).filter(|id| !id.is_empty())
}

/// Whether git finds a commit by this name: a branch, a tag, `HEAD~2`, or an id.
pub fn has_commit_named(root: &Path, text: &str) -> bool {
    // A text that begins with a dash would be an option.
    let name = format!("{text}^{{commit}}");
    !text.is_empty()
        && !text.starts_with('-')
        && Git::new(root).run(&["rev-parse", "--quiet", "--verify", &name]).is_ok()
}

/// Whether two commits differ in one of these paths, from the root. Errors: `git_failed`.
pub fn differ_in(root: &Path, commits: [&str; 2], paths: &[Vec<u8>]) -> Result<bool> {
    let [from, to] = commits;
    let mut arguments: Vec<OsString> =
        ["diff-tree", "-r", "--name-only", "--no-renames", from, to, "--"].map(OsString::from).into();
    arguments.extend(paths.iter().map(|path| [&b":(top,literal)"[..], path].concat()).map(OsString::from_vec));
    Ok(!Git::new(root).run(&arguments)?.is_empty())
}

/// What [`checkout`] of `commit` would lose. Nothing is written.
///
/// Errors: `git_in_progress`, `git_failed`.
pub fn losses(root: &Path, commit: &str) -> Result<Losses> {
    if let Some(operation) = ic_ledger::git_dirs(root).and_then(|dirs| operation(&dirs.git_dir)) {
        return Err(Diagnosis::new(Code::GitInProgress, format!("A {operation} is in progress."))
            .hint("finish or abort it first")
            .detail("operation", operation));
    }
    let git = Git::new(root);
    // Untracked files are left to `look`: a checkout touches them only where the commit has something. It does not enter
    // submodules, because `submodule.recurse` is off.
    let status = ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"];
    let status = git.run(&[&status[..], &["--ignore-submodules=dirty"]].concat())?;
    let mut losses = Losses {
        changed: fields(&status).filter_map(|record| record.get(3..)).map(<[u8]>::to_vec).collect(),
        ..Losses::default()
    };
    // These paths of the commit are missing in the index: the checkout is going to make them.
    let added = ["diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=D", "-z", commit, "--"];
    for path in fields(&git.run(&added)?) {
        look(&git, root, path, &mut losses)?;
    }
    Ok(losses)
}

/// Adds what stands where `path`, which is not in the index, is to go.
fn look(git: &Git<'_>, root: &Path, path: &[u8], losses: &mut Losses) -> Result<()> {
    let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    // Level by level: for `a/b/c`, an untracked file `a` is in the way as well as an untracked `a/b/c`.
    for end in ends.chain([path.len()]) {
        let Ok(meta) = root.join(OsStr::from_bytes(&path[..end])).symlink_metadata() else { return Ok(()) };
        if meta.is_dir() && end < path.len() {
            continue;
        }
        if meta.is_dir() {
            for found in others(git, &path[..end])? {
                let (set, name) = match found.strip_suffix(b"/") {
                    Some(name) => (&mut losses.repositories, name.to_vec()),
                    None => (&mut losses.in_the_way, found),
                };
                set.insert(name);
            }
        // The whole path is not in the index, so a file there is untracked. A file at a level above may be tracked, so git is asked.
        } else if end == path.len() || !others(git, &path[..end])?.is_empty() {
            losses.in_the_way.insert(path[..end].to_vec());
        }
        return Ok(());
    }
    Ok(())
}

/// The untracked files at or below a path, ignored ones too; a repository of its own ends with a slash.
fn others(git: &Git<'_>, path: &[u8]) -> Result<Vec<Vec<u8>>> {
    let pathspec = OsString::from_vec([b":(literal)", path].concat());
    let arguments = ["ls-files", "--others", "-z", "--"].map(OsString::from).into_iter().chain([pathspec]);
    let said = git.run(&arguments.collect::<Vec<_>>())?;
    Ok(fields(&said).map(<[u8]>::to_vec).collect())
}

fn fields(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    said.split(|b| *b == 0).filter(|field| !field.is_empty())
}

/// Keeps a commit reachable by a ref, which is made or moved there. Errors: `git_busy`, `git_failed`.
pub fn keep(root: &Path, name: &[u8], commit: &str) -> Result<()> {
    let arguments = [OsStr::new("update-ref"), OsStr::new("--no-deref"), OsStr::from_bytes(name), OsStr::new(commit)];
    Git::new(root).run(&arguments)?;
    Ok(())
}

/// Checks a commit out by force: HEAD is detached there, tracked files and the index are as it has them.
///
/// No branch moves, and hooks do not run. Errors: `git_busy`, `git_failed`; the tree may then be changed in part.
pub fn checkout(root: &Path, commit: &str) -> Result<()> {
    // What is checked out is what git would give: filters are part of that, also of a repository that names its own.
    let git = Git::with(root, Filters::Everybodys);
    git.run(&["checkout", "--quiet", "--force", "--detach", commit, "--"])?;
    Ok(())
}
