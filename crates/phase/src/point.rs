//! The table `points`: places in a run to which it can go back, beside the phases that it leaves.
//!
//! A point is an event of its own, the first in the transaction that begins what it stands before: what begins there lies after it. Phases
//! need no row, because the move that leaves one is the point; neither do checkpoints, which are events themselves.

use ic_base::{CheckpointId, Result, RunId, Seq, Timestamp, title};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::{LedgerRow, Snapshot, Transaction};
use serde_json::json;

use crate::run::Run;

ic_base::words! {
    /// What a point stands before.
    pub enum PointKind {
        /// An attempt at a workflow's step.
        Step = "step",
        /// The work of a dispatch.
        Dispatch = "dispatch",
        /// What a person's prompt begins.
        Prompt = "prompt",
        /// A command that destroys.
        Guard = "guard",
    }
}

/// A row of `points`: a place in a run to which it can go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointRecord {
    /// The run that has the point.
    pub run_id: RunId,
    /// The kind of work that begins there.
    pub kind: PointKind,
    /// The step's name, or the id of the dispatch, prompt or command.
    pub name: String,
    /// The run's epoch then.
    pub epoch: i64,
    /// Which attempt at a step, from 1; 1 for all else.
    pub attempt: i64,
    /// The event that the point is: what has a higher number lies after it.
    pub seq: Seq,
    /// The phase at which the run was.
    pub phase: String,
    /// The tree as it was there, if it was captured.
    pub checkpoint_id: Option<CheckpointId>,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// For people, on one line.
    pub title: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What a new point is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewPoint<'a> {
    /// The kind of work that begins there.
    pub kind: PointKind,
    /// The step's name, or the id of the dispatch, prompt or command.
    pub name: &'a str,
    /// Which attempt at a step, from 1; 1 for all else.
    pub attempt: i64,
    /// The session that it belongs to.
    pub session: Option<&'a str>,
    /// For people; kept on one line, masked and shortened.
    pub title: Option<&'a str>,
}

impl<'a> NewPoint<'a> {
    /// The point before the work of a dispatch, whose own row has its name.
    pub fn of_dispatch(id: &'a str) -> Self {
        Self { kind: PointKind::Dispatch, name: id, attempt: 1, session: None, title: None }
    }
}

const COLUMNS: &str = "run_id, kind, name, epoch, attempt, seq, phase, checkpoint_id, session, title, created_at";

fn from_row(row: &LedgerRow<'_>) -> Result<PointRecord> {
    Ok(PointRecord {
        run_id: RunId::from_ledger(row.get(0)?),
        kind: row.parse(1, "points", PointKind::parse)?,
        name: row.get(2)?,
        epoch: row.get(3)?,
        attempt: row.get(4)?,
        seq: row.get(5)?,
        phase: row.get(6)?,
        checkpoint_id: row.get::<Option<String>>(7)?.map(CheckpointId::from_ledger),
        session: row.get(8)?,
        title: row.get(9)?,
        created_at: Timestamp(row.get(10)?),
    })
}

/// Records the event of a point. The caller appends it first, then what was seen there, then the row ([`insert`]), which names that.
pub fn announce(tx: &Transaction<'_>, now: Timestamp, run: &Run, new: &NewPoint<'_>) -> Result<Seq> {
    let event = NewEvent {
        subject_id: Some(new.name),
        to: Some(&run.phase),
        payload: Some(json!({ "kind": new.kind.as_str(), "attempt": new.attempt })),
        ..NewEvent::of(&run.id, run.epoch, EventType::PointCreated)
    };
    ic_ledger::events::append(tx, now, &event)
}

/// Records the point of the event `seq`. Several points may share one event: what begins at them began from one look at the tree.
pub fn insert(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &Run,
    new: &NewPoint<'_>,
    seq: Seq,
    checkpoint: Option<&CheckpointId>,
) -> Result<()> {
    tx.execute_one(
        &format!("INSERT INTO points ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"),
        &[
            &run.id.as_str(),
            &new.kind.as_str(),
            &new.name,
            &run.epoch,
            &new.attempt,
            &seq,
            &run.phase,
            &checkpoint.map(CheckpointId::as_str),
            &new.session,
            &new.title.map(title),
            &now.millis(),
        ],
    )
}

/// Records which checkpoint shows the tree at a point: it was looked at after the point was recorded, and before anything was done there. One
/// that has a checkpoint keeps it.
pub fn show(tx: &Transaction<'_>, point: &PointRecord, checkpoint: &CheckpointId) -> Result<()> {
    tx.execute(
        "UPDATE points SET checkpoint_id = $1 \
         WHERE run_id = $2 AND kind = $3 AND name = $4 AND epoch = $5 AND attempt = $6 AND checkpoint_id IS NULL",
        &[
            &checkpoint.as_str(),
            &point.run_id.as_str(),
            &point.kind.as_str(),
            &point.name,
            &point.epoch,
            &point.attempt,
        ],
    )
    .map(drop)
}

/// The points of a run, oldest first.
pub fn of_run(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<PointRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM points WHERE run_id = $1 ORDER BY seq");
    let mut points = snapshot.query_all(&sql, &[&run_id.as_str()], from_row)?;
    // No index has the points of one event in order.
    points.sort_by(|one, other| (one.seq, one.attempt, &one.name).cmp(&(other.seq, other.attempt, &other.name)));
    Ok(points)
}

/// The newest points of a run from before the event `before`, newest first.
pub fn newest_of_run(snapshot: &Snapshot<'_>, run_id: &RunId, before: Seq, at_most: usize) -> Result<Vec<PointRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM points WHERE run_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3");
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    snapshot.query_all(&sql, &[&run_id.as_str(), &before, &at_most], from_row)
}

/// The oldest points of a run at the event `from` or after it, oldest first.
pub fn oldest_of_run(snapshot: &Snapshot<'_>, run_id: &RunId, from: Seq, at_most: usize) -> Result<Vec<PointRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM points WHERE run_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3");
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    snapshot.query_all(&sql, &[&run_id.as_str(), &from, &at_most], from_row)
}

/// The points of this kind and name, of all runs, oldest first.
pub fn named(snapshot: &Snapshot<'_>, kind: PointKind, name: &str) -> Result<Vec<PointRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM points WHERE kind = $1 AND name = $2");
    let mut points = snapshot.query_all(&sql, &[&kind.as_str(), &name], from_row)?;
    // The index of kind and name has no seq. The points are sorted here, because the statement would sort them in a
    // temporary table.
    points.sort_by_key(|point| (point.seq, point.attempt));
    Ok(points)
}

/// The points of this kind and name of a run, oldest first.
pub fn named_in(snapshot: &Snapshot<'_>, run_id: &RunId, kind: PointKind, name: &str) -> Result<Vec<PointRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM points WHERE run_id = $1 AND kind = $2 AND name = $3");
    let mut points = snapshot.query_all(&sql, &[&run_id.as_str(), &kind.as_str(), &name], from_row)?;
    // The primary key has them by epoch and attempt, not by event.
    points.sort_by_key(|point| (point.seq, point.attempt));
    Ok(points)
}

/// The checkpoint of the points at the event `seq` of a run.
pub fn checkpoint_at(snapshot: &Snapshot<'_>, run_id: &RunId, seq: Seq) -> Result<Option<CheckpointId>> {
    // Points of one event began from one look at the tree, so any of them that has a checkpoint answers.
    snapshot.query_opt(
        "SELECT checkpoint_id FROM points WHERE run_id = $1 AND seq = $2 AND checkpoint_id IS NOT NULL LIMIT 1",
        &[&run_id.as_str(), &seq],
        |row| row.get(0).map(CheckpointId::from_ledger),
    )
}

/// The event of the points that began from this checkpoint.
pub fn of_checkpoint(snapshot: &Snapshot<'_>, run_id: &RunId, id: &CheckpointId) -> Result<Option<Seq>> {
    snapshot.query_opt(
        "SELECT seq FROM points WHERE run_id = $1 AND checkpoint_id = $2 ORDER BY seq LIMIT 1",
        &[&run_id.as_str(), &id.as_str()],
        |row| row.get(0),
    )
}

/// The checkpoints that points of unfinished runs need: all of steps, and those of the newest `newest` others of each run.
pub fn needed_checkpoints(snapshot: &Snapshot<'_>, newest: usize) -> Result<Vec<CheckpointId>> {
    let mut all = snapshot.query_all(
        "SELECT p.run_id, p.seq, p.kind, p.checkpoint_id FROM runs r JOIN points p ON p.run_id = r.id \
         WHERE r.status IN ('active', 'rolling_back') AND p.checkpoint_id IS NOT NULL",
        &[],
        |row| {
            let kind = row.parse(2, "points", PointKind::parse)?;
            Ok((row.get::<String>(0)?, row.get::<Seq>(1)?, kind, row.get(3).map(CheckpointId::from_ledger)?))
        },
    )?;
    // Newest first within each run, so that the first `newest` of it are the ones that are kept.
    all.sort_by(|(run, seq, ..), (other, later, ..)| (run, later).cmp(&(other, seq)));
    let (mut of_run, mut others) = (String::new(), 0);
    let mut needed = Vec::new();
    for (run, _, kind, id) in all {
        if run != of_run {
            (of_run, others) = (run, 0);
        }
        others += usize::from(kind != PointKind::Step);
        if kind == PointKind::Step || others <= newest {
            needed.push(id);
        }
    }
    Ok(needed)
}

/// Takes the title out of the points whose event this is.
pub fn redact(tx: &Transaction<'_>, seq: Seq) -> Result<()> {
    tx.execute("UPDATE points SET title = NULL WHERE seq = $1", &[&seq]).map(|_| ())
}
