//! A row of `runs`.

use std::path::PathBuf;

use ic_base::{Code, Diagnosis, Result, RunId, Seq, Timestamp};
use ic_ledger::{LedgerRow, Snapshot};

use crate::chain::Chain;
use crate::gate::Gates;

ic_base::words! {
    /// The state of a run as a whole.
    pub enum RunStatus {
        /// It can advance and take on work.
        Active = "active",
        /// A rollback over several layers is under way.
        RollingBack = "rolling_back",
        /// It reached the end of its chain.
        Completed = "completed",
        /// It was cancelled by its user.
        Cancelled = "cancelled",
        /// It ended without reaching the end of its chain.
        Failed = "failed",
    }
}

/// One pass through a chain of phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Names it in commands and events.
    pub id: RunId,
    /// The event that created it.
    pub seq: Seq,
    /// What it is for.
    pub goal: String,
    /// Its state as a whole.
    pub status: RunStatus,
    /// Where it is in its chain.
    pub phase: String,
    /// The phases that it goes through, in order.
    pub chain: Chain,
    /// The project it belongs to, absolute.
    pub project_dir: PathBuf,
    /// How complex its work is, 1 to 5, as its creator judged; `None`: not said.
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

impl Run {
    pub(crate) const COLUMNS: &'static str = "id, seq, goal, status, phase, phases, project_dir, complexity, \
        auto_advance, gates, scope_id, metadata, epoch, created_at, updated_at, completed_at";

    pub(crate) fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        let chain = row.parse(5, "runs", Chain::from_ledger)?;
        // Gates are read after the chain, because they must fit it.
        let gates = row.parse(9, "runs", |text| Gates::from_ledger(text, &chain))?;
        Ok(Self {
            id: RunId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            goal: row.get(2)?,
            status: row.parse(3, "runs", RunStatus::parse)?,
            // A phase that is not in the chain is damage. It is found here, because the chain only says `None` about
            // such a phase.
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
    pub(super) fn metadata(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        serde_json::from_str(&self.metadata)
            .map_err(|e| Diagnosis::new(Code::Corrupt, format!("The metadata of run {} is damaged: {e}.", self.id)))
    }

    /// Errors: `run_not_active` for a run that has ended, `rolling_back` for one in the middle of a rollback.
    pub fn require_active(&self) -> Result<()> {
        self.require_settled()?;
        // `require_settled` has refused `rolling_back` already; the match names it so that a new status cannot be forgotten.
        match self.status {
            RunStatus::Active | RunStatus::RollingBack => Ok(()),
            RunStatus::Completed | RunStatus::Cancelled | RunStatus::Failed => {
                let hint = match self.status {
                    RunStatus::Completed => {
                        format!("to redo a part of it: ic run rollback {} --to-phase PHASE --yes", self.id.short())
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
        Err(Diagnosis::new(Code::RollingBack, format!("The run {} is in the middle of a rollback.", self.id.short()))
            .hint(
                "finish what closed it: ic rollback list; ic workflow resume RUN --yes; ic compensation run RUN --yes",
            )
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

/// The run with this full id. Errors: `run_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &RunId) -> Result<Run> {
    let sql = format!("SELECT {} FROM runs WHERE id = $1", Run::COLUMNS);
    snapshot
        .query_opt(&sql, &[&id.as_str()], Run::from_row)?
        .ok_or_else(|| Diagnosis::new(Code::RunNotFound, format!("There is no run {id}.")))
}
