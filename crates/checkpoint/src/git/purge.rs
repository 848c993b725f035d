//! Taking a path's content out of what checkpoints keep of git's: the packs are written anew without it.
//!
//! Which objects of git's are meant is asked by path, in every commit that a pack or a state names, in every index and in
//! the repository's history: filters and line endings may make them other than the file was. They are remembered by name, so
//! that no restore makes them reachable again, wherever git may still have them.

mod room;
mod unreachable;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::events::Hash;

pub use unreachable::{Unreachable, drop_refs, left};

use self::room::Room;
use super::program::Git;
use super::purged_objects::{is_any, is_purged};
use super::state::{GitPack, GitState};
use super::{index, pack};
use crate::objects::{Objects, Writer};

/// What is to be taken out.
pub struct PurgeWanted<'a> {
    /// The top of the work tree in which the path is purged.
    pub root: &'a Path,
    /// What its checkpoints have of git's.
    pub states: &'a [GitState],
    /// The packs of all checkpoints.
    pub packs: &'a BTreeSet<Hash>,
    /// The purged path, from the root; `None` if it lies outside, where no commit has it.
    pub path: Option<&'a [u8]>,
    /// What the path held in checkpoints.
    pub contents: &'a [Hash],
}

/// What is not to be kept of git's any more.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Objects of git's, by their names there.
    pub blobs: BTreeSet<String>,
    /// Packs, and what takes their places; `None`: nothing was left of it.
    pub packs: BTreeMap<Hash, Option<GitPack>>,
}

/// The names of the empty content, in SHA-1 and in SHA-256: it is no secret, and many paths have it.
pub(super) const EMPTY: [&str; 2] =
    ["e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"];

/// Writes the packs anew that hold what is wanted, with `writer`; the old ones are still there.
///
/// Errors: `git_failed` without the `git` program, where there are packs to look into; `corrupt`; `disk_full`.
pub fn find(wanted: &PurgeWanted<'_>, objects: &Objects, writer: &Writer<'_>) -> Result<Gone> {
    // A name by SHA-256 has 64 digits. A repository with another kind of names could not read the packs.
    let is_sha256 = wanted.states.iter().flat_map(GitState::tips).any(|oid| oid.len() == 64);
    let own = ic_ledger::git_dirs(wanted.root);
    if own.is_none() && wanted.packs.is_empty() {
        return Ok(Gone::default());
    }
    if Git::new(wanted.root).ask(&["version"])?.is_none() {
        if wanted.packs.is_empty() {
            return Ok(Gone::default());
        }
        return Err(Diagnosis::new(
            Code::GitFailed,
            "There is no git on PATH, and git packs in checkpoints may hold the content. Nothing was purged.",
        )
        .hint("make git available, and purge again"));
    }
    let room = Room::make(objects, own.as_ref().map(|dirs| dirs.common_dir.as_path()), is_sha256)?;
    let git = room.git();
    let packs = room.unpack(objects, wanted.packs)?;
    let listed: BTreeSet<&str> = packs.values().flatten().map(String::as_str).collect();
    let commits = room::commits(&git, listed.iter().copied().chain(wanted.states.iter().flat_map(GitState::tips)))?;
    let at = |path| at_path(&git, &commits, path);
    // The content has a name in up to four places: the commits of packs and states, their indexes, and the repository's own
    // history. The fourth is what checkpoints have at the path: git may know those bytes under another path.
    let mut blobs = wanted.path.map_or_else(|| Ok(BTreeSet::new()), at)?;
    for state in wanted.states {
        let index = objects.read(&state.index.0)?;
        blobs.extend(wanted.path.into_iter().flat_map(|path| in_index(&index, path)));
    }
    if let Some(path) = wanted.path.filter(|_| own.is_some()) {
        blobs.extend(unreachable::in_history(wanted.root, path)?);
    }
    blobs.extend(room::blobs_of(&git, objects, wanted.contents)?);
    // The object goes under every path: the same bytes are the same secret.
    let mut blobs = room::only_blobs(&git, blobs)?;
    blobs.retain(|oid| !EMPTY.contains(&oid.as_str()));
    let mut gone = Gone { blobs, packs: BTreeMap::new() };
    for (hash, objects_in) in packs {
        if objects_in.iter().any(|oid| gone.blobs.contains(oid)) {
            let left: Vec<&str> =
                objects_in.iter().map(String::as_str).filter(|oid| !gone.blobs.contains(*oid)).collect();
            gone.packs.insert(hash, pack::of_objects(&git, &left, writer)?);
        }
    }
    Ok(gone)
}

/// What the commits have at a path.
fn at_path(git: &Git<'_>, commits: &[String], path: &[u8]) -> Result<BTreeSet<String>> {
    // A newline would end the question; such a path is found in trees by the names of its content alone.
    if commits.is_empty() || path.contains(&b'\n') {
        return Ok(BTreeSet::new());
    }
    let input: Vec<u8> = commits.iter().flat_map(|commit| [commit.as_bytes(), b":", path, b"\n"].concat()).collect();
    let said = git.run_with(&["cat-file", "--batch-check=%(objectname)"], &input)?;
    // Where there is nothing, the question comes back with a word after it.
    let is_name = |line: &&str| !line.contains(' ') && !line.contains(':');
    Ok(String::from_utf8_lossy(&said).lines().filter(is_name).map(str::to_owned).collect())
}

/// What an index has at a path.
fn in_index(text: &[u8], path: &[u8]) -> BTreeSet<String> {
    let (lines, _) = index::parse(text);
    let at = lines.iter().filter(|line| line.path == path && !line.is_submodule());
    at.filter_map(|line| line.meta.split(' ').nth(1)).map(str::to_owned).collect()
}

impl GitState {
    /// The same with packs in the place of those that were written anew.
    #[must_use]
    pub fn without(mut self, gone: &Gone) -> Self {
        let replaced = |pack: GitPack| match gone.packs.get(&pack.0) {
            Some(new) => *new,
            None => Some(pack),
        };
        self.purged |= self.packs.iter().any(|pack| gone.packs.contains_key(&pack.0));
        self.packs = std::mem::take(&mut self.packs).into_iter().filter_map(replaced).collect();
        self
    }
}

/// An object that was purged, among what restoring a state would make reachable again; `None` if there is none.
///
/// `git` must have the objects of the state, wherever they are kept.
pub(super) fn purged_in(git: &Git<'_>, target: &GitState, objects: &Objects) -> Result<Option<String>> {
    if !is_any(objects)? {
        return Ok(None);
    }
    let tips = target.own_tips().chain(target.staged.iter().map(String::as_str));
    let there = pack::existing(git, &tips.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>())?;
    let input: String = there.iter().map(|oid| format!("{oid}\n")).collect();
    // Objects that the user's own refs reach are there already: the restore does not bring them back.
    let walk = ["rev-list", "--objects", "--missing=print", "--stdin", "--not", "--all"];
    let listed = git.run_with(&walk, input.as_bytes())?;
    let lines = String::from_utf8_lossy(&listed).into_owned();
    // What is missing has a question mark before its name.
    let walked = lines.lines().filter_map(|line| line.trim_start_matches('?').split(' ').next());
    // What was purged is in no pack any more, so the walk may lack a staged object. The state still names it.
    for oid in walked.chain(target.staged.iter().map(String::as_str)) {
        if is_purged(objects, oid)? {
            return Ok(Some(oid.to_owned()));
        }
    }
    Ok(None)
}
