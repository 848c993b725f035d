//! The table `rollbacks`: one row for each rollback, with its plan and how far it is.
//!
//! ```text
//!   in_progress ── settles ──▶ done ── undo begins ──▶ in_progress ── settles ──▶ undone
//!     │   ▲                     ▲                          │
//!     │   │ resumed             └── undo is aborted ───────┘
//!     ▼   │
//!   stopped (a step failed, or an interruption)       in_progress, stopped ── is aborted ──▶ aborted
//! ```
//!
//! A rollback of the record alone is one transaction, and `done` with it. Every other row is there before anything outside of the ledger
//! changes, so that a call after a crash finds what to resume. How far each step is, and the direction, is in [`crate::journal::steps`].
//!
//! Compatibility: a program refuses a ledger of a newer schema (`newer_schema`), so it reads no row that it does not know. An unknown word
//! in a row is `corrupt`.

use ic_base::{Code, Diagnosis, DispatchId, Result, RollbackId, RunId, Seq, Timestamp, reversed_digits};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{LedgerRow, Snapshot, Transaction};
use serde_json::Value;

use crate::journal::choices;
use crate::journal::layer::{self, LayerName};

/// The key of a plan that names the dispatches whose work alone is undone, oldest first, with the work that they began.
pub const WORKS: &str = "works";

/// The key of a plan that names those of them which were chosen.
pub const CHOSEN: &str = "chosen";

/// The key of a plan that is true where the tree went back exactly, though only work was undone: no other work was done since.
pub const EXACT: &str = "exact";

/// The key of a plan that names the rollbacks of one dispatch which it lifts.
pub const REINSTATED: &str = "reinstated";

/// How rollbacks are referred to.
pub const REFERENT: Referent =
    Referent { table: "rollbacks", noun: "rollback", not_found: Code::RollbackNotFound, listed_by: "ic rollback list" };

ic_base::words! {
    /// How far a rollback is.
    pub enum RollbackStatus {
        /// Every step is done or skipped.
        Done = "done",
        /// A process executes it, or died while it did.
        InProgress = "in_progress",
        /// A step failed; it waits to be resumed.
        Stopped = "stopped",
        /// Aborted; what it had done was restored.
        Aborted = "aborted",
        /// It was done, and was itself undone later.
        Undone = "undone",
    }
}

impl RollbackStatus {
    /// Whether nothing is left to do about it.
    pub fn is_over(self) -> bool {
        match self {
            Self::InProgress | Self::Stopped => false,
            Self::Done | Self::Aborted | Self::Undone => true,
        }
    }

    /// Whether its effect on the run stands: it was neither undone nor aborted.
    pub fn stands(self) -> bool {
        match self {
            Self::InProgress | Self::Stopped | Self::Done => true,
            Self::Aborted | Self::Undone => false,
        }
    }
}

/// A row of `rollbacks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackRecord {
    /// Names it in commands and events.
    pub id: RollbackId,
    /// The event that recorded it: its place in the order of everything.
    pub seq: Seq,
    /// How far it is.
    pub status: RollbackStatus,
    /// The phase it went back to.
    pub to_phase: String,
    /// Whether what was done in that phase was rolled back too.
    pub include_target: bool,
    /// The cut: what was recorded after this event is rolled back.
    pub cut_seq: Seq,
    /// The run that it rolled back.
    pub run_id: RunId,
    /// The layers that it covers.
    pub layers: Vec<LayerName>,
    /// The phase it came from.
    pub from_phase: String,
    /// The run's epoch since.
    pub epoch: i64,
    /// The caller's reason; `None` where none was given, or it was redacted.
    pub reason: Option<String>,
    /// The hash of its plan, which `--expect-plan` compares.
    pub plan_hash: String,
    /// Its plan, as it was approved, with what was decided (`choices`).
    pub plan: Value,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it was done.
    pub finished_at: Option<Timestamp>,
}

impl RollbackRecord {
    /// The point that it went back to, by its reference; `None`: it went back to a phase.
    pub fn point(&self) -> Option<&str> {
        self.plan["point"].as_str()
    }

    /// The dispatches whose work alone was undone, oldest first, with the work that they began; empty: the run went back.
    pub fn works(&self) -> Vec<DispatchId> {
        self.dispatches(WORKS)
    }

    /// Those of [`RollbackRecord::works`] that were chosen: what they began went along.
    pub fn chosen(&self) -> Vec<DispatchId> {
        self.dispatches(CHOSEN)
    }

    /// Whether only the work of some dispatches was undone, and the run stayed where it was.
    pub fn is_of_works(&self) -> bool {
        self.plan[WORKS].is_array()
    }

    /// Whether the tree went back exactly, though only work was undone.
    pub fn is_exact(&self) -> bool {
        self.plan[EXACT] == true
    }

    /// The work that alone was undone, for people, as [`named_works`] says it; `None`: the run went back.
    pub fn alone(&self) -> Option<String> {
        self.is_of_works().then(|| named_works(&self.chosen()))
    }

    fn ids(&self, key: &str) -> impl Iterator<Item = String> {
        self.plan[key].as_array().into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned))
    }

    fn dispatches(&self, key: &str) -> Vec<DispatchId> {
        self.ids(key).map(DispatchId::from_ledger).collect()
    }

    /// The rollbacks of some dispatches alone that it lifted.
    pub fn reinstated(&self) -> Vec<RollbackId> {
        self.ids(REINSTATED).map(RollbackId::from_ledger).collect()
    }

    /// The ids in a list of its plan whose work it ended: `cancelled_dispatches` or `failed_agents`.
    pub fn cancelled(&self, list: &str) -> Vec<String> {
        let pairs = self.plan[list].as_array().into_iter().flatten();
        pairs.filter_map(|pair| pair[0].as_str().map(str::to_owned)).collect()
    }
}

/// Work that was chosen to be undone, for people: `dispatch:3f9a12c4`, or `dispatch:3f9a12c4 and 2 later ones`.
pub fn named_works(chosen: &[DispatchId]) -> String {
    chosen.first().map(|first| format!("dispatch:{}{}", first.short(), later_works(chosen))).unwrap_or_default()
}

/// What follows the first of the chosen works, for people: ` and 2 later ones`, or nothing.
pub fn later_works(chosen: &[DispatchId]) -> String {
    match chosen.len() {
        0 | 1 => String::new(),
        2 => " and a later one".to_owned(),
        n => format!(" and {} later ones", n - 1),
    }
}

const COLUMNS: &str = "id, seq, status, to_phase, include_target, cut_seq, run_id, layers, from_phase, epoch, reason, \
    plan_hash, plan, created_at, finished_at";

/// The rollbacks of a run, oldest first.
pub fn of_run(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<RollbackRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM rollbacks WHERE run_id = $1 ORDER BY seq");
    snapshot.query_all(&sql, &[&run_id.as_str()], from_row)
}

/// The rollbacks of all runs, oldest first.
pub fn all(snapshot: &Snapshot<'_>) -> Result<Vec<RollbackRecord>> {
    // `seq > 0` holds for every row. With it SQLite plans a search by the index, and without it a scan.
    snapshot.query_all(&format!("SELECT {COLUMNS} FROM rollbacks WHERE seq > 0 ORDER BY seq"), &[], from_row)
}

/// The newest rollbacks of all runs that are done and were not undone, newest first, at most `at_most` of them.
pub fn done(snapshot: &Snapshot<'_>, at_most: i64) -> Result<Vec<RollbackRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM rollbacks WHERE seq > 0 AND status = 'done' ORDER BY seq DESC LIMIT $1");
    snapshot.query_all(&sql, &[&at_most], from_row)
}

/// The rollbacks of all runs that are not finished, oldest first.
pub fn unfinished(snapshot: &Snapshot<'_>) -> Result<Vec<RollbackRecord>> {
    let sql =
        format!("SELECT {COLUMNS} FROM rollbacks WHERE seq > 0 AND status IN ('in_progress', 'stopped') ORDER BY seq");
    snapshot.query_all(&sql, &[], from_row)
}

/// The rollback of a run that is not finished, if there is one.
pub fn unfinished_of(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Option<RollbackRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM rollbacks WHERE run_id = $1 AND status IN ('in_progress', 'stopped') ORDER BY seq LIMIT 1"
    );
    snapshot.query_opt(&sql, &[&run_id.as_str()], from_row)
}

/// The newest rollback of a run.
pub fn newest_of(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Option<RollbackRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM rollbacks WHERE run_id = $1 ORDER BY seq DESC LIMIT 1");
    snapshot.query_opt(&sql, &[&run_id.as_str()], from_row)
}

/// The rollbacks of a run that were not undone and not aborted, oldest first.
pub fn standing_of(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<RollbackRecord>> {
    // As `stands` says of a status; each row that is left out need not be parsed.
    let sql = format!(
        "SELECT {COLUMNS} FROM rollbacks WHERE run_id = $1 AND status NOT IN ('undone', 'aborted') ORDER BY seq"
    );
    snapshot.query_all(&sql, &[&run_id.as_str()], from_row)
}

/// Whether no archive of rows is needed for a rollback that was begun before `oldest`: it was undone or aborted, and the step of the rows
/// was not skipped then.
pub fn needs_no_archive(snapshot: &Snapshot<'_>, id: &str, oldest: Timestamp) -> Result<bool> {
    // The caller has only the name of a file. An id that no rollback has finds no row, and the file stays.
    let found = snapshot.query_opt(
        "SELECT 1 FROM rollbacks WHERE id = $1 AND status IN ('undone', 'aborted') AND created_at < $2 \
         AND NOT EXISTS (SELECT 1 FROM rollback_steps WHERE rollback_id = rollbacks.id AND layer = 'data' AND state = 'skipped')",
        &[&id, &oldest.millis()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Errors: `rolling_back` while a rollback of the run is not finished, naming it.
pub fn require_finished(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<()> {
    let Some(rollback) = unfinished_of(snapshot, run_id)? else { return Ok(()) };
    Err(Diagnosis::new(
        Code::RollingBack,
        format!("The run {} is in the middle of the rollback {}.", run_id.short(), rollback.id.short()),
    )
    .hint(format!("finish it: ic rollback resume {} --yes", rollback.id.short()))
    .detail("run_id", run_id.as_str())
    .detail("rollback_id", rollback.id.as_str()))
}

/// The rollback with this full id. Errors: `rollback_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &RollbackId) -> Result<RollbackRecord> {
    let sql = format!("SELECT {COLUMNS} FROM rollbacks WHERE id = $1");
    snapshot
        .query_opt(&sql, &[&id.as_str()], from_row)?
        .ok_or_else(|| Diagnosis::new(Code::RollbackNotFound, format!("There is no rollback {id}.")))
}

/// The rollback that `text` names: an id, or the end of one.
///
/// Errors: `rollback_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<RollbackRecord> {
    reference::find(snapshot, REFERENT, COLUMNS, text, from_row)
}

/// The rollback that the payload of an event names.
pub fn named_in(payload: &str) -> Option<String> {
    // A payload of another program, or of another form, names no rollback.
    let payload: Value = serde_json::from_str(payload).ok()?;
    payload["rollback_id"].as_str().map(str::to_owned)
}

/// Records how far a rollback is.
pub fn set_status(tx: &Transaction<'_>, now: Timestamp, id: &RollbackId, status: RollbackStatus) -> Result<()> {
    // An undo keeps the time at which the rollback itself was done.
    let finished_at = (status == RollbackStatus::Done).then(|| now.millis());
    tx.execute_one(
        "UPDATE rollbacks SET status = $1, finished_at = coalesce($2, finished_at) WHERE id = $3",
        &[&status.as_str(), &finished_at, &id.as_str()],
    )
}

/// Records decisions that were made after a rollback began.
pub fn decide(tx: &Transaction<'_>, remembered: &RollbackRecord, choices: Value) -> Result<()> {
    // The hash is not made anew: it is that of the plan which was approved, and `--expect-plan` compares it.
    let mut plan = remembered.plan.clone();
    plan[choices::KEY] = choices;
    tx.execute_one("UPDATE rollbacks SET plan = $1 WHERE id = $2", &[&plan.to_string(), &remembered.id.as_str()])
}

fn from_row(row: &LedgerRow<'_>) -> Result<RollbackRecord> {
    Ok(RollbackRecord {
        id: RollbackId::from_ledger(row.get(0)?),
        seq: row.get(1)?,
        status: row.parse(2, "rollbacks", RollbackStatus::parse)?,
        to_phase: row.get(3)?,
        include_target: row.get(4)?,
        cut_seq: row.get(5)?,
        run_id: RunId::from_ledger(row.get(6)?),
        layers: row.parse(7, "rollbacks", layer::from_json)?,
        from_phase: row.get(8)?,
        epoch: row.get(9)?,
        reason: row.get(10)?,
        plan_hash: row.get(11)?,
        plan: row.parse(12, "rollbacks", |text| serde_json::from_str(text).ok())?,
        created_at: Timestamp(row.get(13)?),
        finished_at: row.get::<Option<i64>>(14)?.map(Timestamp),
    })
}

/// A rollback that is to be recorded.
#[derive(Debug, Clone)]
pub struct NewRollback<'a> {
    /// Made by the caller, so that events of the same transaction can name it.
    pub id: &'a RollbackId,
    /// The event that recorded it: its place in the order of everything.
    pub seq: Seq,
    /// Done as soon as its transaction is, or begun.
    pub status: RollbackStatus,
    /// The run that is rolled back.
    pub run_id: &'a RunId,
    /// The layers that it covers.
    pub layers: &'a [LayerName],
    /// The phase that the run is at.
    pub from_phase: &'a str,
    /// The phase that the run goes to.
    pub to_phase: &'a str,
    /// Whether what was done in that phase is covered too.
    pub include_target: bool,
    /// The cut: what was recorded after this event is rolled back.
    pub cut_seq: Seq,
    /// The run's epoch since.
    pub epoch: i64,
    /// The caller's reason; `None` where none was given.
    pub reason: Option<&'a str>,
    /// The hash of the plan, which `--expect-plan` compares.
    pub plan_hash: &'a str,
    /// The plan, with what was decided.
    pub plan: &'a Value,
}

/// Writes the row of a rollback; it has finished now if its status is `done`.
pub fn insert(tx: &Transaction<'_>, now: Timestamp, new: &NewRollback<'_>) -> Result<()> {
    let finished_at = (new.status == RollbackStatus::Done).then(|| now.millis());
    tx.execute_one(
        "INSERT INTO rollbacks (id, reversed_id, seq, run_id, status, layers, from_phase, to_phase, include_target, \
         cut_seq, epoch, reason, plan_hash, plan, created_at, finished_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &new.seq,
            &new.run_id.as_str(),
            &new.status.as_str(),
            &layer::to_json(new.layers),
            &new.from_phase,
            &new.to_phase,
            &new.include_target,
            &new.cut_seq,
            &new.epoch,
            &new.reason,
            &new.plan_hash,
            &new.plan.to_string(),
            &now.millis(),
            &finished_at,
        ],
    )
}

/// Takes the reason out of the rollback whose event this is, and what its steps said.
pub fn redact(tx: &Transaction<'_>, run_id: &RunId, seq: Seq) -> Result<()> {
    // The rollback is found by the event that recorded it, or by a later one of its own that has it as the subject.
    const NAMED: &str = "SELECT id FROM rollbacks WHERE run_id = $1 AND (seq = $2 OR id = \
        (SELECT subject_id FROM events WHERE seq = $2 AND (source = 'rollback' OR type = 'rollback')))";
    tx.execute(&format!("UPDATE rollbacks SET reason = NULL WHERE id IN ({NAMED})"), &[&run_id.as_str(), &seq])?;
    tx.execute(
        &format!("UPDATE rollback_steps SET error = NULL WHERE rollback_id IN ({NAMED})"),
        &[&run_id.as_str(), &seq],
    )
    .map(|_| ())
}
