//! Other work trees below a root. Each is a place of its own: another agent works in it, with checkpoints of its own.
//!
//! No capture of the outer tree enters one. A checkpoint from before a directory became a work tree holds its files. [`crate::diff`] reads
//! them as left out, so that a plan, a blame or a log never reports another place. A restore
//! looks once more before it writes, because a work tree can be made between the plan and the restore.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ic_ledger::{OtherWorkTree, is_linked_work_tree, other_work_trees, path_bytes, path_from_bytes};

use crate::tree::{Reason, TreeNode, TreeObject};

/// The other work trees below a root.
#[derive(Debug, Clone, Default)]
pub struct Places {
    root: PathBuf,
    /// Those that the root's own repository has on record, from the root.
    registered: BTreeSet<Vec<u8>>,
    /// All on that record that are there, or locked: those below the root from there, other ones by their whole paths.
    standing: BTreeSet<Vec<u8>>,
}

impl Places {
    /// The work trees that the repository of `root` has on record now.
    pub fn of(root: &Path) -> Self {
        let mut places = Self { root: root.to_owned(), ..Self::default() };
        let others = other_work_trees(root);
        // Most repositories have none.
        let real = if others.is_empty() { None } else { std::fs::canonicalize(root).ok() };
        // Their paths are real ones, and the root may be named through a link: so its real path is compared.
        let real = real.unwrap_or_else(|| root.to_owned());
        for OtherWorkTree { top, is_locked } in others {
            let below = top.strip_prefix(&real).ok();
            let path = path_bytes(below.unwrap_or(&top)).to_vec();
            // A locked one may lie on a disk that is absent at the moment.
            if is_locked || top.is_dir() {
                places.standing.insert(path.clone());
            }
            if below.is_some() {
                places.registered.insert(path);
            }
        }
        places
    }

    /// The root that they lie below.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Those that the root's own repository has on record below the root, though their directories may be gone.
    pub fn registered(&self) -> &BTreeSet<Vec<u8>> {
        &self.registered
    }

    /// All that the root's own repository has on record, of which the directory is there or git was told to keep it: those below the root
    /// from there, other ones by their whole paths.
    pub fn standing(&self) -> &BTreeSet<Vec<u8>> {
        &self.standing
    }

    /// Whether the directory at this path, not the root itself, is one.
    pub fn is_one(&self, path: &[u8]) -> bool {
        !path.is_empty()
            && (self.registered.contains(path) || is_linked_work_tree(&self.root.join(path_from_bytes(path))))
    }

    /// Whether a directory of a checkpoint is one now: the disk is asked only of what was a repository then.
    pub(crate) fn held_as_one(&self, path: &[u8], tree: &TreeObject) -> bool {
        let had_git = || tree.get(b".git").is_some_and(|git| git.node == TreeNode::Passed(Reason::Git));
        self.registered.contains(path) || (had_git() && self.is_one(path))
    }

    /// The one that a path is, or lies in; the outermost.
    pub fn around(&self, path: &[u8]) -> Option<Vec<u8>> {
        outermost(path, |above| self.is_one(above))
    }
}

/// The shortest beginning of a path that is a work tree. What lies in it is a matter of its own checkpoints.
fn outermost(path: &[u8], mut is_one: impl FnMut(&[u8]) -> bool) -> Option<Vec<u8>> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).map(|end| &path[..end]).find(|above| is_one(above)).map(<[u8]>::to_vec)
}

/// Looks for many paths which place they lie in; each directory is asked of once.
#[derive(Debug)]
pub(crate) struct Around<'p> {
    places: &'p Places,
    known: BTreeMap<Vec<u8>, bool>,
}

impl<'p> Around<'p> {
    pub(crate) fn new(places: &'p Places) -> Self {
        Self { places, known: BTreeMap::new() }
    }

    /// The work tree that a path is, or lies in; the outermost, as [`Places::around`] returns it.
    pub(crate) fn find(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        outermost(path, |above| match self.known.get(above) {
            Some(known) => *known,
            None => *self.known.entry(above.to_vec()).or_insert(self.places.is_one(above)),
        })
    }
}
