//! What a rollback takes back of a run.

use ic_base::{DispatchId, RunId, Seq};

/// The cut of a rollback: the moment it goes back to, and the phases it leaves.
///
/// Rule: `product.md`, "The cut". It is a seq and never a time, because rows can share a millisecond and clocks step back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The run.
    pub run_id: RunId,
    /// The event that last crossed the target; what was recorded after it is taken back.
    pub seq: Seq,
    /// The rolled-back phases, in chain order; what is labelled with one is taken back too.
    pub phases: Vec<String>,
    /// Only what this dispatch and its descendants did, whenever that was; `None`: whatever lies after the cut.
    pub only: Option<DispatchId>,
    /// The work that this dispatch began: it goes along. Empty without `only`.
    pub descendants: Vec<DispatchId>,
}

impl Cut {
    /// Whether a rollback covers a row that was recorded at `seq`, is labelled with `phase` and belongs to the work of `dispatch`, if to any.
    pub fn covers(&self, seq: Seq, phase: &str, dispatch: Option<&DispatchId>) -> bool {
        match &self.only {
            Some(only) => dispatch.is_some_and(|id| id == only || self.descendants.contains(id)),
            None => seq > self.seq || self.phases.iter().any(|p| p == phase),
        }
    }
}
