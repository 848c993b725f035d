//! A tree with other content at some paths.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::Result;
use ic_ledger::events::Hash;

use crate::attributes::Attributes;
use crate::diff::Finder;
use crate::objects::{Objects, Writer};
use crate::restore::plan::is_at_or_below;
use crate::tree::{Groups, TreeEntry, TreeNode, TreeObject, join};

/// The tree `root` with these nodes in place of what it has at their paths; a path that it has nothing at stays out. The writer gets the
/// directories that are new. Errors: `corrupt` if a directory is damaged.
pub fn graft(objects: &Objects, writer: &Writer<'_>, root: &Hash, nodes: &BTreeMap<Vec<u8>, TreeNode>) -> Result<Hash> {
    let nodes = nodes.iter().map(|(path, node)| (path.as_slice(), node)).collect();
    below(objects, writer, root, &nodes)
}

fn below(objects: &Objects, writer: &Writer<'_>, at: &Hash, nodes: &BTreeMap<&[u8], &TreeNode>) -> Result<Hash> {
    let mut tree: TreeObject = objects.tree(at)?;
    let mut inside: BTreeMap<&[u8], BTreeMap<&[u8], &TreeNode>> = BTreeMap::new();
    // The paths are grouped by their first name: each directory is read and stored once, however many paths lead into it.
    for (path, node) in nodes {
        match path.iter().position(|byte| *byte == b'/') {
            Some(end) => {
                inside.entry(&path[..end]).or_default().insert(&path[end + 1..], *node);
            }
            None => {
                if let Some(entry) = tree.entries.iter_mut().find(|entry| entry.name == *path) {
                    entry.node = (*node).clone();
                }
            }
        }
    }
    for entry in &mut tree.entries {
        if let (TreeNode::Directory(hash), Some(nodes)) = (&entry.node, inside.get(entry.name.as_slice())) {
            entry.node = TreeNode::Directory(below(objects, writer, hash, nodes)?);
        }
    }
    writer.put_tree(&tree.encode())
}

/// The tree `now`, but at these paths as the tree `was` has it. The writer gets the directories that are new.
///
/// Errors: `corrupt` if a directory is damaged.
pub fn overlay(
    objects: &Objects,
    writer: &Writer<'_>,
    (now, was): (&Hash, &Hash),
    paths: &BTreeSet<Vec<u8>>,
) -> Result<Hash> {
    let both = Overlay { objects, writer, paths };
    // Both trees have a root, so there always is one here.
    let mut root = both.directory(&[], Some(now), Some(was))?.unwrap_or_default();
    let mut links = objects.tree(was)?.links;
    if !links.is_empty() {
        // A name that is gone is tied to nothing.
        // The new tree itself, still without links, tells which names are left. It may be in a pack that is not
        // written yet, hence `expose`.
        let bare = writer.put_tree(&root.encode())?;
        writer.expose()?;
        keep_existing(objects, &bare, &mut links)?;
        root.links = links;
    }
    writer.put_tree(&root.encode())
}

fn keep_existing(objects: &Objects, root: &Hash, links: &mut Groups) -> Result<()> {
    let mut finder = Finder::new(objects, root)?;
    for group in links.iter_mut() {
        let mut there = Vec::new();
        for path in group.drain(..) {
            if finder.find(&path)?.is_some_and(|state| state.is_content()) {
                there.push(path);
            }
        }
        *group = there;
    }
    links.retain(|group| group.len() > 1);
    Ok(())
}

struct Overlay<'o, 'w> {
    objects: &'o Objects,
    writer: &'o Writer<'w>,
    /// The paths that come from the older tree.
    paths: &'o BTreeSet<Vec<u8>>,
}

impl Overlay<'_, '_> {
    /// A directory of which each tree may have a part; `None`: nothing is left of it.
    fn directory(&self, at: &[u8], now: Option<&Hash>, was: Option<&Hash>) -> Result<Option<TreeObject>> {
        let read = |hash: Option<&Hash>| hash.map(|hash| self.objects.tree(hash)).transpose();
        let (now, was) = (read(now)?, read(was)?);
        let is_of_was = self.paths.contains(at);
        // Mode and attributes come from the tree that gives this path, or from the other one if that has no directory here.
        let (first, second) = if is_of_was { (&was, &now) } else { (&now, &was) };
        let Some(looks) = first.as_ref().or(second.as_ref()) else { return Ok(None) };
        let mut entries = Vec::new();
        let all = [&now, &was].into_iter().flatten().flat_map(|tree| &tree.entries);
        let names: BTreeSet<&[u8]> = all.map(|entry| entry.name.as_slice()).collect();
        for name in names {
            let entry = |tree: &Option<TreeObject>| tree.as_ref().and_then(|tree| tree.get(name)).cloned();
            entries.extend(self.entry(&join(at, name), name, entry(&now), entry(&was))?);
        }
        let stays = first.is_some() || !entries.is_empty();
        let (mode, attributes) = (looks.mode, looks.attributes.clone());
        Ok(stays.then_some(TreeObject { mode, attributes, links: Groups::new(), entries }))
    }

    fn entry(
        &self,
        path: &[u8],
        name: &[u8],
        now: Option<TreeEntry>,
        was: Option<TreeEntry>,
    ) -> Result<Option<TreeEntry>> {
        if !self.is_any_at_or_below(path) {
            return Ok(now);
        }
        let below = |entry: &Option<TreeEntry>| match entry.as_ref().map(|entry| &entry.node) {
            Some(TreeNode::Directory(hash)) => Some(*hash),
            _ => None,
        };
        let (here, there) = (below(&now), below(&was));
        let chosen = if self.paths.contains(path) { was } else { now };
        // Where nothing is chosen, names below may still be of the other tree and stay: they are merged one by one.
        if chosen.as_ref().is_some_and(|entry| !matches!(entry.node, TreeNode::Directory(_))) {
            return Ok(chosen);
        }
        let Some(tree) = self.directory(path, here.as_ref(), there.as_ref())? else { return Ok(None) };
        let node = TreeNode::Directory(self.writer.put_tree(&tree.encode())?);
        // A directory's attributes are in its own object.
        Ok(Some(TreeEntry { name: name.to_vec(), node, attributes: Attributes::default() }))
    }

    fn is_any_at_or_below(&self, path: &[u8]) -> bool {
        // Names such as `a.txt` stand between `a` and `a/b`, so the search begins below the directory.
        let below = [path, b"/"].concat();
        self.paths.contains(path) || self.paths.range(below..).next().is_some_and(|next| is_at_or_below(next, path))
    }
}
