//! The table `runs`: where each run is.

use std::path::PathBuf;

use ic_base::mask::mask;
use ic_base::{Code, Diagnosis, Result, RunId, Seq, Timestamp, reversed_digits};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::reference::Referent;
use ic_ledger::{Transaction, path_bytes};
use serde_json::json;

use crate::chain::Chain;
use crate::gate::Gates;

mod closure;
mod list;
mod row;
mod settings;
pub use closure::{
    close_for_rollback, fence, reopen, reopen_cancelled, reopen_completed, settle_rollback, undo_rollback,
};
pub use list::{PlaceRun, RunFilter, list, of_place, projects, search};
pub use row::{Run, RunStatus, get};
pub use settings::{MAX_METADATA, RunSettings, redact_settings, set};

/// How runs are referred to.
pub const REFERENT: Referent =
    Referent { table: "runs", noun: "run", not_found: Code::RunNotFound, listed_by: "ic run list" };

/// What a new run is made of.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What it is for.
    pub goal: String,
    /// The phases that it goes through, in order.
    pub chain: Chain,
    /// The project it belongs to, absolute.
    pub project_dir: PathBuf,
    /// How complex its work is, 1 to 5, as its creator judged.
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

/// Creates a run at the first phase of its chain, with its event.
pub fn create(tx: &Transaction<'_>, now: Timestamp, id: RunId, new: NewRun) -> Result<Run> {
    let phase = new.chain.first().to_owned();
    // Masked before the event is made, because its payload repeats the goal.
    let goal = mask(&new.goal).into_owned();
    let event = NewEvent {
        to: Some(&phase),
        payload: Some(json!({ "goal": goal, "phases": new.chain.names() })),
        ..NewEvent::of(&id, 0, EventType::RunCreated)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
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

/// Moves the pointer forward, if the run still is where the caller read it.
///
/// Errors: `stale_phase` if another writer moved it; nothing is written.
pub fn advance_phase(tx: &Transaction<'_>, now: Timestamp, run: &Run, to: &str, completes: bool) -> Result<()> {
    // The status is written with the phase, so that no reader sees a run at its end that is still active.
    let (status, completed_at) =
        if completes { (RunStatus::Completed, Some(now.millis())) } else { (run.status, None) };
    // The epoch is compared, too: a rollback may have taken the run away from this phase and back to it since the caller read it.
    let moved = tx.execute(
        "UPDATE runs SET phase = $1, status = $2, completed_at = $3, updated_at = $4 \
         WHERE id = $5 AND phase = $6 AND epoch = $7",
        &[&to, &status.as_str(), &completed_at, &now.millis(), &run.id.as_str(), &run.phase, &run.epoch],
    )?;
    // Not `execute_one`: no row is an expected outcome here, and the refusal must come before anything else is written.
    match moved {
        1 => Ok(()),
        _ => Err(Diagnosis::new(
            Code::StalePhase,
            format!("The run {} is no longer at {}@{}.", run.id.short(), run.phase, run.epoch),
        )),
    }
}

/// Moves the pointer back, whatever it was (seed 001: `RollbackPhase`, a direct UPDATE): the run is active at `to`, one epoch later.
pub fn rollback_phase(tx: &Transaction<'_>, now: Timestamp, id: &RunId, to: &str) -> Result<()> {
    // Unlike an advance it compares nothing: the rollback was planned in this transaction, so the run cannot have moved since.
    tx.execute_one(
        "UPDATE runs SET phase = $1, status = 'active', completed_at = NULL, epoch = epoch + 1, updated_at = $2 \
         WHERE id = $3",
        &[&to, &now.millis(), &id.as_str()],
    )
}

/// Cancels a run and returns it with its new status. Errors: `run_not_active`, `rolling_back`.
pub fn cancel(tx: &Transaction<'_>, now: Timestamp, run: &Run, reason: Option<&str>) -> Result<Run> {
    run.require_active()?;
    let event = NewEvent {
        from: Some(run.status.as_str()),
        to: Some(RunStatus::Cancelled.as_str()),
        reason,
        ..NewEvent::of(&run.id, run.epoch, EventType::RunCancelled)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "UPDATE runs SET status = 'cancelled', updated_at = $1 WHERE id = $2",
        &[&now.millis(), &run.id.as_str()],
    )?;
    Ok(Run { status: RunStatus::Cancelled, updated_at: now, ..run.clone() })
}

/// Takes goal, metadata and scope out of the run that event `seq` created, if it created one.
pub fn redact(tx: &Transaction<'_>, seq: Seq) -> Result<()> {
    tx.execute("UPDATE runs SET goal = '[redacted]', metadata = '{}', scope_id = NULL WHERE seq = $1", &[&seq])
        .map(|_| ())
}
