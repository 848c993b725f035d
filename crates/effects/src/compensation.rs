//! The table `compensations`: what undoes the outside effects of a run, and how far that is.
//!
//! ```text
//!   registered ──▶ armed ──▶ running ──▶ done
//!                    ▲         │  ▲
//!                    │         ▼  │ tried again, or its process died
//!                    │        failed
//!                    │         │
//!                    └── skipped ◀── armed, running or failed: left, by decision, until the rollback that asked for it ends
//! ```
//!
//! Armed before its effect is made, in the transaction that begins the step: a death between the two leaves one undo too many, never one
//! too few. So an undo must be able to find nothing to do.
//!
//! That the outcome of an undo is not known is a column of its own, `outcome_unknown`, because a redaction empties the error.

mod redact;
mod rollback_marks;
mod state;

use std::collections::BTreeMap;

use ic_base::mask::mask_optional;
use ic_base::{
    Code, CompensationId, Diagnosis, DispatchId, Result, RollbackId, RunId, Seq, Timestamp, reversed_digits,
};
use ic_ledger::events::{EventType, Hash, NewEvent};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{LedgerRow, Snapshot, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::action::EffectAction;
use crate::order::StartedStep;
use ic_dispatch::process::ProcessIdentity;

pub use redact::{redact, redact_error};
pub use rollback_marks::{arm_again, mark, mark_left, mark_rolled_back, taken_back, unmark};
pub use state::{CompensationEnd, CompensationState};
use state::{CompensationEvent, next};

/// How compensations are referred to.
pub const REFERENT: Referent = Referent {
    table: "compensations",
    noun: "compensation",
    not_found: Code::CompensationNotFound,
    listed_by: "ic compensation list RUN",
};

ic_base::words! {
    /// How a step ended.
    pub enum StepEnd {
        /// The step did what it was to do.
        Succeeded = "succeeded",
        /// The step failed by itself.
        Failed = "failed",
    }
}

/// A row of `compensations`: how one effect of a run is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensation {
    /// Its id: the idempotency key of its effect and of its undo.
    pub id: CompensationId,
    /// The event that registered it.
    pub seq: Seq,
    /// The run whose effect it undoes.
    pub run_id: RunId,
    /// The dispatch whose work makes the effect; `None` outside of one.
    pub dispatch_id: Option<DispatchId>,
    /// The step that makes the effect.
    pub step: String,
    /// The steps that this one depends on.
    pub needs: Vec<String>,
    /// The phase it belongs to.
    pub phase: String,
    /// The run's epoch when it was registered.
    pub epoch: i64,
    /// When its effect was begun, among those of the run: 1, 2, ...
    pub ord: i64,
    /// What is done to undo the effect.
    pub action: EffectAction,
    /// What it does, for people; `None` where the action says enough.
    pub description: Option<String>,
    /// How far it is.
    pub state: CompensationState,
    /// How the step ended, if that is known.
    pub step_ended: Option<StepEnd>,
    /// What the step said about what it made.
    pub outputs: BTreeMap<String, String>,
    /// How often its undo was begun.
    pub attempts: i64,
    /// Why the last attempt failed, or why it was skipped.
    pub last_error: Option<String>,
    /// Whether it is not known how far the last undo came, because its process died. A redaction keeps it.
    pub outcome_unknown: bool,
    /// The process of the undo that runs now; `None` where none is on record.
    pub child: Option<ProcessIdentity>,
    /// The rollback that it was part of.
    pub rolled_back_by: Option<RollbackId>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When something of it changed last.
    pub updated_at: Timestamp,
}

/// What a new compensation is made of.
#[derive(Debug, Clone)]
pub struct NewCompensation<'a> {
    /// Made by the caller: the idempotency key of the effect.
    pub id: &'a CompensationId,
    /// Its run and the run's epoch.
    pub run: (&'a RunId, i64),
    /// The work that makes the effect.
    pub dispatch_id: Option<&'a DispatchId>,
    /// The step that makes the effect.
    pub step: &'a str,
    /// The steps that it depends on.
    pub needs: &'a [String],
    /// The phase it belongs to.
    pub phase: &'a str,
    /// What is done to undo the effect.
    pub action: &'a EffectAction,
    /// What it does, for people; masked when it is written.
    pub description: Option<&'a str>,
}

impl Compensation {
    /// Whether it is done and only restored files: a restore of the tree to before it makes the effect again.
    pub fn goes_with_tree(&self) -> bool {
        self.state == CompensationState::Done && matches!(self.action, EffectAction::RestoreFiles { .. })
    }

    const COLUMNS: &'static str = "id, seq, run_id, dispatch_id, step, needs, phase, epoch, ord, args, description, \
        state, step_ended, outputs, attempts, last_error, child, rolled_back_by, created_at, outcome_unknown, \
        updated_at";

    fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        // A null is not a text that could be parsed, so it is asked about first.
        let step_ended = match row.get::<Option<String>>(12)? {
            Some(_) => Some(row.parse(12, "compensations", StepEnd::parse)?),
            None => None,
        };
        Ok(Self {
            id: CompensationId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            run_id: RunId::from_ledger(row.get(2)?),
            dispatch_id: row.get::<Option<String>>(3)?.map(DispatchId::from_ledger),
            step: row.get(4)?,
            needs: row.parse(5, "compensations", from_text)?,
            phase: row.get(6)?,
            epoch: row.get(7)?,
            ord: row.get(8)?,
            action: row.parse(9, "compensations", from_text)?,
            description: row.get(10)?,
            state: row.parse(11, "compensations", CompensationState::parse)?,
            step_ended,
            outputs: optional(row, 13)?.unwrap_or_default(),
            attempts: row.get(14)?,
            last_error: row.get(15)?,
            child: optional(row, 16)?,
            rolled_back_by: row.get::<Option<String>>(17)?.map(RollbackId::from_ledger),
            created_at: Timestamp(row.get(18)?),
            outcome_unknown: row.get(19)?,
            updated_at: Timestamp(row.get(20)?),
        })
    }

    /// Whether it is not known if an effect was undone, wholly or in part.
    pub fn is_cut_off(&self) -> bool {
        self.state == CompensationState::Failed && self.outcome_unknown
    }

    /// Its step, as the pure functions of [`crate::order`] see it.
    pub fn started(&self) -> StartedStep {
        StartedStep {
            id: self.id.as_str().to_owned(),
            name: self.step.clone(),
            needs: self.needs.clone(),
            pivot: matches!(self.action, EffectAction::Pivot { .. }),
            // Where the end is not known, because the step was declared by hand or lost in a crash, it may have succeeded. A pivot that may
            // have succeeded must hold.
            succeeded: self.step_ended != Some(StepEnd::Failed),
        }
    }

    fn event(&self, event_type: EventType, to: CompensationState) -> NewEvent<'_> {
        NewEvent {
            subject_id: Some(self.id.as_str()),
            from: Some(self.state.as_str()),
            to: Some(to.as_str()),
            ..NewEvent::of(&self.run_id, self.epoch, event_type)
        }
    }
}

fn from_text<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn optional<T: DeserializeOwned>(row: &LedgerRow<'_>, index: usize) -> Result<Option<T>> {
    match row.get::<Option<String>>(index)? {
        Some(_) => row.parse(index, "compensations", from_text).map(Some),
        None => Ok(None),
    }
}

fn to_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("A compensation cannot be written: {e}.")))
}

/// Registers a compensation and arms it: its effect is about to be made, after this transaction.
pub fn arm(tx: &Transaction<'_>, now: Timestamp, new: &NewCompensation<'_>) -> Result<Compensation> {
    let (run_id, epoch) = new.run;
    let event = NewEvent {
        subject_id: Some(new.id.as_str()),
        to: Some(CompensationState::Registered.as_str()),
        payload: Some(json!({ "step": new.step, "phase": new.phase, "kind": new.action.kind() })),
        ..NewEvent::of(run_id, epoch, EventType::CompensationRegistered)
    };
    // There are two events and one row: what is declared is armed with the same commit, so no row stays `registered`.
    let seq = ic_ledger::events::append(tx, now, &event)?;
    let event = NewEvent {
        subject_id: Some(new.id.as_str()),
        from: Some(CompensationState::Registered.as_str()),
        to: Some(CompensationState::Armed.as_str()),
        ..NewEvent::of(run_id, epoch, EventType::CompensationArmed)
    };
    ic_ledger::events::append(tx, now, &event)?;
    // The number is chosen by the statement itself: under the writers' lock, no other compensation gets it.
    tx.execute_one(
        "INSERT INTO compensations (id, reversed_id, seq, run_id, dispatch_id, step, needs, phase, epoch, ord, kind, \
         args, description, state, attempts, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
         (SELECT coalesce(max(ord), 0) + 1 FROM compensations WHERE run_id = $4), $10, $11, $12, 'armed', 0, $13, $13)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &run_id.as_str(),
            &new.dispatch_id.map(DispatchId::as_str),
            &new.step,
            &to_text(&new.needs)?,
            &new.phase,
            &epoch,
            &new.action.kind(),
            &to_text(&new.action.masked())?,
            &mask_optional(new.description).as_deref(),
            &now.millis(),
        ],
    )?;
    get(tx, new.id)
}

/// The compensation with this full id. Errors: `compensation_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &CompensationId) -> Result<Compensation> {
    let sql = format!("SELECT {} FROM compensations WHERE id = $1", Compensation::COLUMNS);
    snapshot
        .query_opt(&sql, &[&id.as_str()], Compensation::from_row)?
        .ok_or_else(|| Diagnosis::new(Code::CompensationNotFound, format!("There is no compensation {id}.")))
}

/// The compensation that `text` names: an id, or the end of one.
///
/// Errors: `compensation_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<Compensation> {
    reference::find(snapshot, REFERENT, Compensation::COLUMNS, text, Compensation::from_row)
}

/// The compensations of a run, in the order in which their effects were begun.
pub fn list(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<Compensation>> {
    let sql = format!("SELECT {} FROM compensations WHERE run_id = $1 ORDER BY ord", Compensation::COLUMNS);
    snapshot.query_all(&sql, &[&run.as_str()], Compensation::from_row)
}

/// Records that the step begins again, as the work of this dispatch. From now on the effect belongs to that dispatch, and its end is not
/// known. A failed undo was of the earlier effect, and asks for nothing more.
pub fn begin_step_again(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &CompensationId,
    dispatch: &DispatchId,
) -> Result<()> {
    let one = get(tx, id)?;
    let state = match one.state {
        CompensationState::Failed => next(one.state, CompensationEvent::ArmedAgain)?,
        state => state,
    };
    // With the new `seq`, a rollback to a point between the two attempts covers the effect, which is made again.
    let event = one.event(EventType::CompensationArmed, state);
    let seq = ic_ledger::events::append(tx, now, &NewEvent { payload: Some(json!({ "step": one.step })), ..event })?;
    // The error of a failed undo goes with its state. $4: whether the state stays; a bool is bound as 0 or 1.
    tx.execute_one(
        "UPDATE compensations SET seq = $1, dispatch_id = $2, state = $3, step_ended = NULL, \
         last_error = CASE WHEN $4 = 1 THEN last_error END, updated_at = $5 WHERE id = $6",
        &[&seq, &dispatch.as_str(), &state.as_str(), &(state == one.state), &now.millis(), &id.as_str()],
    )
}

/// Records how the step ended (`None`: it was ended in the middle, and its end is not known), what it said about what it made, and what is
/// known now about the undo.
pub fn end_step(
    tx: &Transaction<'_>,
    now: Timestamp,
    compensation: &Compensation,
    end: Option<StepEnd>,
    outputs: &BTreeMap<String, String>,
    action: &EffectAction,
) -> Result<()> {
    tx.execute_one(
        "UPDATE compensations SET step_ended = $1, outputs = $2, args = $3, updated_at = $4 WHERE id = $5",
        &[&end.map(StepEnd::as_str), &to_text(outputs)?, &to_text(action)?, &now.millis(), &compensation.id.as_str()],
    )
}

/// Records that an attempt to undo begins.
pub fn begin(tx: &Transaction<'_>, now: Timestamp, compensation: &Compensation) -> Result<Compensation> {
    // Read again, because the caller's copy is from before this transaction.
    let from = get(tx, &compensation.id)?.state;
    let state = next(from, CompensationEvent::Begins)?;
    let event = NewEvent {
        payload: Some(json!({ "attempt": compensation.attempts + 1 })),
        ..compensation.event(EventType::CompensationStarted, state)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "UPDATE compensations SET state = $1, attempts = attempts + 1, child = NULL, outcome_unknown = 0, updated_at = $2 \
         WHERE id = $3 AND state = $4",
        &[&state.as_str(), &now.millis(), &compensation.id.as_str(), &from.as_str()],
    )?;
    get(tx, &compensation.id)
}

/// Records the process of the attempt under way, before it does anything.
pub fn record_child(tx: &Transaction<'_>, id: &CompensationId, child: &ProcessIdentity) -> Result<()> {
    tx.execute_one(
        "UPDATE compensations SET child = $1 WHERE id = $2 AND state = 'running'",
        &[&to_text(child)?, &id.as_str()],
    )
}

/// Records how the present attempt ended, or that nothing is done about the effect.
pub fn finish(
    tx: &Transaction<'_>,
    now: Timestamp,
    compensation: &Compensation,
    end: CompensationEnd<'_>,
) -> Result<Compensation> {
    let event_type = match end {
        CompensationEnd::Done => EventType::CompensationDone,
        CompensationEnd::Failed(_) | CompensationEnd::CutOff => EventType::CompensationFailed,
        CompensationEnd::Skipped(_) => EventType::CompensationSkipped,
    };
    let from = get(tx, &compensation.id)?.state;
    let state = next(from, CompensationEvent::Ends(end))?;
    let event = NewEvent {
        reason: end.error(),
        payload: Some(json!({ "attempts": compensation.attempts, "step": compensation.step })),
        ..compensation.event(event_type, state)
    };
    ic_ledger::events::append(tx, now, &event)?;
    let error = mask_optional(end.error());
    tx.execute_one(
        "UPDATE compensations SET state = $1, last_error = $2, outcome_unknown = $3, child = NULL, updated_at = $4 \
         WHERE id = $5 AND state = $6",
        &[
            &state.as_str(),
            &error.as_deref(),
            &(end == CompensationEnd::CutOff),
            &now.millis(),
            &compensation.id.as_str(),
            &from.as_str(),
        ],
    )?;
    get(tx, &compensation.id)
}

/// The contents that compensations need.
pub fn contents(snapshot: &Snapshot<'_>) -> Result<Vec<Hash>> {
    // Rows in every state count: an effect that is done, or was left, can be armed again. With `seq > 0` SQLite searches an index.
    let sql = format!("SELECT {} FROM compensations WHERE kind = 'file' AND seq > 0", Compensation::COLUMNS);
    let all = snapshot.query_all(&sql, &[], Compensation::from_row)?;
    Ok(all.iter().flat_map(|compensation| compensation.action.contents()).collect())
}
