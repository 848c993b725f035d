//! Writing the journal: each change with its event.

use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, Result, RewindId, Timestamp, reversed_digits};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{Transaction, path_bytes};
use serde::Serialize;
use serde_json::{Value, json};

use super::entry::{Deleted, LeftHead, RewindEntry, RewindFailure, RewindJournalSetup, RewindStatus, Stage};
use super::state::{RewindEvent, next};
use crate::engine::AnchorTask;

/// The values of a new row.
#[derive(Debug, Clone, Copy)]
pub struct NewRewind<'a> {
    /// Made by the caller, which names the archive by it.
    pub id: &'a RewindId,
    /// The working tree that git moves.
    pub root: &'a Path,
    /// The configuration, which is stored with the row.
    pub setup: &'a RewindJournalSetup,
    /// The task to which it goes.
    pub task: &'a AnchorTask,
    /// The commit that the tree goes to; `None`: the tree stays.
    pub git_commit: Option<&'a str>,
    /// Whether local changes are allowed.
    pub is_forced: bool,
    /// The file for the deleted rows.
    pub archive: &'a Path,
}

/// Records that a rewind begins, with its event.
pub fn begin(tx: &Transaction<'_>, now: Timestamp, new: &NewRewind<'_>) -> Result<()> {
    let database = &new.setup.target.database;
    let event = NewEvent {
        to: Some(new.task.task_id.as_str()),
        payload: Some(json!({
            "database": database.to_string_lossy(),
            "snapshot_created_at": new.task.created_at,
            "git_commit": new.git_commit,
        })),
        ..about(EventType::RewindBegun, new.id)
    };
    // The event comes first, because the row carries its seq.
    let seq = ic_ledger::events::append(tx, now, &event)?;
    // JSON cannot hold every path; the database's own column has its exact bytes.
    let mut setup = new.setup.clone();
    setup.target.database = PathBuf::new();
    let deleted = Deleted { snapshot_created_at: new.task.created_at.clone(), rows: None };
    tx.execute_one(
        "INSERT INTO rewinds (id, reversed_id, seq, root, database, task_id, scope, target, git_commit, forced, stage, \
         status, archive, result, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'planned', 'in_progress', $11, $12, $13, $13)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &path_bytes(new.root),
            &path_bytes(database),
            &new.task.task_id,
            &text(&new.task.scope)?,
            &text(&setup)?,
            &new.git_commit,
            &new.is_forced,
            &path_bytes(new.archive),
            &text(&deleted)?,
            &now.millis(),
        ],
    )
}

/// Records what git is about to leave, before it moves. A safety checkpoint that was recorded first keeps its place.
pub fn leave(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &RewindId,
    safety: &CheckpointId,
    left: &LeftHead,
) -> Result<()> {
    // A resumed rewind comes here again, with a tree that its checkout may have moved in part. The first checkpoint alone has
    // the tree from before, so no row is changed then, which is not an error.
    tx.execute(
        "UPDATE rewinds SET safety_id = $1, left_branch = $2, left_head = $3, kept_ref = $4, updated_at = $5 \
         WHERE id = $6 AND stage = 'planned' AND safety_id IS NULL",
        &[&safety.as_str(), &left.branch, &left.head, &left.kept_ref, &now.millis(), &id.as_str()],
    )
    .map(|_| ())
}

/// Records that the tree is at the task's commit, with its event.
pub fn git_done(tx: &Transaction<'_>, now: Timestamp, entry: &RewindEntry) -> Result<()> {
    let event = NewEvent {
        from: entry.left.head.as_deref(),
        to: entry.git_commit.as_deref(),
        payload: Some(json!({
            "safety_id": entry.safety_id.as_ref().map(CheckpointId::as_str),
            "left_branch": entry.left.branch.as_deref().map(String::from_utf8_lossy),
            "kept_ref": entry.left.kept_ref.as_deref().map(String::from_utf8_lossy),
        })),
        ..about(EventType::RewindGitDone, &entry.id)
    };
    ic_ledger::events::append(tx, now, &event)?;
    follow(tx, now, &entry.id, RewindEvent::GitIsDone)
}

/// Records that the rows are deleted, with its event.
pub fn db_done(tx: &Transaction<'_>, now: Timestamp, entry: &RewindEntry, deleted: &Deleted) -> Result<()> {
    let counts = deleted.rows.iter().flatten();
    let counts: serde_json::Map<String, Value> = counts.map(|(table, rows)| (table.clone(), json!(rows))).collect();
    let event = NewEvent {
        to: Some(entry.task_id.as_str()),
        payload: Some(json!({
            "snapshot_created_at": deleted.snapshot_created_at,
            "deleted_row_counts": counts,
        })),
        ..about(EventType::RewindDbDone, &entry.id)
    };
    ic_ledger::events::append(tx, now, &event)?;
    follow(tx, now, &entry.id, RewindEvent::DbIsDone)?;
    tx.execute_one("UPDATE rewinds SET result = $1 WHERE id = $2", &[&text(deleted)?, &entry.id.as_str()])
}

/// Records the process of the command for vectors, or that it has ended.
pub fn set_child(tx: &Transaction<'_>, now: Timestamp, id: &RewindId, child: Option<&str>) -> Result<()> {
    tx.execute_one(
        "UPDATE rewinds SET child = $1, updated_at = $2 WHERE id = $3",
        &[&child, &now.millis(), &id.as_str()],
    )
}

/// Records that every stage is done, with its event.
pub fn finish(tx: &Transaction<'_>, now: Timestamp, entry: &RewindEntry) -> Result<()> {
    let event = NewEvent { to: Some(entry.task_id.as_str()), ..about(EventType::RewindDone, &entry.id) };
    ic_ledger::events::append(tx, now, &event)?;
    follow(tx, now, &entry.id, RewindEvent::Ends)?;
    // The command for vectors has ended. An undo would look for the process that stands here, to end it.
    tx.execute_one("UPDATE rewinds SET child = NULL, error = NULL WHERE id = $1", &[&entry.id.as_str()])
}

/// Records that a stage failed, with its event; `error` says why.
pub fn stop(tx: &Transaction<'_>, now: Timestamp, entry: &RewindEntry, error: &RewindFailure) -> Result<()> {
    let event = NewEvent {
        from: Some(entry.stage.as_str()),
        reason: Some(error.message.as_str()),
        payload: Some(json!({ "code": error.code })),
        ..about(EventType::RewindStopped, &entry.id)
    };
    ic_ledger::events::append(tx, now, &event)?;
    follow(tx, now, &entry.id, RewindEvent::Stops)?;
    tx.execute_one("UPDATE rewinds SET child = NULL, error = $1 WHERE id = $2", &[&text(error)?, &entry.id.as_str()])
}

/// Records that another process resumes a rewind.
pub fn reopen(tx: &Transaction<'_>, now: Timestamp, id: &RewindId) -> Result<()> {
    follow(tx, now, id, RewindEvent::Resumes)
}

/// Records that the rows are restored, with its event.
pub fn undone(tx: &Transaction<'_>, now: Timestamp, entry: &RewindEntry) -> Result<()> {
    let event = NewEvent {
        from: Some(entry.status.as_str()),
        to: Some(RewindStatus::Undone.as_str()),
        ..about(EventType::RewindUndone, &entry.id)
    };
    ic_ledger::events::append(tx, now, &event)?;
    follow(tx, now, &entry.id, RewindEvent::IsUndone)
}

/// Removes the reason for which a rewind stopped: the event with that reason was redacted.
pub fn redact(tx: &Transaction<'_>, id: &RewindId) -> Result<()> {
    tx.execute("UPDATE rewinds SET error = NULL WHERE id = $1", &[&id.as_str()]).map(|_| ())
}

/// Writes the state that follows the one in the row: a caller's copy may be older than this transaction. Errors: `internal` if no state
/// follows.
fn follow(tx: &Transaction<'_>, now: Timestamp, id: &RewindId, happening: RewindEvent) -> Result<()> {
    let entry = super::get(tx, id)?;
    let (stage, status): (Stage, RewindStatus) = next((entry.stage, entry.status), happening)?;
    tx.execute_one(
        "UPDATE rewinds SET stage = $1, status = $2, updated_at = $3 WHERE id = $4",
        &[&stage.as_str(), &status.as_str(), &now.millis(), &id.as_str()],
    )
}

fn about(event_type: EventType, id: &RewindId) -> NewEvent<'_> {
    NewEvent { subject_id: Some(id.as_str()), ..NewEvent::without_run(event_type) }
}

fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("writing the journal: {e}.")).caused_by(e))
}
