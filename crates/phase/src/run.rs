//! The table `runs`: where each run is.

use std::path::PathBuf;

use ic_base::mask::mask;
use ic_base::{Code, Diagnosis, Result, RunId, Seq, Timestamp, reversed_digits};
use ic_events::{EventType, NewEvent};
use ic_store::reference::Referent;
use ic_store::{Row, Snapshot, Transaction, path_bytes};
use serde_json::json;

use crate::Chain;
use crate::gate::Gates;

mod closed;
mod list;
mod settings;
pub use closed::{close_for_rollback, fence, reopen, reopen_cancelled, settle_rollback, undo_rollback};
pub use list::{Filter, list};
pub use settings::{MAX_METADATA, Settings, redact_settings, set};

/// How runs are referred to.
pub const REFERENT: Referent =
    Referent { table: "runs", noun: "run", not_found: Code::RunNotFound, listed_by: "ic run list" };

ic_base::words! {
    /// The state of a run as a whole.
    pub enum RunStatus {
        /// It goes on.
        Active = "active",
        /// A rollback over several layers is under way.
        RollingBack = "rolling_back",
        /// It reached the end of its chain.
        Completed = "completed",
        /// It was called off.
        Cancelled = "cancelled",
        /// It was aborted as failed.
        Failed = "failed",
    }
}

/// One pass through a chain of phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The event that created it.
    pub seq: Seq,
    /// What it is for.
    pub goal: String,
    /// Its state as a whole.
    pub status: RunStatus,
    /// Where it is in its chain.
    pub phase: String,
    /// Its chain.
    pub chain: Chain,
    /// The project it belongs to, absolute.
    pub project_dir: PathBuf,
    /// 1 to 5.
    pub complexity: Option<i64>,
    /// Whether it advances by itself; if not, an advance pauses.
    pub auto_advance: bool,
    /// What must hold at its transitions.
    pub gates: Gates,
    /// The caller's own name for it.
    pub scope_id: Option<String>,
    /// The caller's own facts, a JSON object.
    pub metadata: String,
    /// How many times it was rolled back.
    pub epoch: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it reached the end of its chain.
    pub completed_at: Option<Timestamp>,
}

/// What a new run is made of.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What it is for.
    pub goal: String,
    /// Its chain.
    pub chain: Chain,
    /// The project it belongs to, absolute.
    pub project_dir: PathBuf,
    /// 1 to 5.
    pub complexity: Option<i64>,
    /// Whether it advances by itself.
    pub auto_advance: bool,
    /// What must hold at its transitions.
    pub gates: Gates,
    /// The caller's own name for it.
    pub scope_id: Option<String>,
    /// The caller's own facts, a JSON object.
    pub metadata: String,
}

impl Run {
    pub(crate) const COLUMNS: &'static str = "id, seq, goal, status, phase, phases, project_dir, complexity, \
        auto_advance, gates, scope_id, metadata, epoch, created_at, updated_at, completed_at";

    pub(crate) fn from_row(row: &Row<'_>) -> Result<Self> {
        let chain = row.parse(5, "runs", Chain::from_ledger)?;
        let gates = row.parse(9, "runs", |text| Gates::from_ledger(text, &chain))?;
        Ok(Self {
            id: RunId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            goal: row.get(2)?,
            status: row.parse(3, "runs", RunStatus::parse)?,
            phase: row.parse(4, "runs", |text| chain.contains(text).then(|| text.to_owned()))?,
            project_dir: row.path(6)?,
            complexity: row.get(7)?,
            auto_advance: row.get(8)?,
            scope_id: row.get(10)?,
            metadata: row.get(11)?,
            epoch: row.get(12)?,
            created_at: Timestamp(row.get(13)?),
            updated_at: Timestamp(row.get(14)?),
            completed_at: row.get::<Option<i64>>(15)?.map(Timestamp),
            chain,
            gates,
        })
    }

    /// The caller's own facts. Errors: `corrupt`.
    fn metadata(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        serde_json::from_str(&self.metadata).map_err(|e| {
            Diagnosis::new(Code::Corrupt, format!("The metadata of run {} is damaged: {e}.", self.id))
        })
    }

    /// Errors: `run_not_active` for a run that has ended, `rolling_back` for one in the middle of a rollback.
    pub fn require_active(&self) -> Result<()> {
        self.require_settled()?;
        match self.status {
            RunStatus::Active | RunStatus::RollingBack => Ok(()),
            RunStatus::Completed | RunStatus::Cancelled | RunStatus::Failed => {
                let hint = match self.status {
                    RunStatus::Completed => {
                        format!(
                            "to redo a part of it: ic run rollback {} --to-phase PHASE --yes",
                            self.id.short()
                        )
                    }
                    RunStatus::Cancelled => {
                        format!("to make it active again: ic run reopen {} --reason WHY", self.id.short())
                    }
                    _ => "create a new one: ic run create --goal TEXT".to_owned(),
                };
                Err(Diagnosis::new(
                    Code::RunNotActive,
                    format!("The run {} is {}.", self.id.short(), self.status.as_str()),
                )
                .hint(hint)
                .detail("run_id", self.id.as_str())
                .detail("status", self.status.as_str()))
            }
        }
    }

    /// Errors: `rolling_back` while a rollback over several layers is under way.
    pub fn require_settled(&self) -> Result<()> {
        if self.status != RunStatus::RollingBack {
            return Ok(());
        }
        Err(Diagnosis::new(
            Code::RollingBack,
            format!("The run {} is in the middle of a rollback.", self.id.short()),
        )
        .hint("finish what closed it: ic rollback list; ic workflow resume RUN --yes; ic compensation run RUN --yes")
        .detail("run_id", self.id.as_str()))
    }

    /// `phase` if it is given and in the chain, else where the run is. Errors: `unknown_phase`.
    pub fn phase_or_current(&self, phase: Option<&str>) -> Result<String> {
        match phase {
            Some(phase) => self.chain.require(phase).map(|_| phase.to_owned()),
            None => Ok(self.phase.clone()),
        }
    }
}

/// Creates a run at the first phase of its chain, with its event.
pub fn create(tx: &Transaction<'_>, now: Timestamp, id: RunId, new: NewRun) -> Result<Run> {
    let phase = new.chain.first().to_owned();
    let goal = mask(&new.goal).into_owned();
    let event = NewEvent {
        to: Some(&phase),
        payload: Some(json!({ "goal": goal, "phases": new.chain.names() })),
        ..NewEvent::of(&id, 0, EventType::RunCreated)
    };
    let seq = ic_events::append(tx, now, &event)?;
    let run = Run {
        id,
        seq,
        goal,
        status: RunStatus::Active,
        phase,
        chain: new.chain,
        project_dir: new.project_dir,
        complexity: new.complexity,
        auto_advance: new.auto_advance,
        gates: new.gates,
        scope_id: new.scope_id,
        metadata: new.metadata,
        epoch: 0,
        created_at: now,
        updated_at: now,
        completed_at: None,
    };
    insert(tx, &run)?;
    Ok(run)
}

fn insert(tx: &Transaction<'_>, run: &Run) -> Result<()> {
    tx.execute_one(
        "INSERT INTO runs (id, reversed_id, seq, goal, status, phase, phases, project_dir, complexity, auto_advance, \
         gates, scope_id, metadata, epoch, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        &[
            &run.id.as_str(),
            &reversed_digits(run.id.as_str()),
            &run.seq,
            &run.goal,
            &run.status.as_str(),
            &run.phase,
            &run.chain.to_json(),
            &path_bytes(&run.project_dir),
            &run.complexity,
            &run.auto_advance,
            &run.gates.to_json(),
            &run.scope_id,
            &run.metadata,
            &run.epoch,
            &run.created_at.millis(),
            &run.updated_at.millis(),
        ],
    )
}

/// The run with this full id. Errors: `run_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &RunId) -> Result<Run> {
    let sql = format!("SELECT {} FROM runs WHERE id = $1", Run::COLUMNS);
    snapshot
        .query_opt(&sql, &[&id.as_str()], Run::from_row)?
        .ok_or_else(|| Diagnosis::new(Code::RunNotFound, format!("There is no run {id}.")))
}

/// Moves the pointer forward, if the run still is where the caller read it.
///
/// Errors: `stale_phase` if another writer moved it; nothing is written.
pub fn advance_phase(
    tx: &Transaction<'_>,
    now: Timestamp,
    run: &Run,
    to: &str,
    completes: bool,
) -> Result<()> {
    let (status, completed_at) =
        if completes { (RunStatus::Completed, Some(now.millis())) } else { (run.status, None) };
    let moved = tx.execute(
        "UPDATE runs SET phase = $1, status = $2, completed_at = $3, updated_at = $4 \
         WHERE id = $5 AND phase = $6 AND epoch = $7",
        &[&to, &status.as_str(), &completed_at, &now.millis(), &run.id.as_str(), &run.phase, &run.epoch],
    )?;
    match moved {
        1 => Ok(()),
        _ => Err(Diagnosis::new(
            Code::StalePhase,
            format!("The run {} is no longer at {}@{}.", run.id.short(), run.phase, run.epoch),
        )),
    }
}

/// Takes the pointer back, whatever it was (seed 001: `RollbackPhase`, a direct UPDATE): the run is active at
/// `to`, one epoch later.
pub fn rollback_phase(tx: &Transaction<'_>, now: Timestamp, id: &RunId, to: &str) -> Result<()> {
    tx.execute_one(
        "UPDATE runs SET phase = $1, status = 'active', completed_at = NULL, epoch = epoch + 1, updated_at = $2 \
         WHERE id = $3",
        &[&to, &now.millis(), &id.as_str()],
    )
}

/// Calls a run off and returns it as it then is. Errors: `run_not_active`, `rolling_back`.
pub fn cancel(tx: &Transaction<'_>, now: Timestamp, run: &Run, reason: Option<&str>) -> Result<Run> {
    run.require_active()?;
    let event = NewEvent {
        from: Some(run.status.as_str()),
        to: Some(RunStatus::Cancelled.as_str()),
        reason,
        ..NewEvent::of(&run.id, run.epoch, EventType::RunCancelled)
    };
    ic_events::append(tx, now, &event)?;
    tx.execute_one(
        "UPDATE runs SET status = 'cancelled', updated_at = $1 WHERE id = $2",
        &[&now.millis(), &run.id.as_str()],
    )?;
    Ok(Run { status: RunStatus::Cancelled, updated_at: now, ..run.clone() })
}

/// Takes goal, metadata and scope out of the run that event `seq` created, if it created one.
pub fn redact(tx: &Transaction<'_>, seq: Seq) -> Result<()> {
    tx.execute(
        "UPDATE runs SET goal = '[redacted]', metadata = '{}', scope_id = NULL WHERE seq = $1",
        &[&seq],
    )
    .map(|_| ())
}
