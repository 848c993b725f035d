//! Rows of a server, of which a program without the feature `server` sees none.

use super::Value;

pub(crate) enum NoRow {}
pub(crate) use NoRow as ServerRow;

pub(super) fn value(row: &NoRow, _: usize) -> Option<Value<'_>> {
    match *row {}
}

pub(super) fn column(row: &NoRow, _: usize) -> Option<&str> {
    match *row {}
}

pub(super) fn width(row: &NoRow) -> usize {
    match *row {}
}
