//! Which commit is checked out, and what was committed since another one was.

use std::path::Path;

use ic_base::Result;
use ic_ledger::regular_file::read_line;

use super::program::Git;

/// The id of the commit that is checked out; `None` without one, without git, or outside of a repository.
///
/// It reads git's files, which takes microseconds, and asks the program only where they do not say.
pub fn head(root: &Path) -> Option<String> {
    ic_ledger::git_dirs(root)?;
    // Where git's files do not say, as with refs in tables, git is asked.
    head_in_files(root).or_else(|| {
        let said = Git::new(root).ask(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).ok()??;
        Some(String::from_utf8_lossy(&said).trim().to_owned()).filter(|text| is_id(text))
    })
}

fn is_id(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// As [`head`], and no process is started: `None`, too, where git's files do not say.
pub fn head_in_files(root: &Path) -> Option<String> {
    /// More of packed refs is not read.
    const LONGEST: u64 = 4 << 20;
    let dirs = ic_ledger::git_dirs(root)?;
    let line = String::from_utf8(read_line(&dirs.git_dir.join("HEAD")).ok()?).ok()?;
    let Some(name) = line.trim_end().strip_prefix("ref: ") else {
        return Some(line.trim_end().to_owned()).filter(|text| is_id(text));
    };
    if let Some(loose) = read_line(&dirs.common_dir.join(name)).ok().and_then(|b| String::from_utf8(b).ok()) {
        return Some(loose.trim_end().to_owned()).filter(|text| is_id(text));
    }
    let packed = dirs.common_dir.join("packed-refs");
    let text = packed.metadata().is_ok_and(|meta| meta.len() <= LONGEST).then(|| std::fs::read(&packed).ok());
    let text = String::from_utf8_lossy(&text.flatten()?).into_owned();
    let found = text.lines().find_map(|line| line.split_once(' ').filter(|(_, of)| *of == name));
    found.map(|(id, _)| id.to_owned()).filter(|text| is_id(text))
}

/// The branch that is checked out, without `refs/heads/`; `None` where HEAD is detached or on another ref, without git, or outside of a
/// repository.
///
/// It reads git's files, as [`head`] does.
pub fn branch(root: &Path) -> Option<Vec<u8>> {
    const BRANCHES: &[u8] = b"refs/heads/";
    // The content of HEAD in a repository whose refs are in tables: only git knows the branch.
    const ELSEWHERE: &[u8] = b"refs/heads/.invalid";
    let dirs = ic_ledger::git_dirs(root)?;
    let line = read_line(&dirs.git_dir.join("HEAD")).ok()?;
    let name = line.trim_ascii_end().strip_prefix(b"ref: ")?.to_vec();
    let name = if name == ELSEWHERE {
        Git::new(root).ask(&["symbolic-ref", "--quiet", "HEAD"]).ok()??.trim_ascii_end().to_vec()
    } else {
        name
    };
    name.strip_prefix(BRANCHES).map(<[u8]>::to_vec)
}

/// Whether there is a ref of this whole name. Without git there is none.
pub fn is_ref(root: &Path, name: &str) -> bool {
    matches!(Git::new(root).ask(&["rev-parse", "--quiet", "--verify", "--end-of-options", name]), Ok(Some(_)))
}

const LOG: [&str; 7] =
    ["log", "--name-only", "--no-renames", "--no-show-signature", "--ignore-missing", "--format=%H%x09", "--stdin"];

/// The commits that are checked out now, were not at `since` (`None`: there was none), and to which none of `known` leads, as `git log
/// --name-only --format=%H%x09` prints them, newest first. What a switch to a known branch brought is not among them.
///
/// Errors: `git_failed`.
pub fn log_since(root: &Path, since: Option<&str>, known: &[String]) -> Result<Vec<u8>> {
    let revisions = format!("HEAD\n{}", excluding(since.into_iter().chain(known.iter().map(String::as_str))));
    Ok(Git::new(root).run_with(&LOG, revisions.as_bytes())?)
}

/// These commits, as [`log_since`] prints them, in reverse order.
///
/// Errors: `git_failed`.
pub fn log_of(root: &Path, shas: &[String]) -> Result<Vec<u8>> {
    // Asked for none, git would print the commit that is checked out.
    if shas.is_empty() {
        return Ok(Vec::new());
    }
    let revisions: String = shas.iter().rev().map(|sha| format!("{sha}\n")).collect();
    let log: Vec<&str> = LOG.iter().copied().chain(["--no-walk=unsorted"]).collect();
    Ok(Git::new(root).run_with(&log, revisions.as_bytes())?)
}

/// The commits that a remote has, to which none of `known` leads, and which were made before a time in seconds since 1970: what was
/// fetched, and not what was committed and pushed.
///
/// Errors: `git_failed`.
pub fn fetched_before(root: &Path, seconds: i64, known: &[String]) -> Result<Vec<String>> {
    let before = format!("--before=@{seconds}");
    let list = ["rev-list", "--ignore-missing", &before, "--remotes", "--stdin"];
    let said = Git::new(root).run_with(&list, excluding(known.iter().map(String::as_str)).as_bytes())?;
    Ok(String::from_utf8_lossy(&said).lines().map(str::to_owned).collect())
}

fn excluding<'o>(oids: impl Iterator<Item = &'o str>) -> String {
    oids.map(|oid| format!("^{oid}\n")).collect()
}

/// A commit that changed a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathCommit {
    /// Its whole id, in hex.
    pub sha: String,
    /// The name of its author.
    pub author: String,
    /// When it was made, in seconds since 1970.
    pub seconds: i64,
    /// The first line of its message.
    pub subject: String,
}

/// The commits that changed a path (relative to the root), newest first, at most `at_most`. Empty without git, or outside of a
/// repository.
pub fn commits_of_path(root: &Path, path: &[u8], at_most: usize) -> Vec<PathCommit> {
    use std::os::unix::ffi::OsStrExt;
    if ic_ledger::git_dirs(root).is_none() {
        return Vec::new();
    }
    let most = format!("--max-count={at_most}");
    let words: [&str; 7] = [
        // A `*` or a `[` in a name would be a pattern.
        "--literal-pathspecs",
        "log",
        &most,
        "--no-show-signature",
        "--no-renames",
        "--format=%H%x00%an%x00%ct%x00%s",
        "--",
    ];
    let mut words: Vec<&std::ffi::OsStr> = words.iter().map(std::ffi::OsStr::new).collect();
    words.push(std::ffi::OsStr::from_bytes(path));
    let said = Git::new(root).run(&words).unwrap_or_default();
    let lines = String::from_utf8_lossy(&said).into_owned();
    let commits = lines.lines().filter_map(|line| {
        let mut parts = line.splitn(4, '\0').map(str::to_owned);
        let (sha, author) = (parts.next()?, parts.next()?);
        Some(PathCommit { sha, author, seconds: parts.next()?.parse().ok()?, subject: parts.next()? })
    });
    commits.collect()
}
