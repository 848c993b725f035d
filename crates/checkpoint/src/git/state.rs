//! The state of git, in the form that a checkpoint keeps.

use crate::manifest::{PathText, hash_text};
use serde::{Deserialize, Serialize};

pub(super) const BRANCHES: &[u8] = b"refs/heads/";
pub(super) const TAGS: &[u8] = b"refs/tags/";

/// The state of git in a work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// The branch that HEAD is on; `None` when it is detached, or on another ref.
    pub branch: Option<PathText>,
    /// The ref outside of `refs/heads/` that HEAD is on, with its whole name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_ref: Option<PathText>,
    /// The commit that HEAD is at; `None` before the first one.
    pub head: Option<String>,
    /// Whether tracked files or the index differ from HEAD.
    pub dirty: bool,
    /// Stash entries, newest first.
    pub stash: Vec<Stash>,
    /// A merge, rebase or the like that was in progress.
    pub operation: Option<String>,
    /// Every branch, tag and remote branch with its commit, by name; symbolic branches are apart.
    pub refs: Vec<(PathText, String)>,
    /// Symbolic branches and what they stand for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbolic: Vec<(PathText, PathText)>,
    /// Content of the index that HEAD does not have; it is in the packs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<String>,
    /// The index: entries and flags, an object.
    pub index: Index,
    /// Objects of the store, each a pack of git's with content that the repository may lose, oldest first.
    pub packs: Vec<GitPack>,
    /// Whether a purge took something out of the packs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
}

/// A stash entry: its commit and the message in the stash's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stash {
    /// The id of its commit.
    pub commit: String,
    /// Its message, which need not be text.
    pub message: PathText,
}

impl Stash {
    /// The branch that it was made on, as git's message has it: `WIP on BRANCH: ...` or `On BRANCH: ...`.
    pub(super) fn branch(&self) -> Option<&[u8]> {
        let message = &self.message.0;
        let rest = [&b"WIP on "[..], b"On "].iter().find_map(|begin| message.strip_prefix(*begin))?;
        rest.iter().position(|byte| *byte == b':').map(|end| &rest[..end])
    }
}

/// The name of an index's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index(#[serde(with = "hash_text")] pub ic_ledger::events::Hash);

/// The name of a pack's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitPack(#[serde(with = "hash_text")] pub ic_ledger::events::Hash);

impl GitState {
    /// Branches alone, by name.
    pub(super) fn branches(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.refs
            .iter()
            .filter(|(name, _)| name.0.starts_with(b"refs/heads/"))
            .map(|(name, commit)| (name.0.as_slice(), commit.as_str()))
    }

    /// The whole name of the ref that HEAD is on; `None` when it is detached.
    pub(super) fn head_name(&self) -> Option<Vec<u8>> {
        let of_branch = self.branch.as_ref().map(|branch| [BRANCHES, &branch.0].concat());
        of_branch.or_else(|| self.head_ref.as_ref().map(|name| name.0.clone()))
    }

    /// What HEAD is on, for people: a branch by its short name, another ref by its whole one; `None` when it is detached.
    pub fn standing_on(&self) -> Option<String> {
        let name = self.branch.as_ref().or(self.head_ref.as_ref())?;
        Some(String::from_utf8_lossy(&name.0).into_owned())
    }

    /// What only this repository has: branches, HEAD and stash.
    pub(super) fn own_tips(&self) -> impl Iterator<Item = &str> {
        let branches = self.branches().map(|(_, commit)| commit);
        branches.chain(self.head.as_deref()).chain(self.stash.iter().map(|stash| stash.commit.as_str()))
    }

    /// What its other refs name: tags, remote branches and the like.
    pub(super) fn other_tips(&self) -> impl Iterator<Item = &str> {
        let others = self.refs.iter().filter(|(name, _)| !name.0.starts_with(b"refs/heads/"));
        others.map(|(_, commit)| commit.as_str())
    }

    /// Every commit that it names.
    pub(super) fn tips(&self) -> impl Iterator<Item = &str> {
        self.own_tips().chain(self.other_tips())
    }

    /// Whether git may lose the same of both.
    pub(super) fn may_lose_the_same(&self, other: &Self) -> bool {
        self.tips().eq(other.tips()) && self.staged == other.staged
    }

    /// The objects of the store that it needs.
    pub fn objects(&self) -> impl Iterator<Item = ic_ledger::events::Hash> {
        self.packs.iter().map(|pack| pack.0).chain([self.index.0])
    }
}
