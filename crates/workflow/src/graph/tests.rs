use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use super::StepOrder;
use crate::definition::{Definition, StepCommand, StepRetries, WorkflowStep};

impl StepOrder {
    /// The steps that `step` needs, directly or through others, without itself.
    fn ancestors(&self, step: usize) -> BTreeSet<usize> {
        self.graph.ancestors([step])
    }

    /// The steps that may be running while `step` is: those of its phase that neither it needs nor need it.
    fn overlaps(&self, step: usize) -> BTreeSet<usize> {
        let Some(phase) = self.phase_of.get(step) else { return BTreeSet::new() };
        let (before, after) = (self.ancestors(step), self.descendants(step));
        let of_phase = self.phases[*phase].clone();
        of_phase.filter(|other| *other != step && !before.contains(other) && !after.contains(other)).collect()
    }
}

fn parse(text: &str) -> Definition {
    Definition::parse(text.as_bytes(), Path::new("flow.yaml")).unwrap_or_else(|e| panic!("{e}"))
}

/// A workflow of steps with these phases and needs.
fn workflow(steps: &[(usize, Vec<usize>)]) -> Definition {
    let step = |(index, (phase, needs)): (usize, &(usize, Vec<usize>))| WorkflowStep {
        id: format!("s{index}"),
        phase: format!("p{phase}"),
        run: StepCommand::Argv(vec!["true".into()]),
        needs: needs.clone(),
        timeout: None,
        retries: StepRetries::default(),
        directory: None,
        environment: BTreeMap::new(),
        compensate: None,
        line: 1,
    };
    Definition {
        name: "n".into(),
        goal: "n".into(),
        phases: Vec::new(),
        steps: steps.iter().enumerate().map(step).collect(),
        on_failure: None,
        strategy: None,
        text: String::new(),
    }
}

fn set(steps: &[usize]) -> BTreeSet<usize> {
    steps.iter().copied().collect()
}

/// plan | build docs test (test needs build) | ship
fn diamond() -> StepOrder {
    let definition = parse(
        "name: n\nsteps:\n- {id: plan, phase: planned, run: x}\n- {id: test, phase: executing, run: x, needs: [build]}\n\
         - {id: docs, run: x}\n- {id: build, run: x, needs: [plan]}\n- {id: ship, phase: shipped, run: x, needs: [test]}\n",
    );
    StepOrder::of(&definition)
}

#[test]
fn steps_are_ready_when_their_needs_and_phases_are_finished() {
    let plan = diamond();
    for (finished, running, ready) in [
        (&[][..], &[][..], &[0][..]),
        (&[], &[0], &[]),
        (&[0], &[], &[2, 3]),
        (&[0], &[2], &[3]),
        (&[0, 3], &[2], &[1]),
        (&[0, 2, 3], &[1], &[]),
        (&[0, 1, 3], &[2], &[]),
        (&[0, 1, 2, 3], &[], &[4]),
        (&[0, 1, 2, 3, 4], &[], &[]),
        (&[0, 99], &[98], &[2, 3]),
    ] {
        assert_eq!(plan.ready(&set(finished), &set(running)), ready, "{finished:?} {running:?}");
    }
}

#[test]
fn a_failed_step_holds_what_needs_it_and_the_next_phase() {
    let plan = diamond();
    assert_eq!(plan.ready(&set(&[0]), &set(&[3])), [2], "3 failed");
    assert!(plan.ready(&set(&[0, 2]), &set(&[3])).is_empty());
    let without: BTreeSet<usize> = [0, 2, 3].into_iter().chain(plan.descendants(3)).collect();
    assert!(plan.ready(&without, &set(&[])).is_empty(), "all that is left needs it");
}

#[test]
fn the_order_is_by_needs_then_phases_then_the_file() {
    let plan = diamond();
    assert_eq!((plan.order(), plan.steps()), (&[0, 2, 3, 1, 4][..], 5));
}

#[test]
fn descendants_and_ancestors_are_what_needs_lead_to() {
    let plan = diamond();
    for (step, descendants, ancestors) in [
        (0, &[1, 3, 4][..], &[][..]),
        (1, &[4], &[0, 3]),
        (2, &[], &[]),
        (3, &[1, 4], &[0]),
        (4, &[], &[0, 1, 3]),
        (5, &[], &[]),
    ] {
        assert_eq!(plan.descendants(step), set(descendants), "{step}");
        assert_eq!(plan.ancestors(step), set(ancestors), "{step}");
    }
}

#[test]
fn steps_of_a_phase_that_do_not_wait_for_each_other_overlap() {
    let plan = diamond();
    for (step, others) in [(0, &[][..]), (1, &[2]), (2, &[1, 3]), (3, &[2]), (4, &[]), (9, &[])] {
        assert_eq!(plan.overlaps(step), set(others), "{step}");
    }
    assert_eq!(plan.first_overlap(), Some((2, 3)));
    let line = StepOrder::of(&workflow(&[(0, vec![]), (1, vec![2]), (1, vec![]), (2, vec![0])]));
    assert_eq!(line.first_overlap(), None);
}

#[test]
fn a_thousand_steps_with_many_needs_are_planned() {
    let step = |index: usize| {
        let needs: Vec<String> = (index.saturating_sub(120)..index).map(|need| format!("s{need}")).collect();
        format!("- {{id: s{index}, phase: p{}, run: x, needs: [{}]}}\n", index / 250, needs.join(","))
    };
    let definition = parse(&format!("name: n\nsteps:\n{}", (0..1_000).map(step).collect::<String>()));
    assert!(definition.steps.iter().map(|step| step.needs.len()).sum::<usize>() > 110_000);
    let plan = StepOrder::of(&definition);
    assert!(plan.order().iter().copied().eq(0..1_000));
    assert_eq!(plan.ready(&(0..500).collect(), &set(&[])), [500]);
    assert_eq!((plan.descendants(0).len(), plan.first_overlap()), (999, None));
}

#[test]
fn a_thousand_steps_without_needs_are_all_ready() {
    let plan = StepOrder::of(&workflow(&vec![(0, vec![]); 1_000]));
    assert_eq!(plan.ready(&set(&[7]), &set(&[8])).len(), 998);
    assert_eq!(plan.overlaps(5).len(), 999);
}

#[test]
fn ten_thousand_steps_in_a_chain_need_no_stack() {
    // Each needs the one after it in the file.
    let needs = |index: usize| if index == 9_999 { vec![] } else { vec![index + 1] };
    let definition = workflow(&(0..10_000).map(|index| (0, needs(index))).collect::<Vec<_>>());
    let plan = StepOrder::of(&definition);
    assert!(plan.order().iter().copied().eq((0..10_000).rev()));
    assert_eq!((plan.descendants(9_999).len(), plan.ancestors(0).len()), (9_999, 9_999));
    assert_eq!((plan.first_overlap(), plan.overlaps(5_000).len()), (None, 0));
    assert_eq!(plan.ready(&(5_000..10_000).collect(), &set(&[])), [4_999]);
}

prop_compose! {
    /// Steps with phases that never go back, and needs of which none leads to a later phase or round in a circle.
    fn any_steps()(
        steps in proptest::collection::vec((any::<bool>(), any::<u32>(), any::<u64>()), 1..40),
        density in 0..64_u32,
    ) -> Vec<(usize, Vec<usize>)> {
        let mut phase = 0;
        let ranks: Vec<(usize, u32, usize)> = steps.iter().enumerate().map(|(index, (next, rank, _))| {
            phase += usize::from(*next);
            (phase / 4, *rank, index)
        }).collect();
        steps.iter().enumerate().map(|(index, (_, _, bits))| {
            let needs = (0..ranks.len())
                .filter(|other| ranks[*other] < ranks[index] && bits.rotate_left(u32::try_from(*other).unwrap()) % 64 < u64::from(density));
            (ranks[index].0, needs.collect())
        }).collect()
    }
}

proptest! {
    #[test]
    fn what_runs_as_it_gets_ready_finishes_in_order(
        steps in any_steps(),
        jobs in 1..5_usize,
        choices in proptest::collection::vec(any::<prop::sample::Index>(), 80),
    ) {
        let plan = StepOrder::of(&workflow(&steps));
        let (mut finished, mut running) = (BTreeSet::new(), BTreeSet::new());
        for choice in choices.iter().cycle().take(3 * steps.len()) {
            let ready = plan.ready(&finished, &running);
            prop_assert!(ready.windows(2).all(|pair| pair[0] < pair[1]), "in the file's order");
            if running.len() < jobs && !ready.is_empty() {
                let next = ready[choice.index(ready.len())];
                prop_assert!(!finished.contains(&next));
                prop_assert!(steps[next].1.iter().all(|need| finished.contains(need)));
                prop_assert!((0..steps.len()).all(|other| steps[other].0 >= steps[next].0 || finished.contains(&other)));
                prop_assert!(running.is_subset(&plan.overlaps(next)), "what runs together overlaps");
                prop_assert!(running.insert(next));
            } else if !running.is_empty() {
                let done = *running.iter().nth(choice.index(running.len())).unwrap();
                running.remove(&done);
                finished.insert(done);
            }
        }
        prop_assert_eq!(finished.len(), steps.len());
        prop_assert!(plan.ready(&finished, &running).is_empty());
    }

    #[test]
    fn the_order_is_one_in_which_steps_get_ready(steps in any_steps()) {
        let plan = StepOrder::of(&workflow(&steps));
        let mut finished = BTreeSet::new();
        for step in plan.order() {
            prop_assert!(plan.ready(&finished, &BTreeSet::new()).contains(step));
            finished.insert(*step);
        }
        prop_assert_eq!(finished.len(), steps.len());
    }

    #[test]
    fn overlaps_are_what_no_need_joins(steps in any_steps()) {
        let plan = StepOrder::of(&workflow(&steps));
        let mut any = false;
        for a in 0..steps.len() {
            let overlaps = plan.overlaps(a);
            for b in 0..steps.len() {
                prop_assert_eq!(plan.descendants(a).contains(&b), plan.ancestors(b).contains(&a));
                let joined = plan.descendants(a).contains(&b) || plan.ancestors(a).contains(&b);
                prop_assert_eq!(overlaps.contains(&b), a != b && steps[a].0 == steps[b].0 && !joined);
            }
            any |= !overlaps.is_empty();
        }
        prop_assert_eq!(plan.first_overlap().is_some(), any);
        if let Some((a, b)) = plan.first_overlap() {
            prop_assert!(plan.overlaps(a).contains(&b));
        }
    }
}
