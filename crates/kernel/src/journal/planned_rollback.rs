//! What a rollback planned to undo in its run, read from the plan that its row keeps as JSON.

use serde_json::Value;

use crate::journal::table::RollbackRecord;

/// What a rollback undoes in its run, with the state before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRollback {
    /// The phases that are rolled back, in chain order.
    pub phases: Vec<String>,
    /// Dispatches that had not ended.
    pub cancelled_dispatches: Vec<PlannedBefore>,
    /// Dispatches that had ended.
    pub marked_dispatches: Vec<PlannedBefore>,
    /// The ids of artifacts.
    pub artifacts: Vec<String>,
    /// Agents that were active.
    pub failed_agents: Vec<PlannedBefore>,
    /// Agents that had ended.
    pub marked_agents: Vec<PlannedBefore>,
    /// The events of skips.
    pub skips: Vec<i64>,
}

/// A thing of the run, and its status before the rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedBefore {
    /// The id of a dispatch or an agent.
    pub id: String,
    /// Its status before the rollback, as the ledger writes it.
    pub status: String,
}

impl PlannedRollback {
    /// What the plan of a rollback says.
    pub fn of(rollback: &RollbackRecord) -> Self {
        let list = |name: &str| rollback.plan[name].as_array().into_iter().flatten();
        let texts = |name: &str| list(name).filter_map(Value::as_str).map(str::to_owned).collect();
        let with_status = |name: &str| list(name).filter_map(PlannedBefore::of_pair).collect();
        Self {
            phases: texts("rolled_back_phases"),
            cancelled_dispatches: with_status("cancelled_dispatches"),
            marked_dispatches: with_status("marked_dispatches"),
            artifacts: texts("artifacts"),
            failed_agents: with_status("failed_agents"),
            marked_agents: with_status("marked_agents"),
            skips: list("skips").filter_map(Value::as_i64).collect(),
        }
    }
}

impl PlannedBefore {
    fn of_pair(pair: &Value) -> Option<Self> {
        Some(Self { id: pair[0].as_str()?.to_owned(), status: pair[1].as_str()?.to_owned() })
    }
}
