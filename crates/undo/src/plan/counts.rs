//! How much of the record a rollback changes.

use serde_json::{Value, json};

/// The key of the phases that a run leaves which goes back to a point. `rolled_back_phases` of a plan are those whose records it covers.
pub(super) const LEFT_PHASES: &str = "left_phases";

/// The phases that the run left, from a plan that [`super::RollbackPlan::to_json`] made.
pub(crate) fn left_phases(plan: &Value) -> &Value {
    plan.get(LEFT_PHASES).unwrap_or(&plan["rolled_back_phases"])
}

/// The numbers of rows that a rollback changes, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Phases that the run leaves.
    pub phases: usize,
    /// Dispatches, cancelled or only marked.
    pub dispatches: usize,
    /// Artifacts that are marked.
    pub artifacts: usize,
    /// Agents, failed or only marked.
    pub agents: usize,
    /// Skips that are cleared.
    pub skips: usize,
}

impl PlanCounts {
    /// The member `counts` of an event: the same keys for every set of layers.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "phases": self.phases,
            "dispatches": self.dispatches,
            "artifacts": self.artifacts,
            "agents": self.agents,
            "skips": self.skips,
        })
    }

    /// The counts of a plan that [`super::RollbackPlan::to_json`] made.
    pub(crate) fn of_json(plan: &Value) -> Self {
        let count = |list: &str| plan[list].as_array().map_or(0, Vec::len);
        Self {
            phases: left_phases(plan).as_array().map_or(0, Vec::len),
            dispatches: count("cancelled_dispatches") + count("marked_dispatches"),
            artifacts: count("artifacts"),
            agents: count("failed_agents") + count("marked_agents"),
            skips: count("skips"),
        }
    }
}
