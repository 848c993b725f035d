//! The order in which the steps of a workflow may run. Nothing here starts anything.
//!
//! Two rules: a step starts after every step that it needs, and after every step of the phases before its own. No function recurses, and
//! none takes longer than linear time in steps and needs, so that workflows with thousands of steps cost nothing.

use std::collections::BTreeSet;
use std::ops::Range;

use ic_base::graph::Graph;

use crate::definition::Definition;

/// The steps of a workflow by their places in [`Definition::steps`], and what must come before what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOrder {
    /// The needs of each step.
    graph: Graph,
    /// The steps of each phase, in the order of the chain.
    phases: Vec<Range<usize>>,
    /// The index in `phases` of each step's phase.
    phase_of: Vec<usize>,
    /// All steps, each after those that it needs.
    order: Vec<usize>,
}

impl StepOrder {
    /// The plan of a definition.
    pub fn of(definition: &Definition) -> Self {
        let steps = &definition.steps;
        let mut phases: Vec<Range<usize>> = Vec::new();
        let mut phase_of = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            match phases.last_mut() {
                Some(phase) if steps[phase.start].phase == step.phase => phase.end = index + 1,
                _ => phases.push(index..index + 1),
            }
            phase_of.push(phases.len() - 1);
        }
        let graph = Graph::new(steps.iter().map(|step| step.needs.clone()).collect());
        // Arrows from each step to all steps of the phases before would not be linear. Ranking the free steps by phase
        // is enough, because no step needs one of a later phase.
        let order = graph.order(|step| phase_of[step]);
        Self { graph, phases, phase_of, order }
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.graph.len()
    }

    /// All steps in an order in which they may run one at a time: each after what it needs, phase by phase, and otherwise as in the file.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The steps that may start now, in the file's order: those of the first unfinished phase that are neither finished nor running, and
    /// whose needs are all finished.
    ///
    /// A step that failed and is not to be tried again belongs to `running`: neither it nor what comes after it starts. To continue without
    /// it, count it and its [descendants](Self::descendants) as finished.
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
            .filter(|step| self.graph.needs(*step).iter().all(|need| is_finished[*need]))
            .collect()
    }

    /// The steps that need `step`, directly or through others, without itself. A later phase does not need it.
    pub fn descendants(&self, step: usize) -> BTreeSet<usize> {
        self.graph.descendants([step])
    }

    /// Two steps that may run at the same time; `None` if there is only one order in which all steps can run.
    pub fn first_overlap(&self) -> Option<(usize, usize)> {
        // No step between neighbours in the order could connect them, so they overlap unless one needs the other. If all neighbours are
        // connected, so are all steps.
        self.order.windows(2).map(|pair| (pair[0], pair[1])).find(|(earlier, later)| {
            self.phase_of[*earlier] == self.phase_of[*later] && !self.graph.needs(*later).contains(earlier)
        })
    }
}

#[cfg(test)]
mod tests;
