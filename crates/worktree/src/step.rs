//! Checkpoints around the steps of a workflow.

use ic_base::{CheckpointId, Result, Timestamp};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_ledger::Transaction;
use ic_phase::Run;
use ic_phase::point::NewPoint;

use super::capture::{Purpose, Shot};
use super::locked_root::LockedRoot;
use super::points;
use super::workspace::{Warning, Workspace};
use crate::database_mark::Marked;

/// A tree that was captured around a step, to be recorded in a transaction. Nothing is swept while it lives.
pub struct StepShot {
    shot: Shot,
    marked: Marked,
    _held: LockedRoot,
}

impl StepShot {
    /// Captures the tree and git's state. Errors: `tree_too_large`, `disk_full`, `busy`, ...
    pub fn take(workspace: &Workspace<'_>, link: CheckpointLink) -> Result<Self> {
        Self::of(workspace, Purpose::new(CheckpointKind::Auto, link))
    }

    /// As [`StepShot::take`], where work has ended: later changes are not that work's.
    pub fn take_settled(workspace: &Workspace<'_>, link: CheckpointLink) -> Result<Self> {
        Self::of(workspace, Purpose { settled: true, ..Purpose::new(CheckpointKind::Auto, link) })
    }

    fn of(workspace: &Workspace<'_>, purpose: Purpose) -> Result<Self> {
        // Kept with the capture until its row is committed: a sweep would take content that no row names yet.
        let held = workspace.lock(LockMode::Exclusive)?;
        let shot = workspace.shoot(purpose, &CaptureProgress::default())?;
        Ok(Self { shot, marked: Marked::look(workspace.settings), _held: held })
    }

    /// The id that its row will have.
    pub fn id(&self) -> &CheckpointId {
        self.shot.id()
    }

    /// What went less well.
    pub fn warnings(&self) -> &[Warning] {
        &self.shot.warnings
    }

    /// Records it as what was seen at a point of a run, whose event is the first of the transaction.
    pub fn record_point(&self, tx: &Transaction<'_>, now: Timestamp, run: &Run, new: &NewPoint<'_>) -> Result<()> {
        points::record_point(tx, now, run, new, Some(&self.shot), &self.marked)
    }

    /// Records the checkpoint as its own event, and returns its row.
    pub fn record(&self, tx: &Transaction<'_>, now: Timestamp, epoch: i64) -> Result<CheckpointRecord> {
        self.shot.record(tx, now, Some(epoch))
    }
}
