//! The table `restores`: what was begun, and how far it came.
//!
//! ```text
//!   prepared ── begins ──▶ applying ── ends ──▶ applied
//!                          │     ▲
//!                          └─────┘ its process died: the same plan is applied again
//! ```
//!
//! The row is there before the first file is written, so after a crash the next call knows the plan and what stood there before. An older
//! binary refuses a ledger of a newer schema (`newer_schema`), so it never finishes a restore whose plan it cannot read. An unknown word in
//! a row is `corrupt`: a restore that is read wrongly would be finished in the wrong way.

mod stacks;
mod state;

use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, RestoreId, Result, RunId, Seq, Timestamp, reversed_digits};
use ic_ledger::events::{EventType, Hash, NewEvent};
use ic_ledger::{LedgerRow, Snapshot, Transaction, path_bytes};
use serde_json::json;

use super::Strategy;
pub use stacks::{RestorePlace, place, stacks};
use state::{RestoreEvent, next};

ic_base::words! {
    /// What kind of restore it is.
    pub enum RestoreKind {
        /// Of a checkpoint that was chosen.
        Restore = "restore",
        /// Of the tree before the last restore.
        Undo = "undo",
        /// Of the tree after a restore that was undone.
        Redo = "redo",
    }
}

ic_base::words! {
    /// How far a restore came.
    pub enum RestoreProgress {
        /// Planned; nothing was written.
        Prepared = "prepared",
        /// Some of it may be written.
        Applying = "applying",
        /// Written as far as possible; what it left is recorded.
        Applied = "applied",
    }
}

/// A restore that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreRecord {
    /// The id, which also names its temporary files and the refs that keep what it moved.
    pub id: RestoreId,
    /// The event that recorded it.
    pub seq: Seq,
    /// The root it writes into.
    pub root: PathBuf,
    /// What kind it is.
    pub kind: RestoreKind,
    /// How far it came.
    pub progress: RestoreProgress,
    /// Which parts are restored.
    pub strategy: Strategy,
    /// The checkpoint that is restored.
    pub target_id: CheckpointId,
    /// What it was about to change.
    pub safety_id: CheckpointId,
    /// The checkpoint of the tree that it left; `None` until it is applied.
    pub restored_id: Option<CheckpointId>,
    /// Its plan: an object.
    pub plan: Hash,
    /// When it was begun.
    pub created_at: Timestamp,
}

impl RestoreRecord {
    const COLUMNS: &'static str =
        "id, seq, root, kind, state, strategy, target_id, safety_id, restored_id, plan, created_at";

    fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        Ok(Self {
            id: RestoreId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            root: row.path(2)?,
            kind: row.parse(3, "restores", RestoreKind::parse)?,
            progress: row.parse(4, "restores", RestoreProgress::parse)?,
            strategy: row.parse(5, "restores", Strategy::parse)?,
            target_id: CheckpointId::from_ledger(row.get(6)?),
            safety_id: CheckpointId::from_ledger(row.get(7)?),
            restored_id: row.get::<Option<String>>(8)?.map(CheckpointId::from_ledger),
            plan: row.get(9)?,
            created_at: Timestamp(row.get(10)?),
        })
    }
}

/// What a new restore is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewRestore<'a> {
    /// The id, made before the first write.
    pub id: &'a RestoreId,
    /// The root it writes into.
    pub root: &'a Path,
    /// What kind it is.
    pub kind: RestoreKind,
    /// Which parts are restored.
    pub strategy: Strategy,
    /// The checkpoint that is restored.
    pub target_id: &'a CheckpointId,
    /// What it is about to change.
    pub safety_id: &'a CheckpointId,
    /// The run of the target.
    pub run_id: Option<&'a RunId>,
    /// Its plan: a durable object.
    pub plan: Hash,
}

/// Records that a restore is prepared, with its event.
pub fn prepare(tx: &Transaction<'_>, now: Timestamp, new: &NewRestore<'_>) -> Result<()> {
    let event = NewEvent {
        run_id: new.run_id,
        subject_id: Some(new.safety_id.as_str()),
        to: Some(new.target_id.as_str()),
        payload: Some(json!({
            "restore_id": new.id.as_str(),
            "kind": new.kind.as_str(),
            "strategy": new.strategy.as_str(),
        })),
        ..NewEvent::without_run(EventType::RestoreBegun)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "INSERT INTO restores (id, reversed_id, seq, root, kind, state, strategy, target_id, safety_id, plan, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, 'prepared', $6, $7, $8, $9, $10, $10)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &path_bytes(new.root),
            &new.kind.as_str(),
            &new.strategy.as_str(),
            &new.target_id.as_str(),
            &new.safety_id.as_str(),
            &new.plan,
            &now.millis(),
        ],
    )
}

/// Records that writing begins.
pub fn begin(tx: &Transaction<'_>, now: Timestamp, id: &RestoreId) -> Result<()> {
    follow(tx, now, id, RestoreEvent::Begins)
}

/// Records that a restore is done and what it left, with its event.
pub fn finish(
    tx: &Transaction<'_>,
    now: Timestamp,
    restore: &RestoreId,
    run_id: Option<&RunId>,
    target: &CheckpointId,
    restored: &CheckpointId,
    failed: usize,
) -> Result<()> {
    let event = NewEvent {
        run_id,
        subject_id: Some(restored.as_str()),
        to: Some(target.as_str()),
        payload: Some(json!({ "restore_id": restore.as_str(), "failed": failed })),
        ..NewEvent::without_run(EventType::CheckpointRestored)
    };
    ic_ledger::events::append(tx, now, &event)?;
    // First: a row that is applied without what it left is refused.
    tx.execute_one("UPDATE restores SET restored_id = $1 WHERE id = $2", &[&restored.as_str(), &restore.as_str()])?;
    follow(tx, now, restore, RestoreEvent::Ends)
}

/// Writes the state that follows on the one in the row. Errors: `internal` if none does.
fn follow(tx: &Transaction<'_>, now: Timestamp, id: &RestoreId, happening: RestoreEvent) -> Result<()> {
    // One write transaction reads and writes it: no other process changes the state in between.
    let sql = "SELECT state FROM restores WHERE id = $1";
    let found = tx.query_opt(sql, &[&id.as_str()], |row| row.parse(0, "restores", RestoreProgress::parse))?;
    let found = found.ok_or_else(|| Diagnosis::new(Code::Internal, format!("There is no restore {id}.")))?;
    tx.execute_one(
        "UPDATE restores SET state = $1, updated_at = $2 WHERE id = $3",
        &[&next(found, happening)?.as_str(), &now.millis(), &id.as_str()],
    )
}

/// Marks a restore whose plan or content is lost: one that was interrupted is aborted where it is, none of them is undone.
pub fn lose(tx: &Transaction<'_>, now: Timestamp, id: &RestoreId) -> Result<()> {
    tx.execute_one("UPDATE restores SET lost_at = $1 WHERE id = $2 AND lost_at IS NULL", &[&now.millis(), &id.as_str()])
}

/// The restore with this id, of any root, but those that were marked as lost.
pub fn find(snapshot: &Snapshot<'_>, id: &RestoreId) -> Result<Option<RestoreRecord>> {
    let sql = format!("SELECT {} FROM restores WHERE id = $1 AND lost_at IS NULL", RestoreRecord::COLUMNS);
    snapshot.query_opt(&sql, &[&id.as_str()], RestoreRecord::from_row)
}

/// The restore of a root that was begun and not finished: its process died, or works on it now.
pub fn unfinished(snapshot: &Snapshot<'_>, root: &Path) -> Result<Option<RestoreRecord>> {
    let sql = format!(
        "SELECT {} FROM restores WHERE root = $1 AND state <> 'applied' AND lost_at IS NULL ORDER BY seq LIMIT 1",
        RestoreRecord::COLUMNS
    );
    snapshot.query_opt(&sql, &[&path_bytes(root)], RestoreRecord::from_row)
}

/// Every restore, of every root, oldest first, but those that were marked as lost.
pub fn all(snapshot: &Snapshot<'_>) -> Result<Vec<RestoreRecord>> {
    // `seq > 0` is true of each row, and makes the plan a search by the index.
    let sql = format!("SELECT {} FROM restores WHERE seq > 0 AND lost_at IS NULL ORDER BY seq", RestoreRecord::COLUMNS);
    snapshot.query_all(&sql, &[], RestoreRecord::from_row)
}

/// The finished restores of a root, oldest first.
pub fn finished(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<RestoreRecord>> {
    let sql = format!(
        "SELECT {} FROM restores WHERE root = $1 AND state = 'applied' AND lost_at IS NULL ORDER BY seq",
        RestoreRecord::COLUMNS
    );
    snapshot.query_all(&sql, &[&path_bytes(root)], RestoreRecord::from_row)
}

/// The finished restores of a root of which the content that would take them back was lost, oldest first.
pub fn lost(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<RestoreRecord>> {
    let sql = format!(
        "SELECT {} FROM restores WHERE root = $1 AND state = 'applied' AND lost_at IS NOT NULL ORDER BY seq",
        RestoreRecord::COLUMNS
    );
    snapshot.query_all(&sql, &[&path_bytes(root)], RestoreRecord::from_row)
}
