//! Lists and counts of dispatches.

use ic_base::{Result, RunId};
use ic_store::Snapshot;

use super::Dispatch;
use crate::status::DispatchStatus;

/// Which dispatches are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// Only those of this run; `None`: of all runs.
    pub run_id: Option<&'a RunId>,
    /// Only those in this phase.
    pub phase: Option<&'a str>,
    /// Only those in this state.
    pub status: Option<DispatchStatus>,
    /// At most so many.
    pub limit: i64,
}

/// The wanted dispatches, newest first.
pub fn list(snapshot: &Snapshot<'_>, filter: &Filter<'_>) -> Result<Vec<Dispatch>> {
    let columns = Dispatch::COLUMNS;
    let status = filter.status.map(DispatchStatus::as_str);
    match (filter.run_id, status) {
        (Some(run), status) => snapshot.query_all(
            &format!(
                "SELECT {columns} FROM dispatches WHERE run_id = $1 AND ($2 IS NULL OR phase = $2) \
                 AND ($3 IS NULL OR status = $3) ORDER BY seq DESC LIMIT $4"
            ),
            &[&run.as_str(), &filter.phase, &status, &filter.limit],
            Dispatch::from_row,
        ),
        (None, Some(status)) => snapshot.query_all(
            &format!(
                "SELECT {columns} FROM dispatches WHERE status = $1 AND seq > 0 ORDER BY seq DESC LIMIT $2"
            ),
            &[&status, &filter.limit],
            Dispatch::from_row,
        ),
        (None, None) => snapshot.query_all(
            &format!("SELECT {columns} FROM dispatches WHERE seq > 0 ORDER BY seq DESC LIMIT $1"),
            &[&filter.limit],
            Dispatch::from_row,
        ),
    }
}

/// How many dispatches of a run (in a phase) have not ended; rolled-back ones do not count.
pub fn count_unfinished(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>) -> Result<i64> {
    count(snapshot, run_id, phase, "status IN ('pending', 'running')")
}

/// How many dispatches of a run (in a phase) have the verdict pass, and fail; rolled-back ones do not count.
pub fn count_verdicts(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>) -> Result<(i64, i64)> {
    Ok((
        count(snapshot, run_id, phase, "verdict = 'pass'")?,
        count(snapshot, run_id, phase, "verdict = 'fail'")?,
    ))
}

fn count(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>, condition: &str) -> Result<i64> {
    let sql = format!(
        "SELECT count(*) FROM dispatches WHERE run_id = $1 AND rolled_back_by IS NULL \
         AND ($2 IS NULL OR phase = $2) AND {condition}"
    );
    Ok(snapshot.query_opt(&sql, &[&run_id.as_str(), &phase], |row| row.get(0))?.unwrap_or(0))
}
