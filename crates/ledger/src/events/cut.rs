//! Which part of a run's record a rollback covers.

use ic_base::{DispatchId, RunId, Seq};

/// The cut of a rollback: the moment it goes back to, and the phases it leaves.
///
/// Rule: `product.md`, "The cut". It is a seq and never a time, because rows can share a millisecond and clocks step back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The run that goes back; rows of other runs are never covered.
    pub run_id: RunId,
    /// The event that last crossed the target; rows recorded after it are rolled back.
    pub seq: Seq,
    /// The rolled-back phases, in chain order; rows labelled with one of them are rolled back too.
    pub phases: Vec<String>,
    /// Only what this dispatch and its descendants did, whenever that was; `None`: whatever lies after the cut.
    pub only: Option<DispatchId>,
    /// The work that this dispatch began: it goes along. Empty without `only`.
    pub descendants: Vec<DispatchId>,
}

impl Cut {
    /// Whether a rollback covers a row recorded at `seq` and labelled with `phase`. `dispatch`: the work that the row belongs to, if any.
    pub fn covers(&self, seq: Seq, phase: &str, dispatch: Option<&DispatchId>) -> bool {
        match &self.only {
            Some(only) => dispatch.is_some_and(|id| id == only || self.descendants.contains(id)),
            None => seq > self.seq || self.phases.iter().any(|p| p == phase),
        }
    }
}
