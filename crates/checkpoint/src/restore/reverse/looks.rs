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

fn own_looks(state: &State) -> Looks {
    match state {
        State::File { mode, attributes, .. } | State::Directory { mode, attributes, .. } => {
            (*mode, attributes.clone())
        }
        State::Symlink(_) | State::Passed(_) => (0, Attributes::default()),
    }
}

/// Permission bits and attributes without what the work changed of them; `None` if others changed them too.
pub(super) fn looks(before: &State, after: &State, now: &State) -> Option<Looks> {
    let (was, left, is) = (own_looks(before), own_looks(after), own_looks(now));
    if was == left || is == was {
        Some(is)
    } else if is == left {
        Some(was)
    } else {
        None
    }
}

pub(super) fn content(state: &State) -> (Hash, u64) {
    match state {
        State::File { hash, size, .. } => (*hash, *size),
        State::Symlink(_) | State::Directory { .. } | State::Passed(_) => (Hash::default(), 0),
    }
}

pub(super) fn with((mode, attributes): Looks, (hash, size): (Hash, u64)) -> State {
    State::File { hash, size, mode, attributes }
}
