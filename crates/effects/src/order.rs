//! The order in which the steps of an execution are undone. Pure.
//!
//! The invariant of all three functions: a step is undone only after everything that depended on it is undone, however
//! many steps lie between. Steps are answered as indices into the steps as they started.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ic_base::graph::Graph;

/// A step of an execution that was started.
///
/// One that was started more than once, or has several things to undo, stands more than once: each of them counts as
/// depending on the one before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartedStep {
    /// Which of them it is, for the caller: it has no part in the order.
    pub id: String,
    /// The name by which other steps need it.
    pub name: String,
    /// The names of the steps that it depends on. Steps that were not started have no part in the order.
    pub needs: Vec<String>,
    /// Whether it cannot be undone once it has succeeded.
    pub pivot: bool,
    /// Whether it ended well.
    pub succeeded: bool,
}

/// What is undone of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderScope {
    /// Every step that was started.
    All,
    /// The step of this name and everything that depends on it.
    Dependents(String),
}

/// What happens to the other steps when one step cannot be undone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// They wait until that step is tried again.
    #[default]
    Stop,
    /// They are undone, except those that [`blocked_by`] leaves. The whole counts as failed anyway.
    Continue,
}

/// The steps in scope, first undone first: in reverse of the order in which they started, except that a step waits until everything that
/// depended on it is undone.
///
/// `started` is in the order of the starts. That order need not be one that the needs allow (a step that was resumed starts
/// again, after the steps that depend on it). A cycle, which no valid workflow has, is broken at the step that
/// started last.
pub fn undo_order(started: &[StartedStep], scope: &OrderScope) -> Vec<usize> {
    let graph = links(started);
    let steps = match scope {
        OrderScope::All => (0..started.len()).collect(),
        OrderScope::Dependents(name) => {
            // A step that was not started has no entry here. Then those that need it by its name are the first.
            let is_first = |at: &usize| started[*at].name == *name || started[*at].needs.contains(name);
            let first: BTreeSet<usize> = (0..started.len()).filter(is_first).collect();
            &graph.descendants(first.iter().copied()) | &first
        }
    };
    // A step waits for what depends on it, so the graph is reversed. The latest of the free steps is next:
    //
    //     started   0 a    1 b (needs a)    2 c (needs b)    3 a again, because it was resumed
    //     undone    2 c    1 b    3 a    0 a
    graph.reversed().order_within(steps, Reverse, |left| left.last().copied())
}

/// What can still be done after some steps could not be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Continuation {
    /// Those that can still be undone, first undone first.
    pub may_run: Vec<usize>,
    /// Those that must stay, and why.
    pub left: Vec<NotUndone>,
}

/// A step that must stay because something that depends on it stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUndone {
    /// An index into the steps as they started.
    pub step: usize,
    /// The steps that depend on it and could not be undone, in the order in which they started.
    pub because: Vec<usize>,
}

/// Which of the steps in `order` may be undone now that the `unfinished` ones could not be ([`FailurePolicy::Continue`]).
///
/// `order` is an [`undo_order`], or what is still pending of one; the unfinished ones themselves are in neither part of the
/// answer.
pub fn blocked_by(started: &[StartedStep], order: &[usize], unfinished: &[usize]) -> Continuation {
    let graph = links(started);
    let mut because: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for failed in unfinished {
        // This reaches through any number of steps: one between them may be undone already, and so be missing in `order`.
        for needed in graph.ancestors([*failed]) {
            because.entry(needed).or_default().insert(*failed);
        }
    }
    let mut continuation = Continuation::default();
    for step in order.iter().copied().filter(|step| !unfinished.contains(step)) {
        match because.remove(&step) {
            None => continuation.may_run.push(step),
            Some(because) => {
                continuation.left.push(NotUndone { step, because: because.into_iter().collect() });
            }
        }
    }
    continuation
}

/// An undo order, parted at a step that cannot be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PivotCut {
    /// Those that are undone, first undone first.
    pub undo: Vec<usize>,
    /// Those that stay, in the same order.
    pub left: Vec<usize>,
    /// The pivot that succeeded and started last, also when it is not heeded.
    pub pivot: Option<usize>,
}

/// Removes from `order` what must stay because a pivot has succeeded: every step that started before it, all attempts at the pivot's own
/// step, and everything that one of these depends on.
///
/// A pivot that failed blocks nothing. With `force` no pivot does; then a pivot is in [`PivotCut::undo`], and the caller must say that
/// nothing is run for it.
pub fn cut_at_pivot(started: &[StartedStep], order: &[usize], force: bool) -> PivotCut {
    let pivot = started.iter().rposition(|step| step.pivot && step.succeeded);
    let stays = match pivot {
        Some(pivot) if !force => {
            // A later attempt at its step that failed is undone: a pivot that failed blocks nothing.
            let is_same_step = |at: &usize| started[*at].succeeded && started[*at].name == started[pivot].name;
            let later = (pivot..started.len()).filter(is_same_step);
            // What these need is held, too: a step from before the pivot may need one that was resumed after it.
            let held: BTreeSet<usize> = (0..=pivot).chain(later).collect();
            &links(started).ancestors(held.iter().copied()) | &held
        }
        _ => BTreeSet::new(),
    };
    let (left, undo) = order.iter().copied().partition(|step| stays.contains(step));
    PivotCut { undo, left, pivot }
}

/// Which started step depends on which, by index.
fn links(started: &[StartedStep]) -> Graph {
    let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, step) in started.iter().enumerate() {
        named.entry(&step.name).or_default().push(at);
    }
    let needs_of = |step: &StartedStep| {
        // A step that names itself would be a circle. Attempts of one name are chained below instead.
        let others = step.needs.iter().filter(|need| **need != step.name);
        others.filter_map(|need| named.get(need.as_str())).flatten().copied().collect()
    };
    let mut needs: Vec<Vec<usize>> = started.iter().map(needs_of).collect();
    // Attempts of one step are undone newest first, as if each needed the one before.
    for pair in named.values().flat_map(|same_step| same_step.windows(2)) {
        needs[pair[1]].push(pair[0]);
    }
    Graph::new(needs)
}

#[cfg(test)]
mod tests;
