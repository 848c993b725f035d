//! What differs between two trees. Equal subtrees have equal hashes and are not looked into.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use ic_base::Result;
use ic_ledger::events::Hash;

use crate::attributes::Attributes;
use crate::nested_work_trees::Places;
use crate::objects::Objects;
use crate::tree::{Groups, Reason, TreeEntry, TreeNode, TreeObject};

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffState {
    /// A regular file, with the content that the store has under its hash.
    File {
        /// The SHA-256 of its content.
        hash: Hash,
        /// Its length in bytes.
        size: u64,
        /// Its permission bits (07777).
        mode: u32,
        /// What it has beside.
        attributes: Attributes,
    },
    /// A symbolic link, and where it points.
    Symlink(Vec<u8>),
    /// A directory, and its permission bits.
    Directory {
        /// Its permission bits (07777).
        mode: u32,
        /// What it has beside.
        attributes: Attributes,
        /// Nothing was in it.
        is_empty: bool,
    },
    /// A name that was left out, and why.
    Passed(Reason),
}

impl DiffState {
    /// Whether the checkpoint holds what stands there.
    pub fn is_content(&self) -> bool {
        !matches!(self, Self::Passed(_))
    }
}

/// A path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// From the root; empty for the root itself.
    pub path: Vec<u8>,
    /// What stood there; `None`: nothing.
    pub before: Option<DiffState>,
    /// What stands there; `None`: nothing.
    pub after: Option<DiffState>,
}

ic_base::words! {
    /// What kind of change a difference is, for people.
    #[derive(PartialOrd, Ord)]
    pub enum TreeChange {
        /// Nothing was at the path before.
        Added = "added",
        /// The file has other content, or the link another target.
        Modified = "modified",
        /// There is nothing any more.
        Deleted = "deleted",
        /// The same content with other permission bits.
        Mode = "mode",
        /// The same content and permission bits with another owner, ACL or extended attribute, or one file with other names than before.
        Attributes = "attributes",
        /// A file became a link or a directory, or the other way round.
        Type = "type",
    }
}

impl Difference {
    /// Whether it is of a directory alone: no file and no link stands there, or stood there.
    pub fn is_of_directory(&self) -> bool {
        let mut states = [&self.before, &self.after].into_iter().flatten();
        states.all(|state| matches!(state, DiffState::Directory { .. }))
    }

    /// The change that people are shown; `None` for what only serves a restore: a directory that appears with what is in
    /// it, or a name that one side left out.
    pub fn change(&self) -> Option<TreeChange> {
        use DiffState as S;
        let shown = |state: &DiffState| state.is_content() && !matches!(state, S::Directory { is_empty: false, .. });
        match (&self.before, &self.after) {
            (None | Some(S::Passed(_)), Some(after)) if shown(after) => match self.before {
                // It may have been there before: what a rule hid is no addition.
                Some(_) => None,
                None => Some(TreeChange::Added),
            },
            (Some(before), None) if shown(before) => Some(TreeChange::Deleted),
            (
                Some(S::Directory { mode, attributes, .. }),
                Some(S::Directory { mode: other, attributes: others, .. }),
            ) => {
                let has_others = (attributes != others).then_some(TreeChange::Attributes);
                if mode == other { has_others } else { Some(TreeChange::Mode) }
            }
            (Some(S::File { hash, mode, .. }), Some(S::File { hash: other_hash, mode: other_mode, .. })) => {
                Some(match (hash == other_hash, mode == other_mode) {
                    (false, _) => TreeChange::Modified,
                    (true, false) => TreeChange::Mode,
                    // Only files that differ come here, or that have other names than before.
                    (true, true) => TreeChange::Attributes,
                })
            }
            (Some(S::Symlink(_)), Some(S::Symlink(_))) => Some(TreeChange::Modified),
            (Some(before), Some(after)) if before.is_content() && after.is_content() => Some(TreeChange::Type),
            _ => None,
        }
    }
}

/// Gives every difference between two trees to `visit`, a directory before what is in it, in byte order of names.
///
/// `None` is the tree with nothing in it. Nothing is compared below a name that one of the two left out: it is not known what
/// was there. Errors: `corrupt` if a directory is damaged.
pub fn diff(
    objects: &Objects,
    before: Option<&Hash>,
    after: Option<&Hash>,
    visit: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<()> {
    compare(objects, before, after, false, visit)
}

/// As [`diff`], and also below names that one of the two left out: there, the other one's entries count as added or deleted.
pub fn diff_into_hidden(
    objects: &Objects,
    before: &Hash,
    after: &Hash,
    visit: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<()> {
    compare(objects, Some(before), Some(after), true, visit)
}

fn compare(
    objects: &Objects,
    before: Option<&Hash>,
    after: Option<&Hash>,
    into_hidden: bool,
    visit: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<()> {
    // Links are part of the root's object, so they are equal too.
    if before == after {
        return Ok(());
    }
    let (old, new) = (load(objects, before)?, load(objects, after)?);
    let states = (old.as_ref().map(directory), new.as_ref().map(directory));
    if own(old.as_ref()) != own(new.as_ref()) {
        visit(Difference { path: Vec::new(), before: states.0, after: states.1 })?;
    }
    // Links stand in the root's object alone: a path may be tied otherwise although its subtree is equal.
    let links = |tree: Option<&TreeObject>| tree.map(|tree| tree.links.clone()).unwrap_or_default();
    let retied = retied(&links(old.as_ref()), &links(new.as_ref()));
    Differ { objects, places: objects.places(), into_hidden, retied, visit }.trees(&[], old.as_ref(), new.as_ref())
}

/// The paths that are in groups of other paths than before.
fn retied(before: &Groups, after: &Groups) -> BTreeSet<Vec<u8>> {
    // Whole groups are compared: if a path joins one, every path in it shares its file with other paths than before.
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (before.iter().collect(), after.iter().collect());
    before.symmetric_difference(&after).copied().flatten().cloned().collect()
}

fn load(objects: &Objects, hash: Option<&Hash>) -> Result<Option<TreeObject>> {
    hash.map(|hash| objects.tree(hash)).transpose()
}

fn directory(tree: &TreeObject) -> DiffState {
    let (mode, attributes) = (tree.mode, tree.attributes.clone());
    DiffState::Directory { mode, attributes, is_empty: tree.entries.is_empty() }
}

/// What a directory has of its own, whatever is in it.
fn own(tree: Option<&TreeObject>) -> Option<(u32, &Attributes)> {
    tree.map(|tree| (tree.mode, &tree.attributes))
}

struct Differ<'d> {
    objects: &'d Objects,
    /// Other work trees: what older checkpoints hold of them is read as left out.
    places: Option<Arc<Places>>,
    into_hidden: bool,
    /// Paths that are one file with other paths than before.
    retied: BTreeSet<Vec<u8>>,
    visit: &'d mut dyn FnMut(Difference) -> Result<()>,
}

impl Differ<'_> {
    fn trees(&mut self, path: &[u8], old: Option<&TreeObject>, new: Option<&TreeObject>) -> Result<()> {
        let empty: &[TreeEntry] = &[];
        let mut olds = old.map_or(empty, |t| &t.entries).iter().peekable();
        let mut news = new.map_or(empty, |t| &t.entries).iter().peekable();
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            // Both lists are in the same order: the lesser name is missing on the other side.
            let before = if order.is_le() { olds.next() } else { None };
            let after = if order.is_ge() { news.next() } else { None };
            self.entries(path, before, after)?;
        }
    }

    fn entries(&mut self, directory: &[u8], before: Option<&TreeEntry>, after: Option<&TreeEntry>) -> Result<()> {
        let Some(name) = before.or(after).map(|entry| &entry.name) else { return Ok(()) };
        // Asked before the path is built, because nearly all entries of a directory are equal.
        if before == after && self.retied.is_empty() {
            return Ok(());
        }
        let path = crate::tree::join(directory, name);
        if before == after && !self.is_retied(&path, before) {
            return Ok(());
        }
        let (mut old, mut new) = (self.below(before)?, self.below(after)?);
        // A checkpoint may hold files of a directory that became a work tree later. On that side the directory is read as left out.
        let passed = TreeEntry::passed(name, Reason::WorkTree);
        let is_place = |tree: &Option<TreeObject>| is_place(self.places.as_deref(), &path, tree.as_ref());
        let (before, after) =
            (if is_place(&old) { Some(&passed) } else { before }, if is_place(&new) { Some(&passed) } else { after });
        for (entry, tree) in [(before, &mut old), (after, &mut new)] {
            if entry == Some(&passed) {
                *tree = None;
            }
        }
        // It is left out on both sides: what differs in another work tree does not differ here.
        if before == after && before == Some(&passed) {
            return Ok(());
        }
        let states = (state(before, old.as_ref()), state(after, new.as_ref()));
        // The paths in two directories tell what differs inside of them.
        let are_directories = old.is_some() && new.is_some();
        if !are_directories || own(old.as_ref()) != own(new.as_ref()) {
            (self.visit)(Difference { path: path.clone(), before: states.0, after: states.1 })?;
        }
        let is_hidden = [before, after].into_iter().flatten().any(|entry| matches!(entry.node, TreeNode::Passed(_)));
        if is_hidden && !self.into_hidden {
            return Ok(());
        }
        self.trees(&path, old.as_ref(), new.as_ref())
    }

    /// Whether a path is one file with others than before; of a directory, whether one below it is.
    fn is_retied(&self, path: &[u8], entry: Option<&TreeEntry>) -> bool {
        if !matches!(entry.map(|entry| &entry.node), Some(TreeNode::Directory(_))) {
            return self.retied.contains(path);
        }
        // With the slash, `a.txt` is not taken for a path below `a`.
        let below = [path, b"/"].concat();
        self.retied.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below))
    }

    fn below(&self, entry: Option<&TreeEntry>) -> Result<Option<TreeObject>> {
        match entry.map(|entry| &entry.node) {
            Some(TreeNode::Directory(hash)) => self.objects.tree(hash).map(Some),
            _ => Ok(None),
        }
    }
}

/// Whether what a checkpoint has as a directory is another work tree.
fn is_place(places: Option<&Places>, path: &[u8], tree: Option<&TreeObject>) -> bool {
    places.zip(tree).is_some_and(|(places, tree)| places.held_as_one(path, tree))
}

fn state(entry: Option<&TreeEntry>, tree: Option<&TreeObject>) -> Option<DiffState> {
    let entry = entry?;
    match &entry.node {
        TreeNode::File { hash, size, mode } => {
            let attributes = entry.attributes.clone();
            Some(DiffState::File { hash: *hash, size: *size, mode: *mode, attributes })
        }
        TreeNode::Symlink(target) => Some(DiffState::Symlink(target.clone())),
        TreeNode::Directory(_) => tree.map(directory),
        TreeNode::Passed(reason) => Some(DiffState::Passed(*reason)),
    }
}

/// What stands at a path in a tree; `None`: nothing, and the tree saw it so.
pub fn find(objects: &Objects, root: &Hash, path: &[u8]) -> Result<Option<DiffState>> {
    Finder::new(objects, root)?.find(path)
}

/// Looks at many paths of a tree. In their order each directory is read once, however deep it lies.
pub struct Finder<'o> {
    objects: &'o Objects,
    /// As of a comparison.
    places: Option<Arc<Places>>,
    root: TreeObject,
    /// The directories on the way to the last path, and their names.
    way: Vec<(Vec<u8>, TreeObject)>,
}

impl<'o> Finder<'o> {
    /// One for this tree. Errors: `corrupt`.
    pub fn new(objects: &'o Objects, root: &Hash) -> Result<Self> {
        Ok(Self { places: objects.places(), ..Self::unveiled(objects, root)? })
    }

    /// One that looks into other work trees, too, where the tree holds any of them. Errors: `corrupt`.
    pub fn unveiled(objects: &'o Objects, root: &Hash) -> Result<Self> {
        Ok(Self { objects, places: None, root: objects.tree(root)?, way: Vec::new() })
    }

    /// What stands at a path; `None`: nothing, and the tree saw it so. Errors: `corrupt`.
    pub fn find(&mut self, path: &[u8]) -> Result<Option<DiffState>> {
        let mut parts = path.split(|b| *b == b'/').enumerate().peekable();
        let mut end = 0;
        while let Some((depth, part)) = parts.next() {
            let is_last = parts.peek().is_none();
            end += part.len() + usize::from(depth > 0);
            // The last part is always looked up: the caller needs its entry, which `way` does not keep.
            if !is_last && self.way.get(depth).is_some_and(|(name, _)| name == part) {
                continue;
            }
            // From here on, the path differs from the last one.
            self.way.truncate(depth);
            let tree = self.way.last().map_or(&self.root, |(_, tree)| tree);
            let entry = tree.get(part).cloned();
            let below = match entry.as_ref().map(|entry| &entry.node) {
                Some(TreeNode::Directory(hash)) => Some(self.objects.tree(hash)?),
                _ => None,
            };
            if is_place(self.places.as_deref(), &path[..end], below.as_ref()) {
                return Ok(Some(DiffState::Passed(Reason::WorkTree)));
            }
            match (below, entry.as_ref().map(|entry| &entry.node)) {
                (below, _) if is_last => {
                    let state = state(entry.as_ref(), below.as_ref());
                    // What comes next lies in it, most likely.
                    self.way.extend(below.map(|below| (part.to_vec(), below)));
                    return Ok(state);
                }
                (Some(below), _) => self.way.push((part.to_vec(), below)),
                // What lies below a name that was left out is not known.
                (None, Some(TreeNode::Passed(reason))) => return Ok(Some(DiffState::Passed(*reason))),
                (None, _) => return Ok(None),
            }
        }
        Ok(None)
    }
}
