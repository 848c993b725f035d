use std::cmp::Reverse;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Graph;

fn graph(needs: &[Vec<usize>]) -> Graph {
    Graph::new(needs.to_vec())
}

#[test]
fn cycles_are_found_from_their_first_node_on() {
    for (needs, found) in [
        (&[vec![], vec![0], vec![1]][..], None),
        (&[vec![0]], Some(vec![0])),
        (&[vec![1], vec![0]], Some(vec![0, 1])),
        (&[vec![3], vec![2], vec![3], vec![1]], Some(vec![1, 2, 3])),
        (&[], None),
    ] {
        assert_eq!(graph(needs).cycle(), found, "{needs:?}");
    }
}

#[test]
fn what_is_in_a_circle_or_needs_one_has_no_place() {
    assert_eq!(graph(&[vec![1], vec![0], vec![0], vec![]]).order(|node| node), [3]);
}

#[test]
fn a_choice_opens_a_circle() {
    let graph = graph(&[vec![1], vec![0], vec![0], vec![]]);
    let all = || (0..4).collect();
    assert_eq!(graph.order_within(all(), |node| node, |left| left.last().copied()), [3, 2, 1, 0]);
    assert_eq!(graph.order_within(all(), |node| node, |left| left.first().copied()), [3, 0, 1, 2]);
    assert_eq!(graph.order_within(all(), |node| node, |_| Some(3)), [3], "a choice that is not left ends it");
}

#[test]
fn ten_thousand_nodes_in_a_row_need_no_stack() {
    let count = 10_000;
    let ring = graph(&(0..count).map(|node| vec![(node + 1) % count]).collect::<Vec<_>>());
    assert_eq!(ring.cycle().map(|cycle| cycle.len()), Some(count));
    let row = graph(&(0..count).map(|node| (node + 1..count).take(1).collect()).collect::<Vec<_>>());
    assert_eq!(row.order(|node| node), (0..count).rev().collect::<Vec<_>>());
    assert_eq!(row.ancestors([0]).len(), count - 1);
}

/// The order by its definition: again and again the least that is free.
fn by_definition(needs: &[Vec<usize>], nodes: &BTreeSet<usize>, newest_first: bool) -> Vec<usize> {
    let mut left = nodes.clone();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |node: &usize| needs[*node].iter().all(|need| !left.contains(need));
        let mut free = left.iter().copied().filter(is_free);
        let free = if newest_first { free.next_back() } else { free.next() };
        let Some(next) = free.or_else(|| left.last().copied().filter(|_| newest_first)) else { break };
        left.remove(&next);
        order.push(next);
    }
    order
}

fn any_needs() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec((0..12_usize, 0..12_usize), 0..24).prop_map(|edges| {
        let mut needs = vec![Vec::new(); 12];
        for (from, to) in edges {
            needs[from].push(to);
        }
        needs
    })
}

proptest! {
    #[test]
    fn the_order_is_the_one_of_its_definition(needs in any_needs(), nodes in proptest::collection::btree_set(0..12_usize, 0..12)) {
        let graph = graph(&needs);
        let all: BTreeSet<usize> = (0..12).collect();
        prop_assert_eq!(graph.order(|node| node), by_definition(&needs, &all, false));
        let newest_first = graph.order_within(nodes.clone(), Reverse, |left| left.last().copied());
        prop_assert_eq!(newest_first, by_definition(&needs, &nodes, true));
    }

    #[test]
    fn a_cycle_is_one_and_is_found_if_there_is_one(needs in any_needs()) {
        let graph = graph(&needs);
        let is_cyclic = (0..12).any(|node| graph.ancestors([node]).contains(&node));
        let found = graph.cycle();
        prop_assert_eq!(found.is_some(), is_cyclic);
        if let Some(found) = found {
            for (place, node) in found.iter().enumerate() {
                prop_assert!(needs[*node].contains(&found[(place + 1) % found.len()]));
            }
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            prop_assert_eq!(found.iter().min(), found.first());
        }
    }

    #[test]
    fn who_needs_whom_is_the_same_from_both_ends(needs in any_needs()) {
        let (graph, turned) = (graph(&needs), graph(&needs).reversed());
        for node in 0..12 {
            prop_assert_eq!(graph.ancestors([node]), turned.descendants([node]));
            for other in graph.ancestors([node]) {
                prop_assert!(graph.descendants([other]).contains(&node));
            }
        }
    }
}
