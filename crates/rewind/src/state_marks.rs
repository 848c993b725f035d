//! The table `state_marks`: the position of an application's database when a run moved.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_ledger::{Snapshot, Transaction, path_bytes};

use crate::engine::StateMark;

/// Records the position of a database when the event `seq` moved a run.
pub fn insert(tx: &Transaction<'_>, seq: Seq, run: &RunId, database: &Path, mark: &StateMark) -> Result<()> {
    let text = serde_json::to_string(mark)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("A mark cannot be written: {e}.")))?;
    tx.execute_one(
        "INSERT INTO state_marks (seq, run_id, database, mark) VALUES ($1, $2, $3, $4)",
        &[&seq, &run.as_str(), &path_bytes(database), &text],
    )
}

/// Other runs that may have written rows into a database since the event `seq`: they have a mark of it, and are active, or did something
/// since. Where a scope separates the rows, only runs of the same `scope`.
pub fn runs_beside(
    snapshot: &Snapshot<'_>,
    run: &RunId,
    database: &Path,
    scope: Option<&str>,
    seq: Seq,
) -> Result<Vec<RunId>> {
    snapshot.query_all(
        "SELECT DISTINCT m.run_id FROM state_marks AS m JOIN runs AS r ON r.id = m.run_id \
         WHERE m.database = $1 AND m.run_id <> $2 AND ($3 IS NULL OR r.scope_id = $3) \
         AND (r.status = 'active' OR EXISTS (SELECT 1 FROM events AS e WHERE e.run_id = m.run_id AND e.seq > $4)) \
         ORDER BY m.run_id",
        &[&path_bytes(database), &run.as_str(), &scope, &seq],
        |row| Ok(RunId::from_ledger(row.get(0)?)),
    )
}

/// The database and its position when the event `seq` moved a run; `None` if it was not recorded.
pub fn of_event(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<(PathBuf, StateMark)>> {
    snapshot.query_opt("SELECT database, mark FROM state_marks WHERE seq = $1", &[&seq], |row| {
        Ok((row.path(0)?, row.parse(1, "state_marks", |text| serde_json::from_str(text).ok())?))
    })
}
