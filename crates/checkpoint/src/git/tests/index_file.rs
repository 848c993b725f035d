//! The index that is read from its file has the entries that git lists.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use ic_ledger::IndexEntry;

use super::super::index_file::{self, listing};
use super::super::{IndexEdit, revert_entries};
use crate::manifest::PathText;

fn entries(file: &[u8], hash_length: usize) -> Option<Vec<IndexEntry>> {
    let mut all = Vec::new();
    index_file::each_in(file, file.len() as u64, hash_length, |entry| all.push(entry.clone()))?;
    Some(all)
}

/// Runs git in a directory, and returns what it prints.
fn git<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Vec<u8> {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A repository whose index has entries of every kind.
fn repository(format: &str, version: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let long = format!("{}/{}", "d".repeat(250), vec!["e".repeat(250); 20].join("/"));
    git(root, &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
    for name in ["a", "a-b", "ab", "both", "program", "sub/x", "sub/y/z", "sub.x", "tab\tand\nline", "z"] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    std::fs::write(root.join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("link")).unwrap();
    git(root, &["add", "."]);
    git(root, &["update-index", "--chmod=+x", "program"]);
    git(root, &["commit", "-q", "-m", "base"]);
    let head = String::from_utf8(git(root, &["rev-parse", "HEAD"])).unwrap();
    let blob = String::from_utf8(git(root, &["rev-parse", "HEAD:z"])).unwrap();
    git(root, &["update-index", "--add", "--cacheinfo", &format!("160000,{},module", head.trim())]);
    git(root, &["checkout", "-q", "-b", "other"]);
    std::fs::write(root.join("both"), "theirs").unwrap();
    git(root, &["commit", "-q", "-a", "-m", "theirs"]);
    git(root, &["checkout", "-q", "main"]);
    std::fs::write(root.join("both"), "ours").unwrap();
    git(root, &["commit", "-q", "-m", "ours", "both"]);
    let merged = Command::new("git").args(["merge", "-q", "other"]).current_dir(root).output().unwrap();
    assert!(!merged.status.success());
    git(root, &["update-index", "--assume-unchanged", "sub/x"]);
    git(root, &["update-index", "--add", "--cacheinfo", &format!("100644,{},{long}", blob.trim())]);
    if version == "3" {
        git(root, &["rm", "-q", "--cached", "sub/y/z"]);
        git(root, &["add", "-N", "sub/y/z"]);
    } else {
        git(root, &["update-index", "--index-version", version]);
    }
    directory
}

#[test]
fn entries_of_every_kind_are_listed_as_git_lists_them() {
    for (format, version) in [("sha1", "2"), ("sha1", "3"), ("sha1", "4"), ("sha256", "2"), ("sha256", "4")] {
        let directory = repository(format, version);
        let dirs = ic_ledger::git_dirs(directory.path()).unwrap();
        let length = ic_ledger::git_hash_length(&dirs).unwrap();
        let file = std::fs::read(dirs.git_dir.join("index")).unwrap();
        assert_eq!(file[7].to_string(), version, "{format}");
        let all = entries(&file, length).unwrap();
        let listed = git(directory.path(), &["ls-files", "-s", "-v", "-z"]);
        assert!(listing(&all) == listed, "{format} {version}: {}", String::from_utf8_lossy(&listed));
        assert_eq!(all.iter().any(IndexEntry::is_intended), version == "3");
        let tracked = git(directory.path(), &["ls-files", "-c", "-z"]);
        let paths: Vec<u8> = all.into_iter().flat_map(|entry| [entry.path, vec![0]].concat()).collect();
        assert!(paths == tracked, "{format} {version}");
        assert!(entries(&file, 52 - length).is_none(), "{format} {version}, read by the other hash");
    }
}

#[test]
fn without_an_index_there_are_no_entries() {
    index_file::each(Path::new("/nowhere/index"), 20, |entry| panic!("{entry:?}")).unwrap();
}

#[test]
fn what_is_of_another_form_is_left_to_git() {
    let forms: [&[&[&str]]; 3] = [
        &[&["update-index", "--split-index"]],
        &[&["update-index", "--skip-worktree", "z"]],
        &[&["reset", "-q", "--hard"], &["sparse-checkout", "init", "--cone", "--sparse-index"]],
    ];
    for form in forms {
        let directory = repository("sha1", "2");
        for arguments in form {
            git(directory.path(), arguments);
        }
        assert!(entries(&std::fs::read(directory.path().join(".git/index")).unwrap(), 20).is_none(), "{form:?}");
    }
}

#[test]
fn what_is_cut_off_or_damaged_is_no_index() {
    for version in ["2", "3", "4"] {
        let directory = repository("sha1", version);
        let file = std::fs::read(directory.path().join(".git/index")).unwrap();
        let whole = entries(&file, 20).unwrap().len();
        for end in 1..file.len().min(2_000) {
            assert!(entries(&file[..end], 20).is_none(), "version {version}, cut off at {end}");
        }
        for at in 0..file.len().min(2_000) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x41;
            // It is another one, or none; git does not tell either.
            assert!(entries(&damaged, 20).is_none_or(|all| all.len() == whole), "version {version}, at {at}");
        }
    }
}

#[test]
fn an_entry_goes_and_comes_in_repositories_of_either_format() {
    for format in ["sha1", "sha256"] {
        let directory = repository(format, "2");
        let root = directory.path();
        let staged =
            || String::from_utf8(git(root, &["ls-files", "--format=%(objectmode) %(objectname)", "z"])).unwrap();
        let entry = staged().trim_end().to_owned();
        // The work took the entry out, so an undo of it makes it again, and a redo takes it out.
        let edit = IndexEdit { path: PathText(b"z".to_vec()), was: None, becomes: Some(entry) };
        revert_entries(root, std::slice::from_ref(&edit), true).unwrap();
        assert_eq!(staged(), "", "{format}");
        revert_entries(root, &[edit], false).unwrap();
        assert_ne!(staged(), "", "{format}");
    }
}
