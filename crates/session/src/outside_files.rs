//! The table `outside_files`: files outside of the project that tool calls named, and what the calls did to them.
//!
//! Both contents are durable in the object store before a row names them. So an undo needs no journal of its own: it replaces what a call
//! left by what was there before, and after a crash the file has one of the two.

use std::path::PathBuf;

use ic_base::{CallId, Code, Diagnosis, DispatchId, Result, RunId, Seq, Timestamp};
use ic_checkpoint::outside_state::OutsideStanding;
use ic_ledger::events::Hash;
use ic_ledger::{LedgerRow, Snapshot, Transaction};

/// What a call did to a file outside of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideFile {
    /// The call that named the file.
    pub call_id: CallId,
    /// The absolute path, without links.
    pub path: String,
    /// The work that the call belongs to.
    pub dispatch_id: DispatchId,
    /// The phase of that work.
    pub phase: String,
    /// The state before the call.
    pub was: OutsideStanding,
    /// The state after the call; `None`: its end was not reported.
    pub became: Option<OutsideStanding>,
    /// The newest event when the call began.
    pub seq: Seq,
}

impl OutsideFile {
    /// The contents from before and after the call that the store holds, except empty ones.
    pub fn contents(&self) -> impl Iterator<Item = Hash> {
        let states = std::iter::once(&self.was).chain(&self.became);
        states
            .filter(|state| !matches!(state, OutsideStanding::File { size: 0, .. }))
            .filter_map(OutsideStanding::content)
    }

    /// Whether the call may have changed it: unless the states are known to be the same.
    pub fn is_changed(&self) -> bool {
        self.became.as_ref().is_none_or(|became| !became.is_as(&self.was))
    }
}

const COLUMNS: &str = "o.call_id, o.path, o.dispatch_id, d.phase, o.was, o.became, o.seq FROM outside_files o \
    JOIN dispatches d ON d.id = o.dispatch_id";

fn from_row(row: &LedgerRow<'_>) -> Result<OutsideFile> {
    let became: Option<String> = row.get(5)?;
    // NULL cannot be parsed as a text, so it is asked about first.
    let became = became.map(|_| row.parse(5, "outside_files", read)).transpose()?;
    Ok(OutsideFile {
        call_id: CallId::from_ledger(row.get(0)?),
        path: row.get(1)?,
        dispatch_id: DispatchId::from_ledger(row.get(2)?),
        phase: row.get(3)?,
        was: row.parse(4, "outside_files", read)?,
        became,
        seq: row.get(6)?,
    })
}

fn read(text: &str) -> Option<OutsideStanding> {
    serde_json::from_str(text).ok()
}

fn written(standing: &OutsideStanding) -> Result<String> {
    serde_json::to_string(standing)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("A state cannot be written down: {e}.")))
}

/// Records the state of a path at the beginning of a call. Nothing is written for a call that is not on record, because it was reported
/// twice.
pub fn begin(
    tx: &Transaction<'_>,
    now: Timestamp,
    (call, dispatch): (&CallId, &DispatchId),
    path: &str,
    was: &OutsideStanding,
) -> Result<()> {
    let (seq, _) = ic_ledger::events::head(tx)?;
    let is_told = "SELECT 1 FROM calls WHERE id = $1";
    if tx.query_opt(is_told, &[&call.as_str()], |row| row.get::<i64>(0))?.is_none() {
        return Ok(());
    }
    tx.execute(
        // A path that has a row keeps it: the first state is the one from before the call.
        "INSERT INTO outside_files (call_id, path, dispatch_id, was, seq, created_at) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (call_id, path) DO NOTHING",
        &[&call.as_str(), &path, &dispatch.as_str(), &written(was)?, &seq, &now.millis()],
    )
    .map(drop)
}

/// Records what a call left at a path.
pub fn end(tx: &Transaction<'_>, call: &CallId, path: &str, became: &OutsideStanding) -> Result<()> {
    tx.execute_one(
        "UPDATE outside_files SET became = $1 WHERE call_id = $2 AND path = $3",
        &[&written(became)?, &call.as_str(), &path],
    )
}

/// The files of all calls, in no order.
pub fn all(snapshot: &Snapshot<'_>) -> Result<Vec<OutsideFile>> {
    snapshot.query_all(&format!("SELECT {COLUMNS}"), &[], from_row)
}

/// The files that a call named.
pub fn of_call(snapshot: &Snapshot<'_>, call: &CallId) -> Result<Vec<OutsideFile>> {
    let sql = format!("SELECT {COLUMNS} WHERE o.call_id = $1 ORDER BY o.path");
    snapshot.query_all(&sql, &[&call.as_str()], from_row)
}

/// The paths that calls of a dispatch named, absolute, in no order.
pub fn paths_of(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<Vec<PathBuf>> {
    let sql = "SELECT path FROM outside_files WHERE dispatch_id = $1";
    snapshot.query_all(sql, &[&dispatch.as_str()], |row| row.get::<String>(0).map(PathBuf::from))
}

/// What a dispatch did, oldest first.
pub fn of_dispatch(snapshot: &Snapshot<'_>, dispatch: &DispatchId) -> Result<Vec<OutsideFile>> {
    let sql = format!("SELECT {COLUMNS} WHERE o.dispatch_id = $1 ORDER BY o.seq");
    let mut files = snapshot.query_all(&sql, &[&dispatch.as_str()], from_row)?;
    // Ids of calls are in the order in which they were made. No index has the rows of one event in that order.
    files.sort_by(|a, b| (a.seq, &a.call_id, &a.path).cmp(&(b.seq, &b.call_id, &b.path)));
    Ok(files)
}

/// What the work of a run did, oldest first, except what was undone by rollbacks other than `by`.
pub fn of_run(snapshot: &Snapshot<'_>, run: &RunId, by: Option<&str>) -> Result<Vec<OutsideFile>> {
    let sql = format!("SELECT {COLUMNS} WHERE d.run_id = $1 AND (d.rolled_back_by IS NULL OR d.rolled_back_by = $2)");
    let mut files = snapshot.query_all(&sql, &[&run.as_str(), &by.unwrap_or_default()], from_row)?;
    // Ids of calls are in the order in which they were made. No index has the rows of a run in that order.
    files.sort_by(|a, b| (a.seq, &a.call_id, &a.path).cmp(&(b.seq, &b.call_id, &b.path)));
    Ok(files)
}

/// The contents that undos need: of calls that are as young as the oldest checkpoint that is kept.
pub fn contents(snapshot: &Snapshot<'_>) -> Result<Vec<Hash>> {
    let oldest: Option<Option<i64>> =
        snapshot.query_opt("SELECT min(created_at) FROM checkpoints WHERE pruned_at IS NULL", &[], |row| row.get(0))?;
    // `min` of no rows is one row with NULL: no checkpoint is kept, so nothing else is.
    let Some(oldest) = oldest.flatten() else { return Ok(Vec::new()) };
    let sql = format!("SELECT {COLUMNS} WHERE o.created_at >= $1");
    let all = snapshot.query_all(&sql, &[&oldest], from_row)?;
    Ok(all.iter().flat_map(OutsideFile::contents).collect())
}
