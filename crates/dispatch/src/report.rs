//! What a dispatch reports of its commits and files, and how such a report is read. Pure.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::path_from_bytes;
use serde::Deserialize;

/// Commits, oldest first, and files that belong to no commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatchReport {
    /// The commits of the report, oldest first.
    pub commits: Vec<ReportedCommit>,
    /// Changed files that the report names by themselves, without a commit.
    pub files: Vec<PathBuf>,
}

/// A commit and the files that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedCommit {
    /// 7 to 64 hex digits, in lower case.
    pub sha: String,
    /// Paths from the repository's top.
    pub files: Vec<PathBuf>,
}

/// A checked commit id. Errors: `invalid_value`.
pub fn parse_sha(text: &str) -> Result<String> {
    // Git abbreviates to 7 digits or more by default; fewer would soon name several commits.
    if (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(invalid(format!("{text:?} is not a commit id: 7 to 64 hex digits."))
        .hint("write it as git does: git rev-parse HEAD; or use git log --format=%H | ic dispatch record ID --stdin"))
}

/// Refuses paths that name nothing. Errors: `invalid_value`.
pub fn check_file(path: &Path) -> Result<()> {
    let bytes = ic_ledger::path_bytes(path);
    // 4096 is PATH_MAX of Linux, and no path has a NUL in it.
    if bytes.is_empty() || bytes.contains(&0) || bytes.len() > 4096 {
        return Err(invalid(format!("{:?} is not a path: 1 to 4096 bytes, none of them NUL.", path.to_string_lossy())));
    }
    Ok(())
}

/// Reads a report: JSON Lines `{"commit": SHA, "files": [...]}`, oldest first (a line without `commit` names files
/// alone), or the output of `git log --name-only --format=%H`, newest first. With `--format=%H%x09` a file whose name
/// looks like a commit id is no riddle: git quotes names with tabs, so only commits end in one. Without it such a file is known by
/// its place, unless it is the last of a commit's files and not the only one.
///
/// Errors: `invalid_value`, with the number of the line.
pub fn parse(bytes: &[u8]) -> Result<DispatchReport> {
    match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
        None => Ok(DispatchReport::default()),
        // No line of git's log begins like that before the first commit.
        Some(b'{') => parse_json_lines(bytes),
        Some(_) => parse_git_log(bytes),
    }
}

/// The longest line of JSON. A line is taken apart as a whole, which takes twenty times its length in memory.
const MAX_LINE: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    commit: Option<String>,
    #[serde(default)]
    files: Vec<String>,
}

fn parse_json_lines(bytes: &[u8]) -> Result<DispatchReport> {
    let mut report = DispatchReport::default();
    for (number, line) in lines(bytes) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let at = |why: String| invalid(format!("Line {number}: {why}"));
        if line.len() > MAX_LINE {
            let why = format!("it is {} bytes long; at most {MAX_LINE} are allowed.", line.len());
            return Err(at(why).hint("give the files of a commit in several lines that name the same commit"));
        }
        let line: Line = serde_json::from_slice(line).map_err(|e| at(format!("{e}.")))?;
        let files: Vec<PathBuf> = line.files.iter().map(PathBuf::from).collect();
        for file in &files {
            check_file(file).map_err(|e| at(e.message().to_owned()))?;
        }
        match line.commit {
            Some(sha) => {
                let sha = parse_sha(&sha).map_err(|e| at(e.message().to_owned()))?;
                report.commits.push(ReportedCommit { sha, files });
            }
            None => report.files.extend(files),
        }
    }
    Ok(report)
}

fn parse_git_log(bytes: &[u8]) -> Result<DispatchReport> {
    let mut report = DispatchReport::default();
    //   bbbb...            the newest commit
    //                      an empty line, only where files follow
    //   src/a.rs           its files, up to the next id
    //   aaaa...            the next commit, without an empty line before it
    //
    // So a line of 40 hex digits may be a commit or a file of that name. Its place decides, or the tab of `%H%x09`.
    let mut tabbed = None;
    let lines: Vec<(usize, &[u8])> =
        // The log may come through a file with the line ends of Windows.
        lines(bytes).map(|(number, line)| (number, line.strip_suffix(b"\r").unwrap_or(line))).collect();
    // Git puts an empty line between a commit and its files: from then on lines are files until another commit.
    let mut is_in_files = false;
    let files = files_by_their_place(&lines);
    for (at, (number, line)) in lines.iter().copied().enumerate() {
        if line.is_empty() {
            let before = at.checked_sub(1).and_then(|before| lines.get(before));
            is_in_files = before.is_some_and(|(_, line)| whole_sha(line.trim_ascii_end()).is_some());
            continue;
        }
        // The first line decides for all: where commits end with a tab, a file is never taken for one.
        let tabbed = *tabbed.get_or_insert(line.ends_with(b"\t"));
        // No id is empty: among commits that end with a tab, a line without one is a file.
        let commit = if tabbed { line.strip_suffix(b"\t").unwrap_or_default() } else { line };
        let is_file = !tabbed && is_in_files && files[at];
        if let Some(sha) = whole_sha(commit).filter(|_| !is_file) {
            report.commits.push(ReportedCommit { sha, files: Vec::new() });
            is_in_files = false;
            continue;
        }
        let Some(commit) = report.commits.last_mut() else {
            return Err(invalid(format!(
                "Line {number} is neither a commit nor a file of one: the input must be the output of git log --name-only --format=%H, or JSON Lines."
            )));
        };
        let file = path_from_bytes(&unquote(line));
        check_file(&file)?;
        commit.files.push(file);
    }
    // Git names the newest first, and a report has the oldest first.
    report.commits.reverse();
    Ok(report)
}

/// Of each line, whether it can only be a file when it stands among files, though it may look like a commit: one stands before an empty line,
/// another commit or the end, and a commit has files where it is followed by an empty line.
fn files_by_their_place(lines: &[(usize, &[u8])]) -> Vec<bool> {
    // The lines are read from the end: at an id, this says whether the next line below that is not an id is a file.
    let mut leads_to_a_file = false;
    let mut files = vec![false; lines.len()];
    for (at, (_, line)) in lines.iter().enumerate().rev() {
        if whole_sha(line).is_none() {
            leads_to_a_file = !line.is_empty();
        }
        let is_first = at.checked_sub(1).is_some_and(|before| lines[before].1.is_empty());
        files[at] = leads_to_a_file || is_first;
    }
    files
}

/// A line that is a whole commit id (SHA-1 or SHA-256).
fn whole_sha(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    (matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    bytes.split(|b| *b == b'\n').enumerate().map(|(i, line)| (i + 1, line))
}

/// Undoes git's C-style quoting of unusual file names (git-config(1), `core.quotePath`).
fn unquote(line: &[u8]) -> Vec<u8> {
    let Some(quoted) = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")) else {
        return line.to_vec();
    };
    let mut out = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = tail;
            continue;
        }
        let (value, used) = escape(tail);
        out.push(value);
        rest = &tail[used..];
    }
    out
}

/// The byte that an escape stands for after its backslash, and the number of characters that it takes.
fn escape(tail: &[u8]) -> (u8, usize) {
    let octal = match tail {
        // The first of the three has two bits.
        [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')),
        _ => None,
    };
    match (octal, tail.first()) {
        (Some(value), _) => (value, 3),
        (None, Some(b'a')) => (7, 1),
        (None, Some(b'b')) => (8, 1),
        (None, Some(b't')) => (b'\t', 1),
        (None, Some(b'n')) => (b'\n', 1),
        (None, Some(b'v')) => (11, 1),
        (None, Some(b'f')) => (12, 1),
        (None, Some(b'r')) => (b'\r', 1),
        // A quote or a backslash stands for itself.
        (None, Some(other)) => (*other, 1),
        (None, None) => (b'\\', 0),
    }
}

fn invalid(message: String) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, message)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use ic_ledger::path_bytes;
    use proptest::prelude::*;

    use super::{DispatchReport, ReportedCommit, parse, parse_sha};

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn git_log_is_read_newest_first() {
        let log = format!("{B}\n\nsrc/a b.rs\n\"\\346\\226\\207\\t\\\".md\"\n{A}\n");
        let report = parse(log.as_bytes()).unwrap();
        assert_eq!(
            report.commits,
            [
                ReportedCommit { sha: A.into(), files: vec![] },
                ReportedCommit { sha: B.into(), files: vec![PathBuf::from("src/a b.rs"), PathBuf::from("文\t\".md")] },
            ]
        );
    }

    #[test]
    fn with_tabs_a_file_may_look_like_a_commit() {
        let report = parse(format!("{B}\t\n\n{A}\n").as_bytes()).unwrap();
        assert_eq!(report.commits, [ReportedCommit { sha: B.into(), files: vec![PathBuf::from(A)] }]);
    }

    #[test]
    fn a_name_that_is_not_utf8_keeps_its_bytes() {
        let report = parse(format!("{A}\n\n\"\\377x\"\n").as_bytes()).unwrap();
        assert_eq!(path_bytes(&report.commits[0].files[0]), b"\xffx");
    }

    #[test]
    fn json_lines_are_read_oldest_first() {
        let report =
            parse(b"{\"commit\":\"AAAAAAA\",\"files\":[\"x\"]}\n\n{\"commit\":\"bbbbbbb\"}\n{\"files\":[\"y\"]}\n")
                .unwrap();
        let shas: Vec<&str> = report.commits.iter().map(|c| c.sha.as_str()).collect();
        assert_eq!((shas, report.files), (vec!["aaaaaaa", "bbbbbbb"], vec![PathBuf::from("y")]));
    }

    #[test]
    fn nothing_is_an_empty_report_and_nonsense_is_refused() {
        assert_eq!(parse(b" \n").unwrap(), DispatchReport::default());
        for bad in [&b"hello"[..], b"{\"commit\":\"xyz\"}", b"{\"commit\":1}", b"{\"comit\":\"aaaaaaa\"}", b"{"] {
            assert!(parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        for bad in ["", "abcdef", "g234567", &"a".repeat(65)] {
            assert!(parse_sha(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn files_that_look_like_commits_are_files() {
        let (one, two, hex) = ("1".repeat(40), "2".repeat(40), "a".repeat(40));
        for (text, wanted) in [
            (format!("{one}\n\n{hex}\n"), vec![(&one, vec![hex.as_str()])]),
            (format!("{one}\n\nA\n{hex}\nb\n"), vec![(&one, vec!["A", &hex, "b"])]),
            (format!("{one}\n\n{hex}\n{two}\n\nb\n"), vec![(&two, vec!["b"]), (&one, vec![&hex])]),
            // Commits without files, as merges are.
            (format!("{one}\n\na\n{two}\n{hex}\n\nb\n"), vec![(&hex, vec!["b"]), (&two, vec![]), (&one, vec!["a"])]),
            (format!("{one}\n{two}\n"), vec![(&two, vec![]), (&one, vec![])]),
            // With a mark at each commit there is nothing to guess.
            (format!("{one}\t\n\nA\n{hex}\n"), vec![(&one, vec!["A", &hex])]),
        ] {
            let report = parse(text.as_bytes()).unwrap();
            let found: Vec<(&String, Vec<&str>)> = report
                .commits
                .iter()
                .map(|commit| (&commit.sha, commit.files.iter().map(|file| file.to_str().unwrap()).collect()))
                .collect();
            assert_eq!(found, wanted, "{text}");
        }
    }
}
