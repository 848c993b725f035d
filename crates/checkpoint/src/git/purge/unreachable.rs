//! What a purge cannot reach of a repository, and the refs of ours that it drops.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use ic_base::Result;

use super::super::index;
use super::super::program::Git;

/// Content that is still somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// What has it: `work_tree`, `index`, `refs`, `reflog`, `objects`, `remote`, `other_paths`, `copies`, `set_aside`, `store`.
    pub place: &'static str,
    /// A sentence for people about what still has the content.
    pub message: String,
    /// A command that shows the content, or where it is.
    pub command: String,
}

/// Every object that git ever had at a path, as far as refs, reflogs and the stash go back.
pub(super) fn in_history(root: &Path, path: &[u8]) -> Result<BTreeSet<String>> {
    let pathspec = OsString::from_vec([b":(top,literal)", path].concat());
    // Without `--full-history`, git leaves out a side branch if the merge took nothing of it at the path.
    let list = ["rev-list", "--objects", "--missing=print", "--full-history", "--all", "--reflog", "--"];
    let arguments: Vec<OsString> = list.map(OsString::from).into_iter().chain([pathspec]).collect();
    let listed = Git::new(root).run(&arguments)?;
    let entry = |line: &[u8]| {
        let space = line.iter().position(|b| *b == b' ')?;
        // Directories that lead to the path are listed, too.
        (&line[space + 1..] == path).then(|| String::from_utf8_lossy(&line[..space]).into_owned())
    };
    Ok(listed.split(|b| *b == b'\n').filter_map(entry).collect())
}

/// Removes the refs of ours that reach one of these objects, and names them.
///
/// They are removed even if a branch reaches the same object: once that branch is cleaned, they would still hold it, where no person would
/// look. What they kept reachable is in the packs of its safety checkpoint. Errors: `git_busy`, `git_failed`: none was removed.
pub fn drop_refs(root: &Path, blobs: &BTreeSet<String>) -> Result<Vec<String>> {
    if blobs.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Ok(Vec::new());
    }
    let git = Git::new(root);
    let Some(listed) = git.ask(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/ic/"])? else {
        return Ok(Vec::new());
    };
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut by_commit: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (commit, name) in listed.lines().filter_map(|line| line.split_once(' ')) {
        by_commit.entry(commit).or_default().push(name);
    }
    let tips: Vec<&str> = by_commit.keys().copied().collect();
    // Mostly none of them reaches it: all are asked at once before each by itself.
    if tips.is_empty() || !reaches(&git, &tips, &[], blobs)? {
        return Ok(Vec::new());
    }
    let (mut clean, mut dropped) = (Vec::new(), Vec::new());
    for (commit, names) in &by_commit {
        // What a clean one reaches is clean, and is not walked again: these refs share nearly all of their history.
        if reaches(&git, &[*commit], &clean, blobs)? {
            dropped.extend(names.iter().map(|name| (*name).to_owned()));
        } else {
            clean.push(*commit);
        }
    }
    let input: String = dropped.iter().map(|name| format!("delete {name}\0\0")).collect();
    // One transaction, and of a symbolic ref only itself.
    git.run_with(&["update-ref", "--no-deref", "--stdin", "-z"], input.as_bytes())?;
    Ok(dropped)
}

/// Whether one of `tips` reaches one of the objects; `clean` are known to reach none.
fn reaches(git: &Git<'_>, tips: &[&str], clean: &[&str], blobs: &BTreeSet<String>) -> Result<bool> {
    let tips = tips.iter().map(|tip| format!("{tip}\n"));
    let input: String = tips.chain(clean.iter().map(|commit| format!("^{commit}\n"))).collect();
    let walk = ["rev-list", "--objects", "--missing=print", "--stdin"];
    let listed = git.run_with(&walk, input.as_bytes())?;
    Ok(has_one(&listed, blobs))
}

fn has_one(listed: &[u8], blobs: &BTreeSet<String>) -> bool {
    let text = String::from_utf8_lossy(listed).into_owned();
    text.lines().filter_map(|line| line.split(' ').next()).any(|oid| blobs.contains(oid))
}

/// Where the repository still has these objects, each with the command that shows it.
pub fn left(root: &Path, path: &[u8], blobs: &BTreeSet<String>) -> Result<Vec<Unreachable>> {
    let name = String::from_utf8_lossy(path).into_owned();
    let quoted = ic_base::shell_word(&name);
    let mut left = Vec::new();
    let mut add = |place, message: String, command: String| left.push(Unreachable { place, message, command });
    if root.join(ic_ledger::path_from_bytes(path)).symlink_metadata().is_ok() {
        add(
            "work_tree",
            "the file is in the working tree; checkpoints leave it out while its content is purged".to_owned(),
            format!("ls -l -- {quoted}"),
        );
    }
    if blobs.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Ok(left);
    }
    let git = Git::new(root);
    let oids: Vec<&str> = blobs.iter().map(String::as_str).collect();
    let there = super::super::pack::existing(&git, &oids)?;
    let Some(first) = there.first() else { return Ok(left) };
    let indexed = index::listing(&git)?;
    let staged = paths_in_index(&indexed, blobs);
    if !staged.is_empty() {
        let words: Vec<String> =
            staged.iter().map(|path| ic_base::shell_word(&String::from_utf8_lossy(path))).collect();
        let command = format!("git ls-files -s -- {}", words.join(" "));
        add("index", "git's index has it".to_owned(), command);
    }
    let walk = |which: &[&str]| {
        let walk = [&["rev-list", "--objects", "--missing=print"], which].concat();
        git.run(&walk).map(|listed| has_one(&listed, blobs))
    };
    let shows = |which: &str| format!("git log {which} --oneline --find-object={first}");
    if walk(&["--all"])? {
        add("refs", "branches, tags or the stash of the repository reach it".to_owned(), shows("--all"));
    }
    // Refs were named above: only what no ref reaches counts here.
    if walk(&["--reflog", "--not", "--all"])? {
        add("reflog", "the repository's reflogs reach it".to_owned(), shows("--reflog"));
    }
    add(
        "objects",
        "git keeps it as an unreachable object until: git gc --prune=now".to_owned(),
        format!("git cat-file -t {first}"),
    );
    let remotes = git.run(&["remote"])?;
    for remote in String::from_utf8_lossy(&remotes).lines() {
        let which = format!("--remotes={remote}");
        add("remote", format!("{remote} may have it: ic does not query remotes"), shows(&which));
    }
    Ok(left)
}

/// The paths of an index that have one of these objects.
fn paths_in_index(text: &[u8], blobs: &BTreeSet<String>) -> BTreeSet<Vec<u8>> {
    let (lines, _) = index::parse(text);
    let has = |line: &&index::IndexLine<'_>| line.meta.split(' ').nth(1).is_some_and(|oid| blobs.contains(oid));
    lines.iter().filter(has).map(|line| line.path.to_vec()).collect()
}
