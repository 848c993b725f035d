//! The order in which tables are cut.

use std::collections::BTreeSet;

use ic_base::Result;
use ic_base::graph::Graph;

use super::table::{CutOrder, CutTable};
use crate::error::misfit;
use crate::schema::ForeignKey;

/// Sorts children before parents. Tables without a connection keep the order of the configuration.
///
/// A row that follows its parent must be removed before it, or its parent is not found. Foreign keys may form a circle: they are not
/// enforced during the rewind, and afterwards a query checks that every row that stays has its parent.
/// Errors: `invalid_config` when tables follow each other in a circle.
pub(super) fn children_first(cuts: Vec<CutTable>, keys: &[ForeignKey]) -> Result<Vec<CutTable>> {
    let follows = |child: &CutTable, parent: &CutTable| matches!(&child.order, CutOrder::Follow { parent: name, .. } if *name == parent.info.name);
    let refers = |child: &CutTable, parent: &CutTable| {
        let (child, parent) = (&child.info.name, &parent.info.name);
        child != parent && keys.iter().any(|key| key.child == *child && key.parent == *parent)
    };
    let followers = waits_for(&cuts, follows);
    let graph = Graph::new(waits_for(&cuts, |child, parent| follows(child, parent) || refers(child, parent)));
    // A circle of foreign keys is opened at a table that no other follows: only followers must go before their parents.
    let is_unfollowed = |at: &usize, left: &BTreeSet<usize>| followers[*at].iter().all(|child| !left.contains(child));
    let order = graph.order_within(
        (0..cuts.len()).collect(),
        |at| at,
        |left| left.iter().copied().find(|at| is_unfollowed(at, left)),
    );
    let mut cuts: Vec<Option<CutTable>> = cuts.into_iter().map(Some).collect();
    let sorted: Vec<CutTable> = order.into_iter().filter_map(|at| cuts[at].take()).collect();
    let left: Vec<CutTable> = cuts.into_iter().flatten().collect();
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|cut| cut.info.name.as_str()).collect();
        return Err(misfit(format!("These tables follow each other in a circle: {}.", names.join(", "))));
    }
    Ok(sorted)
}

/// For each table, the indexes of those that must be cut before it.
fn waits_for(cuts: &[CutTable], is_child: impl Fn(&CutTable, &CutTable) -> bool) -> Vec<Vec<usize>> {
    let children =
        |parent| cuts.iter().enumerate().filter(|(_, cut)| is_child(cut, parent)).map(|(at, _)| at).collect();
    cuts.iter().map(children).collect()
}
