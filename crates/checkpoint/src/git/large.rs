//! Files that a checkpoint leaves out for their size, and whose content git has: in a blob, or beside it in the store of Git LFS.
//!
//! Git is asked for the raw blob: no filter runs, and nothing is fetched. A blob that is not as long as the file was went through a
//! filter, so it is not the file's content.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ic_base::{Diagnose, Result};
use ic_ledger::IndexEntry;

use super::index::entries_where;
use super::program::Git;
use crate::manifest::GitContent;

/// A file that stands for content in the store of Git LFS is no longer than this.
const LONGEST_POINTER: u64 = 1024;

/// The blobs of those files that are as git's index has them. `files`: their paths, and how they are now.
pub fn blobs_of(root: &Path, files: &BTreeMap<Vec<u8>, Metadata>) -> BTreeMap<Vec<u8>, String> {
    let git = Git::new(root);
    if files.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return BTreeMap::new();
    }
    let Some(entries) = entries_where(&git, |entry| files.contains_key(&entry.path)) else {
        return listed(&git, files);
    };
    let index = ic_ledger::git_dirs(root).and_then(|dirs| dirs.git_dir.join("index").metadata().ok());
    let is_clean = |entry: &IndexEntry| {
        let Some(file) = files.get(&entry.path).filter(|_| entry.stage() == 0 && !entry.is_intended()) else {
            return false;
        };
        // Git writes 0 where it has to look into the file; and no more than 32 bits.
        if entry.size != 0 && u64::from(entry.size) != file.size() & u64::from(u32::MAX) {
            return false;
        }
        // As for git itself: a file as young as the index may have changed within the same tick.
        let is_before_index = index.as_ref().is_some_and(|index| written_at(file) < written_at(index));
        let is_known = entry.size != 0 && is_before_index && is_written_at(file, entry.written_at);
        is_known || is_content(&git, &entry.path, &name(entry))
    };
    entries.into_iter().filter(is_clean).map(|entry| (entry.path.clone(), name(&entry))).collect()
}

/// As [`blobs_of`], of an index that only git can read.
fn listed(git: &Git<'_>, files: &BTreeMap<Vec<u8>, Metadata>) -> BTreeMap<Vec<u8>, String> {
    let Ok(Some(listed)) = git.ask(&["ls-files", "-s", "-z"]) else { return BTreeMap::new() };
    let mut blobs = BTreeMap::new();
    // Mode, name, stage, and the path after a tab.
    for line in listed.split(|byte| *byte == 0) {
        let Some(at) = line.iter().position(|byte| *byte == b'\t') else { continue };
        let (head, path) = (String::from_utf8_lossy(&line[..at]), &line[at + 1..]);
        let mut words = head.split(' ').skip(1);
        if let (Some(oid), Some("0"), true) = (words.next(), words.next(), files.contains_key(path))
            && is_content(git, path, oid)
        {
            blobs.insert(path.to_vec(), oid.to_owned());
        }
    }
    blobs
}

/// Whether the file at a path is this blob.
fn is_content(git: &Git<'_>, path: &[u8], oid: &str) -> bool {
    // A path that is not UTF-8 becomes another one here, which git does not find: then the blob is not taken for its content.
    let path = String::from_utf8_lossy(path);
    let hashed = git.ask(&["hash-object", "--no-filters", "--", &path]);
    hashed.is_ok_and(|said| said.is_some_and(|said| said.trim_ascii() == oid.as_bytes()))
}

fn name(entry: &IndexEntry) -> String {
    entry.oid().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn written_at(file: &Metadata) -> (i64, i64) {
    (file.mtime(), file.mtime_nsec())
}

fn is_written_at(file: &Metadata, (seconds, nanos): (u32, u32)) -> bool {
    let is_second = file.mtime() & i64::from(u32::MAX) == i64::from(seconds);
    // Git may be built without parts of a second.
    is_second && (nanos == 0 || file.mtime_nsec() == i64::from(nanos))
}

/// Writes a content that git has into `sink`; returns false, with nothing written, where git does not have it here.
///
/// Errors: `git_failed`, or those of the sink, which then has a part of it.
pub fn copy_content(root: &Path, content: &GitContent, sink: &mut (dyn Write + Send)) -> Result<bool> {
    let git = Git::new(root);
    // In a partial clone, git may know the name of a blob and not have it: then nothing is copied.
    let Ok(Some(size)) = git.ask(&["cat-file", "-s", &content.oid]) else { return Ok(false) };
    let size = String::from_utf8_lossy(&size).trim().parse::<u64>().unwrap_or(u64::MAX);
    let blob = ["cat-file", "blob", content.oid.as_str()];
    if size == content.size {
        let copy = |mut stdout| {
            io::copy(&mut stdout, sink).map(|_| ()).while_doing(|| "copying content that git has".to_owned())
        };
        git.converse(&blob, drop, copy)?;
        return Ok(true);
    }
    if size > LONGEST_POINTER {
        return Ok(false);
    }
    let Ok(Some(pointer)) = git.ask(&blob) else { return Ok(false) };
    let Some(mut file) = in_lfs(root, &pointer, content.size) else { return Ok(false) };
    io::copy(&mut file, sink).while_doing(|| "copying content that Git LFS has".to_owned())?;
    Ok(true)
}

/// The file in the store of Git LFS that a pointer stands for, where it is this long.
fn in_lfs(root: &Path, pointer: &[u8], size: u64) -> Option<File> {
    let text = std::str::from_utf8(pointer).ok().filter(|text| text.starts_with("version https://git-lfs."))?;
    let oid = text.lines().find_map(|line| line.strip_prefix("oid sha256:"))?.trim();
    // The oid becomes a part of a path, and the blob is not trusted: `..` in it would lead out of the store.
    if oid.len() != 64 || !oid.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let place: PathBuf = ic_ledger::git_dirs(root)?.common_dir.join("lfs/objects");
    let path = place.join(&oid[..2]).join(&oid[2..4]).join(oid);
    let file = ic_ledger::regular_file::open_regular(&path).ok()?;
    (file.metadata().ok()?.size() == size).then_some(file)
}
