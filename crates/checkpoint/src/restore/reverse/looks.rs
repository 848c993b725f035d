//! What stands at a path, taken apart: content, and permission bits with attributes.

use ic_events::Hash;

use crate::attributes::Attributes;
use crate::diff::State;
use crate::restore::plan::Node;

/// Whether two states are the same to a restore: whether a directory is empty is no property of its own.
pub(super) fn is_same(one: Option<&State>, other: Option<&State>) -> bool {
    match (one, other) {
        (Some(State::Passed(reason)), Some(State::Passed(of_other))) => reason == of_other,
        (Some(State::Passed(_)), _) | (_, Some(State::Passed(_))) => false,
        _ => one.and_then(Node::of) == other.and_then(Node::of),
    }
}

pub(super) type Looks = (u32, Attributes);

pub(super) fn own_looks(state: &State) -> Looks {
    match state {
        State::File { mode, attributes, .. } | State::Directory { mode, attributes, .. } => {
            (*mode, attributes.clone())
        }
        State::Symlink(_) | State::Passed(_) => (0, Attributes::default()),
    }
}

/// Permission bits and attributes without what the work changed of them; `None` if others changed them too. `of_others`: they are as the
/// work left them, but others made them so again.
pub(super) fn looks(before: &State, after: &State, now: &State, of_others: bool) -> Option<Looks> {
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

pub(super) fn content(state: &State) -> Content {
    match state {
        State::File { hash, size, .. } => Content { hash: *hash, size: *size },
        State::Symlink(_) | State::Directory { .. } | State::Passed(_) => {
            Content { hash: Hash::default(), size: 0 }
        }
    }
}

pub(super) fn with((mode, attributes): Looks, content: Content) -> State {
    State::File { hash: content.hash, size: content.size, mode, attributes }
}
