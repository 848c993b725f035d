//! Completes names of files, from the directory that `-C` names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Candidate;

/// A directory with more names than this offers none: no person chooses from so long a list.
const MOST: usize = 10_000;

/// The files (or only the directories) that `typed` begins to name, by name; a directory ends with a slash.
pub(super) fn named(typed: &OsStr, directory: &Path, home: Option<&Path>, only_directories: bool) -> Vec<Candidate> {
    let bytes = typed.as_bytes();
    let (parent, begun) = match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => bytes.split_at(slash + 1),
        None => (&b""[..], bytes),
    };
    let Ok(entries) = std::fs::read_dir(place(parent, directory, home)) else { return Vec::new() };
    let mut found = Vec::new();
    for (number, entry) in entries.filter_map(Result::ok).enumerate() {
        if number == MOST {
            return Vec::new();
        }
        let name = entry.file_name();
        // Hidden names are offered once a dot was typed, as shells do.
        let is_wanted =
            name.as_bytes().starts_with(begun) && (begun.starts_with(b".") || !name.as_bytes().starts_with(b"."));
        if !is_wanted {
            continue;
        }
        // `file_type` does not follow links, so a link to a directory is asked about again.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir())
            || std::fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir());
        if is_directory || !only_directories {
            let slash: &[u8] = if is_directory { b"/" } else { b"" };
            let value = OsString::from_vec([parent, name.as_bytes(), slash].concat());
            found.push(Candidate::new(value, ""));
        }
    }
    found.sort_by(|a, b| a.value.cmp(&b.value));
    found
}

/// The place that a typed path names, as seen from a directory.
pub(super) fn place(parent: &[u8], directory: &Path, home: Option<&Path>) -> PathBuf {
    // The line comes as it was typed, so no shell has expanded the tilde.
    let in_home = if parent == b"~" { Some(&[][..]) } else { parent.strip_prefix(b"~/") };
    match (in_home, home) {
        (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
        _ => directory.join(OsStr::from_bytes(parent)),
    }
}
