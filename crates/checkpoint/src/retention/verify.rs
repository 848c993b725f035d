//! Looking for content that is missing or damaged. However many checkpoints need an object, it is read once: two checkpoints share most
//! of theirs, and a walk of each would take as long as all trees together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_ledger::events::Hash;

use super::readable;
use crate::manifest::CheckpointManifest;
use crate::objects::Objects;
use crate::record::CheckpointRecord;
use crate::tree::{TreeNode, TreeObject};

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The hash under which the store should have it.
    pub object: Hash,
    /// A sentence about what is wrong with it, for people.
    pub problem: String,
    /// The checkpoints that need it.
    pub checkpoints: Vec<CheckpointId>,
    /// Whether a checkpoint cannot be read without it: a directory, or what its row does not hold.
    pub is_structure: bool,
    /// Whether it is lost for certain, rather than out of reach at this moment.
    pub is_lost: bool,
}

/// Looks for objects that checkpoints need and that are missing or, with `read_data`, damaged.
///
/// Returns them with the number of objects that were looked at.
pub fn verify(objects: &Objects, checkpoints: &[CheckpointRecord], read_data: bool) -> Result<(Vec<Damage>, u64)> {
    // Hundreds of small reads for each checkpoint: one transaction for all of them.
    objects.at_one_moment(|| {
        let mut look = Look { objects, read_data, looked_at: HashSet::new(), damage: BTreeMap::new() };
        for checkpoint in checkpoints {
            look.look_at(checkpoint);
        }
        let count = look.looked_at.len() as u64;
        let mut damage = look.damage;
        if !damage.is_empty() {
            find_who_needs(objects, checkpoints, &mut damage)?;
        }
        Ok((damage.into_values().collect(), count))
    })
}

/// What an object is to the checkpoint that needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Directory,
    Manifest,
    Content,
}

/// A look at every object once.
struct Look<'o> {
    objects: &'o Objects,
    read_data: bool,
    looked_at: HashSet<Hash>,
    damage: BTreeMap<Hash, Damage>,
}

impl Look<'_> {
    fn look_at(&mut self, checkpoint: &CheckpointRecord) {
        let mut waiting = vec![(checkpoint.tree, Role::Directory), (checkpoint.manifest, Role::Manifest)];
        while let Some((hash, role)) = waiting.pop() {
            if !self.looked_at.insert(hash) {
                continue;
            }
            let needed = match role {
                Role::Directory => self.directory(&hash),
                Role::Manifest => self.manifest(&hash),
                Role::Content => self.content(&hash).map(|()| Vec::new()),
            };
            match needed {
                Ok(needed) => waiting.extend(needed),
                Err(problem) => self.found(hash, role, &problem),
            }
        }
    }

    /// What a directory needs. What was purged needs nothing.
    fn directory(&self, hash: &Hash) -> Result<Vec<(Hash, Role)>> {
        let bytes = match self.objects.read(hash) {
            Err(_) if self.objects.is_purged(hash)? => return Ok(Vec::new()),
            bytes => bytes?,
        };
        let entries = TreeObject::decode(&bytes)?.entries.into_iter();
        let needed = entries.filter_map(|entry| match entry.node {
            TreeNode::Directory(below) => Some((below, Role::Directory)),
            TreeNode::File { hash, .. } => Some((hash, Role::Content)),
            _ => None,
        });
        Ok(needed.collect())
    }

    /// What a manifest needs. One that is there and cannot be read is damage only where content is read.
    fn manifest(&self, hash: &Hash) -> Result<Vec<(Hash, Role)>> {
        match CheckpointManifest::read(self.objects, hash) {
            Ok(manifest) => Ok(git_objects(&manifest).into_iter().map(|hash| (hash, Role::Content)).collect()),
            Err(_) => self.content(hash).map(|()| Vec::new()),
        }
    }

    fn content(&self, hash: &Hash) -> Result<()> {
        // Without `read_data` the index is believed. What was purged is gone on purpose, which is not damage.
        if !self.read_data && self.objects.has(hash)? || self.objects.is_purged(hash)? {
            return Ok(());
        }
        self.objects.read_to(hash, &mut io::sink()).map(drop)
    }

    fn found(&mut self, object: Hash, role: Role, problem: &Diagnosis) {
        let damage = Damage {
            object,
            problem: problem.message().to_owned(),
            checkpoints: Vec::new(),
            is_structure: role != Role::Content,
            // Any other error says that the content could not be reached, and it may be there.
            is_lost: problem.code() == Code::Corrupt,
        };
        self.damage.insert(object, damage);
    }
}

fn git_objects(manifest: &CheckpointManifest) -> Vec<Hash> {
    manifest.git.iter().flat_map(crate::git::state::GitState::objects).collect()
}

/// Adds to each damaged object the checkpoints that need it.
fn find_who_needs(
    objects: &Objects,
    checkpoints: &[CheckpointRecord],
    damage: &mut BTreeMap<Hash, Damage>,
) -> Result<()> {
    let mut below = HashMap::new();
    for checkpoint in checkpoints {
        find_below(objects, checkpoint.tree, damage, &mut below)?;
        let mut hurt = below.get(&checkpoint.tree).cloned().unwrap_or_default();
        hurt.insert(checkpoint.manifest);
        // What a lost manifest named is not known.
        let manifest = readable(CheckpointManifest::read(objects, &checkpoint.manifest))?;
        hurt.extend(manifest.iter().flat_map(git_objects));
        for hash in hurt {
            if let Some(damage) = damage.get_mut(&hash) {
                damage.is_structure |= hash == checkpoint.manifest;
                damage.checkpoints.push(checkpoint.id.clone());
            }
        }
    }
    Ok(())
}

/// Notes which damaged objects a directory and all below it need: each directory once, those below it before it.
fn find_below(
    objects: &Objects,
    root: Hash,
    damage: &mut BTreeMap<Hash, Damage>,
    below: &mut HashMap<Hash, BTreeSet<Hash>>,
) -> Result<()> {
    // It uses a list instead of recursion, for deep trees. A directory stays on the list until all below it are known.
    let mut waiting = vec![root];
    while let Some(&hash) = waiting.last() {
        if below.contains_key(&hash) {
            waiting.pop();
            continue;
        }
        // What a damaged directory held is not known: it stands for all of that.
        if let Some(damage) = damage.get_mut(&hash) {
            damage.is_structure = true;
            below.insert(hash, BTreeSet::from([hash]));
            continue;
        }
        // One that was purged is no damage.
        let entries = readable(objects.tree(&hash))?.map_or_else(Vec::new, |tree| tree.entries);
        let (mut hurt, mut is_whole) = (BTreeSet::new(), true);
        for entry in entries {
            match entry.node {
                // One that is not known yet is looked at first, and this one once more after it.
                TreeNode::Directory(inner) => {
                    if let Some(found) = below.get(&inner) {
                        hurt.extend(found);
                    } else {
                        waiting.push(inner);
                        is_whole = false;
                    }
                }
                TreeNode::File { hash, .. } if damage.contains_key(&hash) => drop(hurt.insert(hash)),
                _ => {}
            }
        }
        if is_whole {
            below.insert(hash, hurt);
        }
    }
    Ok(())
}
