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
    /// Only what these dispatches did, oldest first, whenever that was; empty: whatever lies after the cut.
    pub works: Vec<DispatchId>,
}

impl Cut {
    /// Whether only the work of some dispatches goes back, and the run stays where it is.
    pub fn is_of_works(&self) -> bool {
        !self.works.is_empty()
    }

    /// Whether a rollback covers a row recorded at `seq` and labelled with `phase`. `dispatch`: the work that the row belongs to, if any.
    pub fn covers(&self, seq: Seq, phase: &str, dispatch: Option<&DispatchId>) -> bool {
        if self.is_of_works() {
            return dispatch.is_some_and(|id| self.works.contains(id));
        }
        seq > self.seq || self.phases.iter().any(|p| p == phase)
    }
}
