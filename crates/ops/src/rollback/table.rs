//! The table `rollbacks`.

use ic_base::{Result, RollbackId, RunId, Seq, Timestamp, reversed_digits};
use ic_store::{Row, Snapshot, Transaction};

use super::Rollback;

/// How far a rollback is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackStatus {
    /// Under way.
    InProgress,
    /// A step failed; it waits to be resumed.
    Stopped,
    /// Finished.
    Done,
    /// Given up; what it had done was put back.
    Abandoned,
    /// Taken back itself.
    Undone,
}

impl RollbackStatus {
    /// The text in the ledger and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Stopped => "stopped",
            Self::Done => "done",
            Self::Abandoned => "abandoned",
            Self::Undone => "undone",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::InProgress, Self::Stopped, Self::Done, Self::Abandoned, Self::Undone]
            .into_iter()
            .find(|s| s.as_str() == text)
    }

    /// Whether what it took back is still taken back.
    pub fn stands(self) -> bool {
        match self {
            Self::InProgress | Self::Stopped | Self::Done => true,
            Self::Abandoned | Self::Undone => false,
        }
    }
}

/// A rollback as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Its id.
    pub id: RollbackId,
    /// Its event.
    pub seq: Seq,
    /// How far it is.
    pub status: RollbackStatus,
    /// The phase it went back to.
    pub to_phase: String,
    /// Whether what was done in that phase was taken back too.
    pub include_target: bool,
    /// The cut.
    pub cut_seq: Seq,
}

/// The rollbacks of a run, oldest first.
pub fn of_run(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<Remembered>> {
    snapshot.query_all(
        "SELECT id, seq, status, to_phase, include_target, cut_seq FROM rollbacks WHERE run_id = $1 ORDER BY seq",
        &[&run_id.as_str()],
        from_row,
    )
}

fn from_row(row: &Row<'_>) -> Result<Remembered> {
    Ok(Remembered {
        id: RollbackId::from_ledger(row.get(0)?),
        seq: row.get(1)?,
        status: row.parse(2, "rollbacks", RollbackStatus::parse)?,
        to_phase: row.get(3)?,
        include_target: row.get(4)?,
        cut_seq: row.get(5)?,
    })
}

/// Records a rollback that is done as soon as its transaction is.
pub(super) fn insert_done(
    tx: &Transaction<'_>,
    now: Timestamp,
    rollback: &Rollback,
    id: &RollbackId,
    seq: Seq,
) -> Result<()> {
    let plan = &rollback.plan;
    tx.execute_one(
        "INSERT INTO rollbacks (id, reversed_id, seq, run_id, status, layers, from_phase, to_phase, include_target, \
         cut_seq, epoch, reason, plan_hash, plan, created_at, finished_at) \
         VALUES ($1, $2, $3, $4, 'done', '[\"workflow\"]', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        &[
            &id.as_str(),
            &reversed_digits(id.as_str()),
            &seq,
            &plan.run.id.as_str(),
            &plan.run.phase,
            &plan.to_phase,
            &plan.include_target,
            &plan.cut.seq,
            &plan.next_epoch(),
            &rollback.reason,
            &rollback.plan_hash,
            &plan.to_json().to_string(),
            &now.millis(),
            &now.millis(),
        ],
    )
}

/// Takes the reason out of the rollback that event `seq` recorded, if it recorded one.
pub fn redact(tx: &Transaction<'_>, run_id: &RunId, seq: Seq) -> Result<()> {
    tx.execute("UPDATE rollbacks SET reason = NULL WHERE run_id = $1 AND seq = $2", &[&run_id.as_str(), &seq])
        .map(|_| ())
}
