//! Which checkpoints are pruned, and which objects are still needed.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use ic_base::{CheckpointId, Code, DispatchId, Result, Timestamp};
use ic_ledger::events::Hash;

use crate::manifest::CheckpointManifest;
use crate::objects::Objects;
use crate::record::{CheckpointKind, CheckpointRecord};
use crate::tree::TreeNode;

mod verify;
pub use verify::{Damage, verify};

/// How long checkpoints are kept (seed 000, AC-5).
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Older ones may go.
    pub max_age: Duration,
    /// How many of each line are kept, however old.
    pub keep_last: usize,
    /// For how many points of an unfinished run checkpoints are kept, however old, beside those of phases and steps.
    pub points: usize,
    /// Whether those that a person or script asked for are kept, however old.
    pub keep_manual: bool,
}

/// The checkpoints that a policy prunes, oldest first.
///
/// `all` are the kept ones, oldest first. A line is a conversation, else a run, else the rest of a root. `pinned` are
/// needed by something that is not finished: they stay. Those of tool calls count for nothing: they stay with the last other one of
/// their dispatch, or all of them go.
pub fn given_up<'c>(
    all: &'c [CheckpointRecord],
    policy: Policy,
    now: Timestamp,
    pinned: &HashSet<CheckpointId>,
) -> Vec<&'c CheckpointRecord> {
    let age = i64::try_from(policy.max_age.as_millis()).unwrap_or(i64::MAX);
    let oldest = now.millis().saturating_sub(age);
    let mut newer: BTreeMap<(&std::path::Path, Option<&str>, Option<&str>), usize> = BTreeMap::new();
    let mut given_up: Vec<&CheckpointRecord> = all
        .iter()
        // Newest first: so the count of a line is how many of it are newer.
        .rev()
        .filter(|checkpoint| !checkpoint.link.of_call)
        .filter(|checkpoint| {
            let link = &checkpoint.link;
            let run = link.run_id.as_ref().filter(|_| link.conversation.is_none()).map(ic_base::RunId::as_str);
            // It is counted first: one that stays for another reason also takes one of the places of `keep_last`.
            let of_line = newer.entry((&checkpoint.root, link.conversation.as_deref(), run)).or_default();
            *of_line += 1;
            *of_line > policy.keep_last
                && checkpoint.created_at.millis() < oldest
                && !(policy.keep_manual && checkpoint.kind == CheckpointKind::Manual)
                && !pinned.contains(&checkpoint.id)
        })
        .collect();
    let goes: HashSet<&CheckpointId> = given_up.iter().map(|checkpoint| &checkpoint.id).collect();
    let others = all.iter().filter(|checkpoint| !checkpoint.link.of_call && !goes.contains(&checkpoint.id));
    let kept: HashSet<&DispatchId> = others.filter_map(|other| other.link.dispatch_id.as_ref()).collect();
    let is_left = |call: &CheckpointRecord| !call.link.dispatch_id.as_ref().is_some_and(|id| kept.contains(id));
    // The looks of tool calls are in no line, so `keep_last` does not count for them.
    given_up.extend(all.iter().filter(|checkpoint| {
        checkpoint.link.of_call
            && checkpoint.created_at.millis() < oldest
            && is_left(checkpoint)
            && !pinned.contains(&checkpoint.id)
    }));
    given_up.sort_by_key(|checkpoint| checkpoint.seq);
    given_up
}

/// Every object that these checkpoints need, pieces included, added to `live`.
///
/// Errors: `corrupt` if a directory or manifest cannot be read: then nothing may be swept, and `live` is of no use. It has the damaged
/// object and lacks what that names, and a further call skips what it has.
pub fn mark(objects: &Objects, checkpoints: &[CheckpointRecord], live: &mut HashSet<Hash>) -> Result<()> {
    checkpoints.iter().try_for_each(|checkpoint| mark_checkpoint(objects, checkpoint, live, false))
}

/// As [`mark`], of what can be read: what cannot is skipped, and with it what only that names. `named`: single objects.
pub fn mark_readable(
    objects: &Objects,
    checkpoints: &[CheckpointRecord],
    named: &[Hash],
    live: &mut HashSet<Hash>,
) -> Result<()> {
    for hash in named {
        readable(mark_one(objects, hash, live))?;
    }
    checkpoints.iter().try_for_each(|checkpoint| mark_checkpoint(objects, checkpoint, live, true))
}

fn mark_checkpoint(
    objects: &Objects,
    checkpoint: &CheckpointRecord,
    live: &mut HashSet<Hash>,
    skips: bool,
) -> Result<()> {
    unless_skipped(mark_one(objects, &checkpoint.manifest, live), skips)?;
    let manifest = unless_skipped(CheckpointManifest::read(objects, &checkpoint.manifest), skips)?;
    for hash in manifest.iter().flat_map(|m| &m.git).flat_map(crate::git::state::GitState::objects) {
        unless_skipped(mark_one(objects, &hash, live), skips)?;
    }
    mark_below(objects, checkpoint.tree, live, skips)
}

/// `None` for what is damaged or lost.
pub fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    unless_skipped(result, true)
}

fn unless_skipped<T>(result: Result<T>, skips: bool) -> Result<Option<T>> {
    match result {
        Err(error) if skips && error.code() == Code::Corrupt => Ok(None),
        result => result.map(Some),
    }
}

/// An object and its pieces.
pub fn mark_one(objects: &Objects, hash: &Hash, live: &mut HashSet<Hash>) -> Result<()> {
    if live.insert(*hash) && objects.has(hash)? {
        live.extend(objects.pieces(hash)?);
    }
    Ok(())
}

/// A directory and all below it. Errors: as [`mark`].
pub fn mark_tree(objects: &Objects, root: &Hash, live: &mut HashSet<Hash>) -> Result<()> {
    mark_below(objects, *root, live, false)
}

fn mark_below(objects: &Objects, root: Hash, live: &mut HashSet<Hash>, skips: bool) -> Result<()> {
    // It uses a list instead of recursion: trees may be thousands of directories deep.
    let mut waiting = vec![root];
    while let Some(hash) = waiting.pop() {
        if live.contains(&hash) {
            continue;
        }
        unless_skipped(mark_one(objects, &hash, live), skips)?;
        for entry in unless_skipped(objects.tree(&hash), skips)?.into_iter().flat_map(|tree| tree.entries) {
            match entry.node {
                TreeNode::Directory(below) => waiting.push(below),
                // A smaller content has no pieces, so the index need not be asked for each small file.
                TreeNode::File { hash, size, .. } if size >= crate::objects::PIECE as u64 => {
                    unless_skipped(mark_one(objects, &hash, live), skips)?;
                }
                TreeNode::File { hash, .. } => {
                    live.insert(hash);
                }
                _ => {}
            }
        }
    }
    Ok(())
}
