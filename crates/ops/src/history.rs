//! Which moves of a run later rollbacks took back, and a run as a story.

mod run_story;

use ic_base::{Result, RollbackId, RunId, Seq};
use ic_ledger::Snapshot;
use ic_ledger::events::Event;

use ic_kernel::journal::table;

pub use run_story::{PhaseStay, Story, Turn, story};

/// The rollbacks of one run, ready to be asked about its events one by one.
pub struct UndoneMoves(Vec<Span>);

struct Span {
    id: RollbackId,
    cut: Seq,
    rollback: Seq,
    /// The target, when what was done in it was undone but not the move into it.
    kept_move_to: Option<String>,
}

impl UndoneMoves {
    /// Reads the rollbacks of a run; there are few.
    pub fn of_run(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Self> {
        let rollbacks = table::of_run(snapshot, run_id)?;
        Ok(Self(
            rollbacks
                .into_iter()
                // The moves that a rollback covered count again once it is undone or aborted. An undo of works covers
                // no moves.
                .filter(|r| r.status.stands() && !r.is_of_works())
                .map(|r| Span {
                    id: r.id,
                    cut: r.cut_seq,
                    rollback: r.seq,
                    kept_move_to: r.include_target.then_some(r.to_phase),
                })
                .collect(),
        ))
    }

    /// The rollback that undid what the run did from the event `seq` on.
    pub(crate) fn covers(&self, seq: Seq) -> Option<&RollbackId> {
        // The cut itself is covered: it is the first event that goes back. The event of the rollback is not.
        self.0.iter().find(|span| span.cut <= seq && seq < span.rollback).map(|span| &span.id)
    }

    /// The rollback that undid `event`, if that is a move forward.
    pub fn includes(&self, event: &Event) -> Option<&RollbackId> {
        let is_undone = |span: &&Span| {
            // With --include-target the cut is the move into the target. What was done there is undone, and the
            // run stays there, so the move itself still counts.
            let kept = event.seq == span.cut && span.kept_move_to == event.to && event.to.is_some();
            span.cut <= event.seq && event.seq < span.rollback && !kept
        };
        let is_move = matches!(event.event_type.as_str(), "advance" | "override");
        self.0.iter().find(is_undone).filter(|_| is_move).map(|span| &span.id)
    }
}
