//! The table `state_marks`: where an application's database was when a run moved.

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result, RunId, Seq};
use ic_store::{Snapshot, Transaction, path_bytes};

use crate::Mark;

/// Records where a database was when the event `seq` moved a run.
pub fn insert(tx: &Transaction<'_>, seq: Seq, run: &RunId, database: &Path, mark: &Mark) -> Result<()> {
    let text = serde_json::to_string(mark)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("A mark cannot be written: {e}.")))?;
    tx.execute_one(
        "INSERT INTO state_marks (seq, run_id, database, mark) VALUES ($1, $2, $3, $4)",
        &[&seq, &run.as_str(), &path_bytes(database), &text],
    )
}

/// The database, and where it was, when the event `seq` moved a run; `None` if nobody looked.
pub fn of_event(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<(PathBuf, Mark)>> {
    snapshot.query_opt("SELECT database, mark FROM state_marks WHERE seq = $1", &[&seq], |row| {
        Ok((row.path(0)?, row.parse(1, "state_marks", |text| serde_json::from_str(text).ok())?))
    })
}
