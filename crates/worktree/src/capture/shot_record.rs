//! Recording a picture: the row of a checkpoint, alone or with the event of a run that takes it.

use std::path::Path;

use ic_base::{CheckpointId, Result, Seq, Timestamp};
use ic_checkpoint::record::{self, CheckpointLink, CheckpointRecord, NewCheckpoint};
use ic_ledger::Transaction;

use super::{CaptureOccasion, Shot};

impl Shot {
    /// Records the checkpoint as its own event, and returns its row.
    pub fn record(&self, tx: &Transaction<'_>, now: Timestamp, epoch: Option<i64>) -> Result<CheckpointRecord> {
        record::add(tx, now, &self.row(&self.link, epoch, None))
    }

    /// Whether a checkpoint shows the same tree and the same state of git.
    pub fn is_as(&self, checkpoint: &CheckpointRecord) -> bool {
        let is_same = checkpoint.tree == self.captured.root && checkpoint.git_hash == self.git_hash;
        // A file that changed at each read shows in no tree, only in the completeness.
        is_same && checkpoint.complete == self.captured.is_complete()
    }

    /// Records it, unless the newest look at the root shows the same.
    pub(in super::super) fn record_unless_known(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        root: &Path,
        epoch: Option<i64>,
    ) -> Result<()> {
        // Asked in the transaction: another call may have recorded the same since this picture was taken.
        match record::newest_look(tx, root)? {
            Some(newest) if self.is_as(&newest) => Ok(()),
            _ => self.record(tx, now, epoch).map(drop),
        }
    }

    fn row<'a>(&'a self, link: &'a CheckpointLink, epoch: Option<i64>, advance_seq: Option<Seq>) -> NewCheckpoint<'a> {
        NewCheckpoint {
            id: &self.id,
            root: &self.root,
            kind: self.kind,
            link,
            parent_id: self.parent.as_ref(),
            advance_seq,
            epoch,
            captured: &self.captured,
            manifest: self.manifest_hash,
            git_hash: self.git_hash,
            settled: self.settled,
            duration_ms: u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Records it as what a run's event takes; `event` records that one and returns its seq.
    pub fn record_for(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        occasion: CaptureOccasion<'_>,
        event: impl FnOnce() -> Result<Seq>,
    ) -> Result<Seq> {
        let link = CheckpointLink {
            run_id: Some(occasion.run_id.clone()),
            phase: Some(occasion.phase.to_owned()),
            ..self.link.clone()
        };
        // What is recorded before an advance is what was there at its cut.
        let own = record::announce(tx, now, &self.row(&link, Some(occasion.epoch), None))?;
        let seq = event()?;
        // Inserted after the run's event, because the row names the seq of that event.
        record::insert(tx, now, &self.row(&link, Some(occasion.epoch), Some(seq)), own)?;
        Ok(seq)
    }

    /// The same, where [`Shot::record`] was called for it and has committed: a restore that follows at once need not take another one.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { is_recorded: true, ..self }
    }

    /// Its id, which the row will have.
    pub fn id(&self) -> &CheckpointId {
        &self.id
    }
}
