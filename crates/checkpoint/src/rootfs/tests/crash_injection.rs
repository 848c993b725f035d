//! A thread that dies at its n-th change of a tree: what is on the disk then is what a killed process leaves.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// From now on `moments` go by before the next is the last; `None`: none is.
pub(crate) fn after(moments: Option<usize>) {
    LEFT.set(moments);
}

pub(crate) fn may_come() {
    match LEFT.get() {
        Some(0) => std::panic::panic_any("dead"),
        left => LEFT.set(left.map(|left| left - 1)),
    }
}
