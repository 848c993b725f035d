use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{NotUndone, OrderScope, StartedStep, blocked_by, cut_at_pivot, undo_order};

fn step(name: &str, needs: &[&str]) -> StartedStep {
    StartedStep {
        id: format!("dispatch-of-{name}"),
        name: name.to_owned(),
        needs: needs.iter().map(|n| (*n).to_owned()).collect(),
        pivot: false,
        succeeded: true,
    }
}

fn pivot(name: &str, needs: &[&str], succeeded: bool) -> StartedStep {
    StartedStep { pivot: true, succeeded, ..step(name, needs) }
}

fn names<'s>(started: &'s [StartedStep], order: &[usize]) -> Vec<&'s str> {
    order.iter().map(|at| started[*at].name.as_str()).collect()
}

fn undone<'s>(started: &'s [StartedStep], scope: &OrderScope) -> Vec<&'s str> {
    names(started, &undo_order(started, scope))
}

#[test]
fn without_needs_the_order_is_reversed() {
    let started = [step("a", &[]), step("b", &[]), step("c", &[])];
    assert_eq!(undone(&started, &OrderScope::All), ["c", "b", "a"]);
    assert!(undo_order(&[], &OrderScope::All).is_empty());
}

#[test]
fn a_sibling_that_is_done_is_undone_before_what_both_depend_on() {
    let mut started = [step("a", &[]), step("b", &["a"]), step("c", &["a"])];
    started[1].succeeded = false;
    assert_eq!(undone(&started, &OrderScope::All), ["c", "b", "a"]);
    // Also when b started last.
    started.swap(1, 2);
    assert_eq!(undone(&started, &OrderScope::All), ["b", "c", "a"]);
}

#[test]
fn a_resumed_step_waits_for_what_depends_on_it() {
    let started = [step("a", &[]), step("b", &["a"]), step("c", &["b"]), step("a", &[])];
    assert_eq!(undo_order(&started, &OrderScope::All), [2, 1, 3, 0]);
}

#[test]
fn only_the_dependents_of_the_failed_step() {
    let started = [step("a", &[]), step("b", &["a"]), step("c", &["a"]), step("d", &["b"]), step("e", &["d"])];
    assert_eq!(undone(&started, &OrderScope::Dependents("b".to_owned())), ["e", "d", "b"]);
    assert_eq!(undone(&started, &OrderScope::Dependents("e".to_owned())), ["e"]);
    assert!(undone(&started, &OrderScope::Dependents("z".to_owned())).is_empty());
}

#[test]
fn what_depends_on_a_step_that_was_not_started_is_its_dependent() {
    let started = [step("a", &[]), step("b", &["adopted"]), step("c", &["b"])];
    assert_eq!(undone(&started, &OrderScope::Dependents("adopted".to_owned())), ["c", "b"]);
}

#[test]
fn a_cycle_ends() {
    let started = [step("a", &["b", "a"]), step("b", &["a"]), step("c", &["b"])];
    assert_eq!(undone(&started, &OrderScope::All), ["c", "b", "a"]);
}

#[test]
fn what_a_step_that_stays_depends_on_stays() {
    let started = [step("a", &[]), step("b", &["a"]), step("c", &["b"]), step("d", &["a"]), step("e", &[])];
    let order = undo_order(&started, &OrderScope::All);
    let after = blocked_by(&started, &order, &[2]);
    assert_eq!(names(&started, &after.may_run), ["e", "d"]);
    assert_eq!(after.left, [NotUndone { step: 1, because: vec![2] }, NotUndone { step: 0, because: vec![2] }]);

    let after = blocked_by(&started, &order, &[3, 2]);
    assert_eq!(after.left, [NotUndone { step: 1, because: vec![2] }, NotUndone { step: 0, because: vec![2, 3] }]);
    assert_eq!(blocked_by(&started, &order, &[]).may_run, order);
}

#[test]
fn nothing_at_or_before_a_pivot_is_undone() {
    let started = [step("a", &[]), pivot("p", &["a"], true), step("b", &[]), step("c", &["p"])];
    let order = undo_order(&started, &OrderScope::All);
    let cut = cut_at_pivot(&started, &order, false);
    assert_eq!((cut.undo, cut.left, cut.pivot), (vec![3, 2], vec![1, 0], Some(1)));

    let forced = cut_at_pivot(&started, &order, true);
    assert_eq!((forced.undo, forced.left, forced.pivot), (order, vec![], Some(1)));
}

#[test]
fn the_last_pivot_that_succeeded_counts() {
    let started =
        [pivot("p", &[], true), step("a", &[]), pivot("q", &[], true), step("b", &[]), pivot("r", &[], false)];
    let cut = cut_at_pivot(&started, &undo_order(&started, &OrderScope::All), false);
    assert_eq!((cut.undo, cut.left, cut.pivot), (vec![4, 3], vec![2, 1, 0], Some(2)));

    let failed = [step("a", &[]), pivot("p", &[], false)];
    let cut = cut_at_pivot(&failed, &[1, 0], false);
    assert_eq!((cut.undo, cut.left, cut.pivot), (vec![1, 0], vec![], None));
}

#[test]
fn what_a_step_before_the_pivot_depends_on_stays_though_it_was_resumed_later() {
    let started = [step("a", &[]), step("b", &["a"]), pivot("p", &[], true), step("a", &[])];
    let cut = cut_at_pivot(&started, &undo_order(&started, &OrderScope::All), false);
    assert_eq!((cut.undo, cut.left), (vec![], vec![2, 1, 3, 0]));
}

#[test]
fn the_whole_step_of_a_pivot_stays() {
    let started = [step("a", &[]), pivot("p", &[], true), step("p", &[]), step("b", &[]), step("p", &[])];
    let mut started = started.to_vec();
    started[4].succeeded = false;
    let cut = cut_at_pivot(&started, &undo_order(&started, &OrderScope::All), false);
    assert_eq!((cut.undo, cut.left), (vec![4, 3], vec![2, 1, 0]));
}

#[test]
fn of_several_things_in_one_step_the_earlier_stays_if_the_later_does() {
    let started = [step("a", &[]), step("a", &[]), step("b", &[])];
    let order = undo_order(&started, &OrderScope::All);
    let after = blocked_by(&started, &order, &[1]);
    assert_eq!((after.may_run, after.left), (vec![2], vec![NotUndone { step: 0, because: vec![1] }]));
}

/// The same questions asked of a matrix: `below[x][y]` says that `x` depends on `y`, directly or not.
struct Model {
    below: Vec<Vec<bool>>,
}

impl Model {
    fn of(started: &[StartedStep]) -> Self {
        let n = started.len();
        let needs = |x: usize, y: usize| {
            let (x_step, y_step) = (&started[x], &started[y]);
            x_step.needs.contains(&y_step.name) || x > y && x_step.name == y_step.name
        };
        let mut below: Vec<Vec<bool>> = (0..n).map(|x| (0..n).map(|y| needs(x, y)).collect()).collect();
        for k in 0..n {
            for x in 0..n {
                for y in 0..n {
                    below[x][y] |= below[x][k] && below[k][y];
                }
            }
        }
        Self { below }
    }

    /// Every step is the latest of those that nothing depends on any more, and nothing is undone before its dependants.
    fn is_undo_order(&self, order: &[usize]) -> bool {
        order.iter().enumerate().all(|(at, step)| {
            let open = &order[at..];
            let is_free = |s: usize| open.iter().all(|o| !self.below[*o][s]);
            is_free(*step) && open.iter().all(|o| o <= step || !is_free(*o))
        })
    }

    fn with_dependants(&self, steps: &[usize]) -> BTreeSet<usize> {
        let is_in = |s: &usize| steps.iter().any(|step| s == step || self.below[*s][*step]);
        (0..self.below.len()).filter(is_in).collect()
    }
}

/// Steps with random needs, none of them a cycle; `in_order` says whether each started once, after what it needs.
fn executions(in_order: bool) -> impl Strategy<Value = Vec<StartedStep>> {
    let size = 0..10_usize;
    size.prop_flat_map(move |n| {
        let edges = prop::collection::vec(prop::bool::weighted(0.3), n * n);
        let flags = prop::collection::vec((prop::bool::weighted(0.2), any::<bool>()), n);
        let starts = Just((0..n).collect::<Vec<_>>()).prop_shuffle();
        let again = prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..4);
        (edges, flags, starts, again).prop_map(move |(edges, flags, starts, again)| {
            let steps = (0..n).map(|at| StartedStep {
                id: format!("id-{at}"),
                name: format!("s{at}"),
                needs: (0..at).filter(|to| edges[at * n + to]).map(|to| format!("s{to}")).collect(),
                pivot: flags[at].0,
                succeeded: flags[at].1,
            });
            let steps: Vec<StartedStep> = steps.collect();
            let mut waiting = starts;
            let mut started: Vec<StartedStep> = Vec::new();
            while !waiting.is_empty() {
                let may_start = |at: &usize| {
                    !in_order || steps[*at].needs.iter().all(|need| started.iter().any(|s| s.name == *need))
                };
                let next = waiting.iter().position(may_start).unwrap_or(0);
                started.push(steps[waiting.remove(next)].clone());
            }
            for (step, place) in again.iter().filter(|_| !in_order && n > 0) {
                let (step, place) = (step.index(started.len()), place.index(started.len() + 1));
                started.insert(place, started[step].clone());
            }
            started
        })
    })
}

proptest! {
    #[test]
    fn starts_that_the_needs_allow_are_exactly_reversed(started in executions(true)) {
        let order = undo_order(&started, &OrderScope::All);
        prop_assert_eq!(order, (0..started.len()).rev().collect::<Vec<_>>());
    }

    #[test]
    fn whatever_the_starts_every_step_waits_for_its_dependants(started in executions(false)) {
        let order = undo_order(&started, &OrderScope::All);
        prop_assert!(Model::of(&started).is_undo_order(&order), "{:?}", order);
        let once: BTreeSet<usize> = order.iter().copied().collect();
        prop_assert_eq!((once.len(), order.len()), (started.len(), started.len()));
    }

    #[test]
    fn a_scope_is_closed_and_keeps_the_order(started in executions(false), pick in any::<prop::sample::Index>()) {
        prop_assume!(!started.is_empty());
        let (failed, model) = (pick.index(started.len()), Model::of(&started));
        let name = &started[failed].name;
        let order = undo_order(&started, &OrderScope::Dependents(name.clone()));
        let same: Vec<usize> = (0..started.len()).filter(|s| started[*s].name == *name).collect();
        prop_assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), model.with_dependants(&same));
        prop_assert!(model.is_undo_order(&order));
        let of_all: Vec<usize> = undo_order(&started, &OrderScope::All);
        let kept: Vec<usize> = of_all.into_iter().filter(|s| order.contains(s)).collect();
        prop_assert_eq!(kept, order);
    }

    #[test]
    fn a_step_is_left_exactly_if_a_dependant_is_unfinished(
        started in executions(false), failed in prop::collection::vec(any::<bool>(), 16)
    ) {
        let (order, model) = (undo_order(&started, &OrderScope::All), Model::of(&started));
        let unfinished: Vec<usize> = (0..started.len()).filter(|s| failed[*s]).collect();
        let after = blocked_by(&started, &order, &unfinished);
        for step in &order {
            let because: Vec<usize> = unfinished.iter().copied().filter(|u| model.below[*u][*step]).collect();
            let left = after.left.iter().find(|l| l.step == *step).map(|l| l.because.clone());
            let expected = (!failed[*step] && !because.is_empty()).then_some(because.clone());
            prop_assert_eq!(left, expected);
            prop_assert_eq!(after.may_run.contains(step), !failed[*step] && because.is_empty());
        }
        prop_assert!(model.is_undo_order(&after.may_run));
    }

    #[test]
    fn a_pivot_holds_what_started_before_it_and_no_step_loses_what_it_stands_on(
        started in executions(false), force in any::<bool>()
    ) {
        let (order, model) = (undo_order(&started, &OrderScope::All), Model::of(&started));
        let cut = cut_at_pivot(&started, &order, force);
        let pivot = (0..started.len()).filter(|s| started[*s].pivot && started[*s].succeeded).max();
        prop_assert_eq!(cut.pivot, pivot);
        for step in &order {
            let stays = |at: usize, p: usize| at <= p || started[at].succeeded && started[at].name == started[p].name;
            let holds = |p: usize| {
                (0..started.len()).any(|at| stays(at, p) && (at == *step || model.below[at][*step]))
            };
            let held = pivot.is_some_and(holds);
            prop_assert_eq!(cut.left.contains(step), held && !force);
            prop_assert_eq!(cut.undo.contains(step), !held || force);
        }
    }
}
