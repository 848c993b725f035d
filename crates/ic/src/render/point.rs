//! Points of a run.

use ic_ops::point::Listed;

use super::{plain, second};

/// A point on a line of a list to choose from.
pub(crate) fn line(one: &Listed) -> String {
    format!("{}  {:<20}  {}", second(one.created_at), plain(&one.reference), plain(&one.title))
}
