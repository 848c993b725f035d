//! What stands at a path, taken apart: content, and permission bits with attributes.

use ic_ledger::events::Hash;

use crate::attributes::Attributes;
use crate::diff::DiffState;
use crate::restore::plan::RestoreNode;

/// Whether two states are the same to a restore: whether a directory is empty does not count.
pub(super) fn is_same(one: Option<&DiffState>, other: Option<&DiffState>) -> bool {
    match (one, other) {
        // Nothing is known of what was left out: the same reason at both times counts as no change.
        (Some(DiffState::Passed(reason)), Some(DiffState::Passed(of_other))) => reason == of_other,
        (Some(DiffState::Passed(_)), _) | (_, Some(DiffState::Passed(_))) => false,
        _ => one.and_then(RestoreNode::of) == other.and_then(RestoreNode::of),
    }
}

pub(super) type PathLooks = (u32, Attributes);

pub(super) fn own_looks(state: &DiffState) -> PathLooks {
    match state {
        DiffState::File { mode, attributes, .. } | DiffState::Directory { mode, attributes, .. } => {
            (*mode, attributes.clone())
        }
        DiffState::Symlink(_) | DiffState::Passed(_) => (0, Attributes::default()),
    }
}

/// Permission bits and attributes without what the work changed of them; `None` if others changed them too. `of_others`: they are as the
/// work left them, but others made them so again.
pub(super) fn looks(before: &DiffState, after: &DiffState, now: &DiffState, of_others: bool) -> Option<PathLooks> {
    let (was, left, is) = (own_looks(before), own_looks(after), own_looks(now));
    if was == left || is == was || (is == left && of_others) {
        Some(is)
    } else if is == left {
        Some(was)
    } else {
        None
    }
}

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) hash: Hash,
    pub(super) size: u64,
}

pub(super) fn content(state: &DiffState) -> Content {
    match state {
        DiffState::File { hash, size, .. } => Content { hash: *hash, size: *size },
        DiffState::Symlink(_) | DiffState::Directory { .. } | DiffState::Passed(_) => {
            Content { hash: Hash::default(), size: 0 }
        }
    }
}

pub(super) fn with((mode, attributes): PathLooks, content: Content) -> DiffState {
    DiffState::File { hash: content.hash, size: content.size, mode, attributes }
}
