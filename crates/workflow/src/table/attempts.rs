//! Attempts at steps, including those that do not stand any longer.

use ic_base::{Result, RunId};
use ic_effects::compensation::CompensationState;
use ic_ledger::Snapshot;

use super::{StepRow, WorkflowStepState};

/// A step with its last attempt in one epoch.
pub(crate) struct Tried {
    pub(crate) row: StepRow,
    pub(crate) epoch: i64,
    /// Whether its work is marked as rolled back.
    pub(crate) is_marked: bool,
    /// Whether its effect is undone; `None` if it has none on record.
    is_undone: Option<bool>,
}

impl Tried {
    /// Whether it succeeded and does not stand any longer, or is about to be rolled back.
    pub(crate) fn is_back(&self) -> bool {
        self.row.state == WorkflowStepState::Succeeded && (self.is_marked || self.is_undone == Some(true))
    }

    /// Whether nothing of it is left. `false` for a step whose effect was skipped, because the effect is still there.
    pub(crate) fn is_rolled_back(&self) -> bool {
        self.row.state == WorkflowStepState::Succeeded && self.is_undone.unwrap_or(self.is_marked)
    }
}

/// The attempts at all steps, by epoch.
pub(crate) fn tried(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<Tried>> {
    // The columns that `StepRow::from_row` reads by their numbers come first, then those of this query.
    snapshot.query_all(
        "SELECT s.step, s.state, s.started, s.dispatch_id, s.checkpoint_id, s.compensation_id, s.attempts, s.exit_code, \
         s.error, s.duration_ms, s.log, s.head, s.child, s.epoch, \
         d.rolled_back_by, c.state \
         FROM workflow_steps s LEFT JOIN dispatches d ON d.id = s.dispatch_id \
         LEFT JOIN compensations c ON c.id = s.compensation_id WHERE s.run_id = $1 ORDER BY s.epoch",
        &[&run.as_str()],
        |row| {
            let is_marked = row.get::<Option<String>>(14)?.is_some();
            let is_undone = row.get::<Option<String>>(15)?.map(|state| state == CompensationState::Done.as_str());
            Ok(Tried { row: StepRow::from_row(row)?, epoch: row.get(13)?, is_marked, is_undone })
        },
    )
}
