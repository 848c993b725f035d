//! Refs of ours, below `refs/ic/`: what a restore or a rewind moved away stays reachable by them, below an id of its own.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use ic_base::Result;
use ic_ledger::GitDirs;

use super::program::Git;

/// More of packed refs is not read: git lists all refs then.
const LONGEST: u64 = 64 << 20;

/// Removes the refs that keep what these restores and rewinds moved away, and returns how many there were.
///
/// Errors: `git_busy`, `git_failed`: none was removed.
pub fn forget(root: &Path, ids: &HashSet<String>) -> Result<usize> {
    if ids.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Ok(0);
    }
    let git = Git::new(root);
    let list = ["for-each-ref", "--format=%(refname)", "refs/ic/rolled-back/", "refs/ic/rewound/"];
    let Some(listed) = git.ask(&list)? else { return Ok(0) };
    // Another ledger may have refs of its own in the same repository: only ids of this one go.
    let is_gone = |name: &&[u8]| {
        // `refs/ic/rolled-back/ID/heads/main`: the id is the fourth part.
        let id = name.split(|b| *b == b'/').nth(3).and_then(|id| std::str::from_utf8(id).ok());
        id.is_some_and(|id| ids.contains(id))
    };
    let names: Vec<&[u8]> = listed.split(|b| *b == b'\n').filter(is_gone).collect();
    if names.is_empty() {
        return Ok(0);
    }
    // One transaction: a lock that another command holds leaves all of them for the next time.
    let input: Vec<u8> = names.iter().flat_map(|name| [b"delete ", *name, b"\0\0"].concat()).collect();
    git.run_with(&["update-ref", "--no-deref", "--stdin", "-z"], &input)?;
    Ok(names.len())
}

/// What lists every ref but ours, as arguments of `git for-each-ref`; nothing where all are to be listed.
///
/// Ours can be many, and git reads a file for each. It has no way to leave some out (`--exclude`, since git 2.42, still reads them
/// all), so the others are named.
pub(super) fn patterns_of_others(dirs: &GitDirs) -> Vec<String> {
    let packed = dirs.common_dir.join("packed-refs");
    if !dirs.common_dir.join("refs/ic").is_dir() && !packed.exists() {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    // A linked work tree has a few refs of its own, such as those of `git bisect`; all others are shared.
    for place in [dirs.common_dir.join("refs"), dirs.git_dir.join("refs")] {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            found.insert(entry.file_name().into_encoded_bytes());
        }
    }
    if packed.metadata().is_ok_and(|meta| meta.len() > LONGEST) {
        return Vec::new();
    }
    let text = std::fs::read(&packed).unwrap_or_default();
    for line in text.split(|b| *b == b'\n') {
        let name = line.iter().position(|b| *b == b' ').map(|space| &line[space + 1..]);
        let below = name.and_then(|name| name.strip_prefix(b"refs/"));
        if let Some(first) = below.and_then(|below| below.split(|b| *b == b'/').next())
            && !found.contains(first)
        {
            found.insert(first.to_vec());
        }
    }
    // With none of ours, to name the others would spare git nothing.
    let is_only_others = !found.remove(&b"ic"[..]);
    // A table of refs has other files than these; git then lists its refs quickly itself.
    if is_only_others || !found.contains(&b"heads"[..]) {
        return Vec::new();
    }
    // A name that is not UTF-8 fits into no argument here: git then lists all.
    let names: Option<Vec<String>> = found.into_iter().map(|name| String::from_utf8(name).ok()).collect();
    names.unwrap_or_default().into_iter().map(|name| format!("refs/{name}")).collect()
}
