//! Draws checkpoints as a tree, or as a numbered list.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::CheckpointId;
use ic_worktree::ShownCheckpoint;

use super::{about, kind_style, summary};
use crate::text::{plain, second, style, styled};

/// A numbered list of checkpoints to choose from.
pub(crate) fn choice(all: &[ShownCheckpoint]) -> String {
    let lines = all.iter().enumerate().map(|(i, shown)| format!("{:>3}  {}\n", i + 1, node(shown)));
    lines.collect()
}

/// The tree of checkpoints: children are below their parent, and a branch is indented.
pub(crate) fn tree(all: &[ShownCheckpoint]) -> String {
    if all.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let ids: BTreeSet<&str> = all.iter().map(|shown| shown.checkpoint.id.as_str()).collect();
    let mut below: BTreeMap<Option<&str>, Vec<&ShownCheckpoint>> = BTreeMap::new();
    for shown in all {
        // A checkpoint whose parent is not in the list is drawn as the root of a tree.
        let parent = shown.checkpoint.parent_id.as_ref().map(CheckpointId::as_str).filter(|id| ids.contains(id));
        below.entry(parent).or_default().push(shown);
    }
    let mut out = String::new();
    // Depth first without recursion, because a history may be thousands of checkpoints deep.
    let mut stack: Vec<(&ShownCheckpoint, String, &str)> =
        below.get(&None).into_iter().flatten().rev().map(|root| (*root, String::new(), "")).collect();
    while let Some((shown, prefix, branch)) = stack.pop() {
        out += &format!("{prefix}{branch}{}\n", node(shown));
        let children = below.get(&Some(shown.checkpoint.id.as_str())).map_or(&[][..], Vec::as_slice);
        // Beside what is on a branch, the line of the trunk continues to its next checkpoint.
        let inner = match branch {
            "├─" => format!("{prefix}│ "),
            _ => prefix.clone(),
        };
        // The newest child continues in the same column; older branches are drawn first, beside it.
        for (i, child) in children.iter().enumerate().rev() {
            let is_last = i + 1 == children.len();
            stack.push((child, inner.clone(), if is_last { "" } else { "├─" }));
        }
    }
    out
}

fn node(shown: &ShownCheckpoint) -> String {
    let checkpoint = &shown.checkpoint;
    let mut line = format!(
        "{} {}  {}  {}",
        styled(kind_style(checkpoint.kind), "●"),
        styled(style::STRONG, checkpoint.id.short()),
        styled(kind_style(checkpoint.kind), &format!("{:<8}", checkpoint.kind.as_str())),
        styled(style::DIM, &second(checkpoint.created_at)),
    );
    let changes = summary(shown.manifest.as_ref());
    if !changes.is_empty() {
        line += &format!("  {changes}");
    }
    let about = about(checkpoint);
    if !about.is_empty() {
        line += &format!("  {}", plain(&about));
    }
    line
}
