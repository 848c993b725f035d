//! A tree with other content at some paths.

use std::collections::BTreeMap;

use ic_base::Result;
use ic_ledger::events::Hash;

use crate::objects::{Objects, Writer};
use crate::tree::{TreeNode, TreeObject};

/// The tree `root` with these nodes in place of what it has at their paths; a path that it has nothing at stays out. The writer gets the
/// directories that are new. Errors: `corrupt` if a directory is damaged.
pub fn graft(objects: &Objects, writer: &Writer<'_>, root: &Hash, nodes: &BTreeMap<Vec<u8>, TreeNode>) -> Result<Hash> {
    let nodes = nodes.iter().map(|(path, node)| (path.as_slice(), node)).collect();
    below(objects, writer, root, &nodes)
}

fn below(objects: &Objects, writer: &Writer<'_>, at: &Hash, nodes: &BTreeMap<&[u8], &TreeNode>) -> Result<Hash> {
    let mut tree: TreeObject = objects.tree(at)?;
    let mut inside: BTreeMap<&[u8], BTreeMap<&[u8], &TreeNode>> = BTreeMap::new();
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
