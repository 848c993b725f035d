//! What must come before what: the one place for orders, circles and reach. Pure.
//!
//! Nodes are numbers from 0 on; the caller knows what they stand for. Nothing recurses, so that thousands of
//! nodes in a row need no stack.

use std::collections::BTreeSet;

/// Nodes, and which others each needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    needs: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
}

impl Graph {
    /// The graph in which node `n` needs the nodes `needs[n]`; each of these is below `needs.len()`.
    pub fn new(needs: Vec<Vec<usize>>) -> Self {
        let mut dependents = vec![Vec::new(); needs.len()];
        for (node, needed) in needs.iter().enumerate() {
            for need in needed {
                dependents[*need].push(node);
            }
        }
        Self { needs, dependents }
    }

    /// The same nodes with every arrow turned: what needed a node is now needed by it.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { needs: self.dependents, dependents: self.needs }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.needs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// What a node needs itself.
    pub fn needs(&self, node: usize) -> &[usize] {
        &self.needs[node]
    }

    /// All nodes, each after what it needs; of several that are free, the one of the least rank is next.
    /// Nodes of a circle, and those that need them, are left out.
    pub fn order<R: Ord>(&self, rank: impl Fn(usize) -> R) -> Vec<usize> {
        self.order_within((0..self.len()).collect(), rank, |_| None)
    }

    /// The same for some of the nodes: a need outside of `nodes` holds nothing.
    ///
    /// `at_circle`: which of the nodes that are left is next although it still needs one of them; `None` ends the
    /// order.
    pub fn order_within<R: Ord>(
        &self,
        nodes: BTreeSet<usize>,
        rank: impl Fn(usize) -> R,
        at_circle: impl Fn(&BTreeSet<usize>) -> Option<usize>,
    ) -> Vec<usize> {
        // Kahn's algorithm; the set keeps the free nodes sorted by rank, so that the order is the same on every call.
        let open_needs = |node: usize| self.needs[node].iter().filter(|need| nodes.contains(need)).count();
        // A need that is listed twice is counted twice here, and is met twice below.
        let mut open: Vec<usize> = (0..self.len()).map(open_needs).collect();
        let mut free: BTreeSet<(R, usize)> =
            nodes.iter().filter(|node| open[**node] == 0).map(|node| (rank(*node), *node)).collect();
        let mut order = Vec::with_capacity(nodes.len());
        let mut left = nodes;
        while let Some(next) = free.pop_first().map(|(_, node)| node).or_else(|| at_circle(&left)) {
            if !left.remove(&next) {
                // A choice that is not left any more would be asked for again without end.
                break;
            }
            order.push(next);
            for dependent in self.dependents[next].iter().filter(|dependent| left.contains(dependent)) {
                open[*dependent] -= 1;
                if open[*dependent] == 0 {
                    free.insert((rank(*dependent), *dependent));
                }
            }
        }
        order
    }

    /// One circle, each node before one that it needs, from the least of them on; `None` if there is none.
    pub fn cycle(&self) -> Option<Vec<usize>> {
        let mut is_left = vec![true; self.len()];
        for node in self.order(|node| node) {
            is_left[node] = false;
        }
        // Every node that is left needs another that is left: following these leads into a circle.
        let mut at = is_left.iter().position(|left| *left)?;
        let mut seen = vec![None; self.len()];
        let mut path = Vec::new();
        while seen[at].is_none() {
            seen[at] = Some(path.len());
            path.push(at);
            at = self.needs[at].iter().copied().find(|need| is_left[*need])?;
        }
        // The walk may have begun outside of the circle: those nodes are cut off.
        let mut cycle = path.split_off(seen[at]?);
        let first = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(place, _)| place);
        cycle.rotate_left(first);
        Some(cycle)
    }

    /// All that these nodes need, directly or through others; a node itself only if another of them needs it.
    pub fn ancestors(&self, from: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        reached(&self.needs, from)
    }

    /// All that need these nodes, directly or through others; a node itself only if it needs another of them.
    pub fn descendants(&self, from: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        reached(&self.dependents, from)
    }
}

fn reached(edges: &[Vec<usize>], from: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
    let next_to = |node: usize| edges.get(node).into_iter().flatten().copied();
    let mut open: Vec<usize> = from.into_iter().flat_map(next_to).collect();
    let mut reached = BTreeSet::new();
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(next_to(node));
        }
    }
    reached
}

#[cfg(test)]
mod tests;
