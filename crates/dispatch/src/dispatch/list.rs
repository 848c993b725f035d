//! Lists and counts of dispatches.

use ic_base::{DispatchId, Result, RunId, Seq, Timestamp};
use ic_ledger::{Snapshot, containing};

use super::row::Dispatch;
use crate::status::{DispatchStatus, WorkVerdict};

/// Which dispatches are wanted.
#[derive(Debug, Clone, Copy)]
pub struct DispatchFilter<'a> {
    /// Only those of this run; `None`: of all runs.
    pub run_id: Option<&'a RunId>,
    /// Only those in this phase.
    pub phase: Option<&'a str>,
    /// Only those in this state.
    pub status: Option<DispatchStatus>,
    /// The most dispatches that are returned.
    pub limit: i64,
}

/// The wanted dispatches, newest first.
pub fn list(snapshot: &Snapshot<'_>, filter: &DispatchFilter<'_>) -> Result<Vec<Dispatch>> {
    let columns = Dispatch::COLUMNS;
    let status = filter.status.map(DispatchStatus::as_str);
    // There is a statement for each index: by run, by status, by seq. A condition that may be NULL would keep SQLite
    // from using them. A phase is asked for only within a run, so the last two need not know it.
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
            &format!("SELECT {columns} FROM dispatches WHERE status = $1 AND seq > 0 ORDER BY seq DESC LIMIT $2"),
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

/// All dispatches of a run, newest first.
pub fn of_run(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<Dispatch>> {
    list(snapshot, &DispatchFilter { run_id: Some(run), phase: None, status: None, limit: i64::MAX })
}

/// The dispatches of all runs that are at work on record, newest first.
pub fn running(snapshot: &Snapshot<'_>) -> Result<Vec<Dispatch>> {
    let status = Some(DispatchStatus::Running);
    list(snapshot, &DispatchFilter { run_id: None, phase: None, status, limit: i64::MAX })
}

/// The first dispatch of a run after an event that has this name, as the dispatch of a step has the name of the step.
pub fn first_named_since(snapshot: &Snapshot<'_>, run: &RunId, name: &str, since: Seq) -> Result<Option<Dispatch>> {
    // This searches the index of the run from the event on; the name is looked at row by row.
    let sql = format!(
        "SELECT {} FROM dispatches WHERE run_id = $1 AND seq > $2 AND name = $3 ORDER BY seq LIMIT 1",
        Dispatch::COLUMNS
    );
    snapshot.query_opt(&sql, &[&run.as_str(), &since, &name], Dispatch::from_row)
}

/// The newest dispatches whose name or summary contains this text, newest first: the prompts of agents among them. The case of ASCII letters
/// does not count.
pub fn search(snapshot: &Snapshot<'_>, text: &str, limit: i64) -> Result<Vec<Dispatch>> {
    let sql = format!(
        "SELECT {} FROM dispatches WHERE seq > 0 AND (lower(name) LIKE $1 ESCAPE '\\' \
         OR lower(summary) LIKE $1 ESCAPE '\\') ORDER BY seq DESC LIMIT $2",
        Dispatch::COLUMNS
    );
    snapshot.query_all(&sql, &[&containing(text), &limit], Dispatch::from_row)
}

/// The dispatches of all runs whose process may write yet, if it lives, newest first.
///
/// The state says what was reported, not that the process ended: one that was cancelled, failed or timed out is often told nothing. Only
/// completed work names no worker: who reported it is often a session that lives on, and has said itself that it is done.
pub fn may_write(snapshot: &Snapshot<'_>) -> Result<Vec<Dispatch>> {
    let sql = format!(
        "SELECT {} FROM dispatches WHERE pid_start_time IS NOT NULL AND status <> 'completed' AND seq > 0 \
         ORDER BY seq DESC",
        Dispatch::COLUMNS
    );
    snapshot.query_all(&sql, &[], Dispatch::from_row)
}

/// The dispatches of all runs that were at work at any time between two events, oldest first. `since`: when the first was recorded; in rows
/// from before the end was recorded as an event, only its time is known.
pub fn at_work_between(snapshot: &Snapshot<'_>, from: Seq, to: Seq, since: Timestamp) -> Result<Vec<Dispatch>> {
    // The place of work that has not begun is where it was created. Its `started_seq` is NULL, and no comparison with
    // NULL is true: hence the coalesce.
    let sql = format!(
        "SELECT {} FROM dispatches WHERE seq > 0 AND seq < $1 AND coalesce(started_seq, seq) < $1 \
         AND (status = 'running' OR finished_seq > $2 OR (finished_seq IS NULL AND finished_at >= $3)) ORDER BY seq",
        Dispatch::COLUMNS
    );
    let mut found = snapshot.query_all(&sql, &[&to, &from, &since.millis()], Dispatch::from_row)?;
    // Work that was cancelled before it began did nothing.
    found.retain(|dispatch| dispatch.started_at.is_some() || dispatch.status != DispatchStatus::Cancelled);
    Ok(found)
}

/// The work that this work began, and what that began in turn, oldest first.
pub fn descendants(snapshot: &Snapshot<'_>, id: &DispatchId) -> Result<Vec<Dispatch>> {
    let sql = format!("SELECT {} FROM dispatches WHERE parent_id = $1 ORDER BY seq", Dispatch::COLUMNS);
    let mut found: Vec<Dispatch> = Vec::new();
    let mut next = snapshot.query_all(&sql, &[&id.as_str()], Dispatch::from_row)?;
    // This ends: a parent is named when its child is created, and never afterwards, so a parent is always older.
    while let Some(one) = next.pop() {
        next.extend(snapshot.query_all(&sql, &[&one.id.as_str()], Dispatch::from_row)?);
        found.push(one);
    }
    found.sort_by_key(|one| one.seq);
    Ok(found)
}

/// A piece of work, then the work in which it began, and so on.
pub fn with_parents(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Vec<Dispatch>> {
    let mut line = vec![work.clone()];
    // It ends: a parent is written once, when its dispatch is made, and is older than that.
    while let Some(parent) = line.last().and_then(|one| one.work.parent_id.clone()) {
        line.push(super::get(snapshot, &parent)?);
    }
    Ok(line)
}

/// A piece of work, what it began, and the work in which it began.
pub fn kin(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Vec<DispatchId>> {
    let parents = with_parents(snapshot, work)?;
    let all = parents.into_iter().chain(descendants(snapshot, &work.id)?);
    Ok(all.map(|one| one.id).collect())
}

/// The dispatches of a run (in a phase) that have not ended, oldest first; rolled-back ones do not count.
pub fn unfinished(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>) -> Result<Vec<Dispatch>> {
    let sql = format!(
        "SELECT {} FROM dispatches WHERE run_id = $1 AND rolled_back_by IS NULL \
         AND status IN ('pending', 'running') AND ($2 IS NULL OR phase = $2) ORDER BY seq",
        Dispatch::COLUMNS
    );
    snapshot.query_all(&sql, &[&run_id.as_str(), &phase], Dispatch::from_row)
}

/// Whether a dispatch of a run, not rolled back, came to its end after the event `since`; one that was cancelled did no work.
pub fn has_ended_since(snapshot: &Snapshot<'_>, run_id: &RunId, since: Seq) -> Result<bool> {
    let found = snapshot.query_opt(
        "SELECT e.seq FROM events e JOIN dispatches d ON d.id = e.subject_id WHERE e.run_id = $1 AND e.seq > $2 \
         AND e.type IN ('dispatch_completed', 'dispatch_failed', 'dispatch_timed_out', 'dispatch_interrupted') \
         AND d.rolled_back_by IS NULL ORDER BY e.seq LIMIT 1",
        &[&run_id.as_str(), &since],
        |row| row.get::<Seq>(0),
    )?;
    Ok(found.is_some())
}

/// Every verdict on a run (in a phase), newest first, with its dispatch and the event that recorded it; rolled-back ones do not count.
///
/// Dispatches end in another order than they are created in, so the event that recorded the verdict decides.
pub fn verdicts(
    snapshot: &Snapshot<'_>,
    run_id: &RunId,
    phase: Option<&str>,
) -> Result<Vec<(DispatchId, WorkVerdict, Seq)>> {
    snapshot.query_all(
        "SELECT d.id, d.verdict, e.seq FROM events e JOIN dispatches d ON d.id = e.subject_id WHERE e.run_id = $1 \
         AND e.type = 'dispatch_completed' AND d.verdict IS NOT NULL AND d.rolled_back_by IS NULL \
         AND ($2 IS NULL OR d.phase = $2) ORDER BY e.seq DESC",
        &[&run_id.as_str(), &phase],
        |row| {
            let id = DispatchId::from_ledger(row.get(0)?);
            Ok((id, row.parse(1, "dispatches", WorkVerdict::parse)?, row.get(2)?))
        },
    )
}

/// How many dispatches of a run (in a phase) have the verdict pass, and fail; rolled-back ones do not count.
pub fn count_verdicts(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>) -> Result<(i64, i64)> {
    Ok((count(snapshot, run_id, phase, "verdict = 'pass'")?, count(snapshot, run_id, phase, "verdict = 'fail'")?))
}

fn count(snapshot: &Snapshot<'_>, run_id: &RunId, phase: Option<&str>, condition: &str) -> Result<i64> {
    let sql = format!(
        "SELECT count(*) FROM dispatches WHERE run_id = $1 AND rolled_back_by IS NULL \
         AND ($2 IS NULL OR phase = $2) AND {condition}"
    );
    Ok(snapshot.query_opt(&sql, &[&run_id.as_str(), &phase], |row| row.get(0))?.unwrap_or(0))
}
