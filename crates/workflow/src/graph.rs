//! In which order the steps of a workflow may run. Nothing here starts anything.
//!
//! Two rules: a step starts after every step that it needs, and after every step of the phases before its own. No
//! function recurses, and none takes longer than the number of steps and needs, so that thousands cost nothing.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

use crate::definition::Definition;

/// The steps of a workflow by their places in [`Definition::steps`], and what must come before what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What each step needs.
    needs: Vec<Vec<usize>>,
    /// Which steps need each.
    dependents: Vec<Vec<usize>>,
    /// The steps of each phase, in the order of the chain.
    phases: Vec<Range<usize>>,
    /// Where in `phases` each step is.
    phase_of: Vec<usize>,
    /// All steps, each after those that it needs.
    order: Vec<usize>,
}

impl Plan {
    /// The plan of a definition.
    pub fn of(definition: &Definition) -> Self {
        let steps = &definition.steps;
        let needs: Vec<Vec<usize>> = steps.iter().map(|step| step.needs.clone()).collect();
        let mut phases: Vec<Range<usize>> = Vec::new();
        let mut phase_of = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            match phases.last_mut() {
                Some(phase) if steps[phase.start].phase == step.phase => phase.end = index + 1,
                _ => phases.push(index..index + 1),
            }
            phase_of.push(phases.len() - 1);
        }
        let borrowed: Vec<&[usize]> = needs.iter().map(Vec::as_slice).collect();
        let dependents = inverse(&borrowed);
        let order = sorted(&borrowed, &dependents, &phase_of);
        Self { needs, dependents, phases, phase_of, order }
    }

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.needs.len()
    }

    /// All steps in an order in which they may run one at a time: each after what it needs, phase by phase,
    /// and else as in the file.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The steps that may start now, in the file's order: neither finished nor running, of the first phase
    /// that is not finished, with all that they need finished.
    ///
    /// A step that failed and is not to be tried again belongs to `running`: neither it nor what comes after it
    /// starts. To go on without it, count it and its [descendants](Self::descendants) as finished.
    pub fn ready(&self, finished: &BTreeSet<usize>, running: &BTreeSet<usize>) -> Vec<usize> {
        let mut is_finished = vec![false; self.steps()];
        for step in finished {
            if let Some(flag) = is_finished.get_mut(*step) {
                *flag = true;
            }
        }
        let Some(first) = is_finished.iter().position(|finished| !finished) else { return Vec::new() };
        self.phases[self.phase_of[first]]
            .clone()
            .filter(|step| !is_finished[*step] && !running.contains(step))
            .filter(|step| self.needs[*step].iter().all(|need| is_finished[*need]))
            .collect()
    }

    /// The steps that need `step`, directly or through others; not itself. That a later phase waits for it
    /// does not count.
    pub fn descendants(&self, step: usize) -> BTreeSet<usize> {
        reachable(&self.dependents, step)
    }

    /// The steps that `step` needs, directly or through others; not itself.
    pub fn ancestors(&self, step: usize) -> BTreeSet<usize> {
        reachable(&self.needs, step)
    }

    /// The steps that may be running while `step` is: those of its phase that neither it needs nor need it.
    pub fn overlaps(&self, step: usize) -> BTreeSet<usize> {
        let Some(phase) = self.phase_of.get(step) else { return BTreeSet::new() };
        let (before, after) = (self.ancestors(step), self.descendants(step));
        self.phases[*phase]
            .clone()
            .filter(|other| *other != step && !before.contains(other) && !after.contains(other))
            .collect()
    }

    /// Two steps that may run at the same time; `None` if there is only one order in which all steps can run.
    pub fn first_overlap(&self) -> Option<(usize, usize)> {
        // Nothing lies between neighbours in the order that could join them: they overlap unless one needs the
        // other. If all neighbours are joined, so are all steps.
        self.order.windows(2).map(|pair| (pair[0], pair[1])).find(|(earlier, later)| {
            self.phase_of[*earlier] == self.phase_of[*later] && !self.needs[*later].contains(earlier)
        })
    }
}

/// One cycle among `needs`, by what each of its steps needs, from the first of them in the file on; `None` if
/// there is none.
pub(crate) fn cycle(needs: &[&[usize]]) -> Option<Vec<usize>> {
    let order = sorted(needs, &inverse(needs), &vec![0; needs.len()]);
    let mut is_left = vec![true; needs.len()];
    for step in order {
        is_left[step] = false;
    }
    // Every step that is left needs another that is left: following these leads into a cycle.
    let mut at = is_left.iter().position(|left| *left)?;
    let mut seen = vec![None; needs.len()];
    let mut path = Vec::new();
    while seen[at].is_none() {
        seen[at] = Some(path.len());
        path.push(at);
        at = needs[at].iter().copied().find(|need| is_left[*need])?;
    }
    let mut cycle = path.split_off(seen[at]?);
    let first = cycle.iter().enumerate().min_by_key(|(_, step)| **step).map_or(0, |(place, _)| place);
    cycle.rotate_left(first);
    Some(cycle)
}

/// Which steps need each.
fn inverse(needs: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); needs.len()];
    for (step, needed) in needs.iter().enumerate() {
        for need in *needed {
            dependents[*need].push(step);
        }
    }
    dependents
}

/// The steps, each after what it needs: Kahn's algorithm, which of several takes the first in phase and file.
/// Steps in a cycle, and those that need them, are left out.
fn sorted(needs: &[&[usize]], dependents: &[Vec<usize>], phase_of: &[usize]) -> Vec<usize> {
    let mut open: Vec<usize> = needs.iter().map(|needed| needed.len()).collect();
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> = (0..needs.len())
        .filter(|step| open[*step] == 0)
        .map(|step| Reverse((phase_of[step], step)))
        .collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse((_, step))) = ready.pop() {
        order.push(step);
        for dependent in &dependents[step] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                ready.push(Reverse((phase_of[*dependent], *dependent)));
            }
        }
    }
    order
}

/// All that edges lead to from `start`, without itself.
fn reachable(edges: &[Vec<usize>], start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = edges.get(start).cloned().unwrap_or_default();
    while let Some(step) = open.pop() {
        if reached.insert(step) {
            open.extend(&edges[step]);
        }
    }
    reached
}

#[cfg(test)]
mod tests;
