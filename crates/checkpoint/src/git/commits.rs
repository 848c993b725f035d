//! What became of commits: where they are now, and who has them.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::program::Git;

/// A commit, and where it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitCommit {
    /// Its whole id, or what was asked for if the repository does not have it.
    pub sha: String,
    /// The first line of its message; empty if the repository does not have it.
    pub subject: String,
    /// The name of its author; empty if the repository does not have it.
    pub author: String,
    /// When it was written first, in seconds since 1970: an amend and a rebase keep that. `None`: the repository does not have it.
    pub written_at: Option<i64>,
    /// It has several parents.
    pub is_merge: bool,
    /// A branch of a remote has it, as far as this repository knows.
    pub is_pushed: bool,
}

/// What became of each of these commits, in their order. Without git, or outside of a repository, none is known.
pub fn commits(root: &Path, shas: &[String]) -> Vec<GitCommit> {
    const LOG: [&str; 6] = [
        "log",
        "--no-walk=unsorted",
        "--no-show-signature",
        "--ignore-missing",
        "--format=%H%x00%P%x00%at%x00%an%x00%s",
        "--stdin",
    ];
    // What no remote reaches; a second `--not` lets what is asked for count again.
    const OUT_OF_REMOTES: [&str; 5] = ["rev-list", "--not", "--remotes", "--not", "--stdin"];
    // Anything else could be an option or an expression to git.
    let is_id = |sha: &&String| sha.len() >= 4 && sha.as_bytes().iter().all(u8::is_ascii_hexdigit);
    let shas: Vec<String> = shas.iter().filter(is_id).cloned().collect();
    if shas.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Vec::new();
    }
    let git = Git::new(root);
    let ask = |arguments: &[&str], asked: &str| {
        let said = git.run_with(arguments, asked.as_bytes()).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    };
    let log = ask(&LOG, &(shas.join("\n") + "\n"));
    let known: Vec<Vec<&str>> = log.lines().map(|line| line.splitn(5, '\0').collect()).collect();
    // Without a remote nothing is pushed, and one process fewer is started.
    let asked: String = known.iter().map(|commit| format!("{}\n", commit[0])).collect();
    let out_of_remotes = if has_remotes(root) { ask(&OUT_OF_REMOTES, &asked) } else { asked };
    let out_of_remotes: HashSet<&str> = out_of_remotes.lines().collect();
    let mut found = Vec::new();
    for sha in shas {
        // Git says the whole id, which may have been recorded by its first digits.
        let said = known.iter().find(|commit| commit[0].starts_with(sha.as_str()));
        found.push(match said.map(Vec::as_slice) {
            Some([whole, parents, written, author, subject]) => GitCommit {
                sha: (*whole).to_owned(),
                subject: (*subject).to_owned(),
                author: (*author).to_owned(),
                written_at: written.parse().ok(),
                is_merge: parents.contains(' '),
                is_pushed: !out_of_remotes.contains(whole),
            },
            _ => GitCommit { sha, ..GitCommit::default() },
        });
    }
    found
}

/// The commits that `to` has and `from` has not, newest first, at most `at_most`. Empty if git does not know one of both.
pub fn commits_between(root: &Path, from: &str, to: &str, at_most: usize) -> Vec<String> {
    if ic_ledger::git_dirs(root).is_none() || from == to {
        return Vec::new();
    }
    let (most, range) = (format!("--max-count={at_most}"), format!("{from}..{to}"));
    let said = answer(&Git::new(root), &["rev-list", &most, &range, "--"]).unwrap_or_default();
    said.lines().map(str::to_owned).collect()
}

/// The newest commit that two commits both have; `None`: there is none, or git cannot tell.
pub fn merge_base(root: &Path, one: &str, other: &str) -> Option<String> {
    answer(&Git::new(root), &["merge-base", one, other]).map(|base| base.trim().to_owned())
}

/// Those of these commits that none of the `refs` reaches; all of them where git cannot tell.
pub fn not_reached(root: &Path, commits: &[String], refs: &[String]) -> Vec<String> {
    let without = refs.iter().map(|sha| format!("^{sha}\n"));
    let lines: String = commits.iter().map(|sha| format!("{sha}\n")).chain(without).collect();
    match Git::new(root).run_with(&["rev-list", "--ignore-missing", "--stdin"], lines.as_bytes()) {
        Ok(said) => {
            let found = String::from_utf8_lossy(&said).lines().map(str::to_owned).collect::<HashSet<_>>();
            commits.iter().filter(|sha| found.contains(*sha)).cloned().collect()
        }
        Err(_) => commits.to_vec(),
    }
}

/// What each of these commits has at a path, in their order; `None`: nothing, or nothing that could be asked for.
pub fn contents(root: &Path, asked: &[(String, Vec<u8>)]) -> Vec<Option<Vec<u8>>> {
    // There is one question a line, so a name with a line break would be two.
    let is_name = |path: &[u8]| !path.contains(&b'\n');
    let lines = asked.iter().filter(|(_, path)| is_name(path));
    let lines: Vec<u8> =
        lines.flat_map(|(sha, path)| [sha.as_bytes(), b":", path.as_slice(), b"\n"].concat()).collect();
    let said = Git::new(root).run_with(&["cat-file", "--batch"], &lines).unwrap_or_default();
    let mut rest = said.as_slice();
    let mut next = || {
        let end = rest.iter().position(|b| *b == b'\n')?;
        let (head, body) = (&rest[..end], &rest[end + 1..]);
        let mut words = head.rsplit(|b| *b == b' ');
        let size = words.next().and_then(|size| std::str::from_utf8(size).ok()?.parse::<usize>().ok());
        let is_blob = words.next() == Some(b"blob");
        // After a content stands one more end of a line; of what is missing only its name is said.
        let Some(size) = size.filter(|size| words.next().is_some() && body.len() > *size) else {
            rest = body;
            return None;
        };
        rest = &body[size + 1..];
        is_blob.then(|| body[..size].to_vec())
    };
    asked.iter().map(|(_, path)| if is_name(path) { next() } else { None }).collect()
}

/// The paths of an entry of the stash, those that git did not track too. Without the entry there are none.
pub fn stashed_paths(root: &Path, entry: &str) -> Vec<Vec<u8>> {
    let git = Git::new(root);
    // The third parent of an entry has the files that git did not track; most entries have none.
    let (base, untracked) = (format!("{entry}^1"), format!("{entry}^3"));
    let tracked = git.ask(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", &base, entry, "--"]);
    let untracked = git.ask(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &untracked]);
    let said = [tracked, untracked].into_iter().flat_map(|said| said.ok().flatten().unwrap_or_default());
    let all: Vec<u8> = said.collect();
    all.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}

/// The submodules that these commits moved, brought or removed, each against its first parent.
pub fn moved_submodules(root: &Path, shas: &[String]) -> BTreeSet<Vec<u8>> {
    let is_submodule = |modes: &[u32; 2]| modes.contains(&0o160_000);
    changed_entries(root, shas).into_iter().filter(|(_, modes)| is_submodule(modes)).map(|(path, _)| path).collect()
}

/// The paths that these commits changed, each against its first parent, with git's modes before and after; zero where nothing was.
pub fn changed_entries(root: &Path, shas: &[String]) -> Vec<(Vec<u8>, [u32; 2])> {
    if shas.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Vec::new();
    }
    // Missing commits are ignored: a commit that is gone moved nothing that is checked out.
    let look = ["log", "--no-walk=unsorted", "--ignore-missing", "--no-show-signature", "--first-parent", "-z", "-r"];
    let shown = ["--raw", "--format=", "--no-renames", "--ignore-submodules=none"];
    let shas = shas.iter().map(String::as_str);
    let arguments: Vec<&str> = look.into_iter().chain(shown).chain(shas).chain(["--"]).collect();
    let said = Git::new(root).ask(&arguments).ok().flatten().unwrap_or_default();
    let mut parts = said.split(|b| *b == 0);
    let mut changed = Vec::new();
    // A colon, two modes and what else there is to say of an entry; then its path.
    while let Some(entry) = parts.find(|part| part.starts_with(b":")) {
        let mode = |digits: &[u8]| std::str::from_utf8(digits).ok().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let mut modes = entry[1..].split(|b| *b == b' ').map(|digits| mode(digits).unwrap_or_default());
        let modes = [modes.next().unwrap_or_default(), modes.next().unwrap_or_default()];
        changed.extend(parts.next().map(|path| (path.to_vec(), modes)));
    }
    changed
}

/// Those of these commits that HEAD, a branch, a tag or a remote still has, in their order: what was amended, or taken off again, is not.
pub(super) fn still_reached(root: &Path, mut shas: Vec<String>) -> Vec<String> {
    if shas.is_empty() {
        return shas;
    }
    let asked = (shas.join("\n") + "\n").into_bytes();
    // The second `--not` ends the first: refs are excluded, and the input is asked for. A commit that was amended may be
    // collected by now, which is not an error here.
    let lost = ["rev-list", "--ignore-missing", "--not", "HEAD", "--all", "--not", "--stdin"];
    let lost = Git::new(root).run_with(&lost, &asked).unwrap_or_default();
    let lost = String::from_utf8_lossy(&lost);
    let lost: HashSet<&str> = lost.lines().collect();
    shas.retain(|sha| !lost.contains(sha.as_str()));
    shas
}

/// Whether there may be a branch of a remote: a file of its own, a line in the file of packed refs, or tables, which are not read here.
fn has_remotes(root: &Path) -> bool {
    let Some(dirs) = ic_ledger::git_dirs(root) else { return true };
    let may_hold = |file: &str| match std::fs::read(dirs.common_dir.join(file)) {
        Ok(text) => text.split(|b| *b == b'\n').any(|line| {
            let name = line.splitn(2, |b| *b == b' ').nth(1);
            name.is_some_and(|name| name.starts_with(b"refs/remotes/"))
        }),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    let common = &dirs.common_dir;
    common.join("refs/remotes").exists() || common.join("reftable").exists() || may_hold("packed-refs")
}

/// What git says; `None` where it does not know, which is an answer here.
fn answer(git: &Git<'_>, arguments: &[&str]) -> Option<String> {
    let said = git.ask(arguments).ok()??;
    Some(String::from_utf8_lossy(&said).into_owned())
}
