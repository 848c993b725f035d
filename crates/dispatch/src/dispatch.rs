//! The table `dispatches`.

use std::time::Duration;

use ic_base::{Code, Diagnosis, DispatchId, Result, RunId, Timestamp, reversed_digits};
use ic_ledger::events::{EventType, NewEvent};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{Snapshot, Transaction, path_bytes};
use serde_json::json;

use crate::status::DispatchStatus;

mod ending;
mod list;
mod row;
pub use ending::{DispatchEnding, finish};
pub use list::{
    DispatchFilter, at_work_between, count_verdicts, descendants, first_named_since, has_ended_since, kin, list,
    may_write, of_run, running, search, unfinished, verdicts, with_parents,
};
pub(crate) use row::append_change;
pub use row::{Dispatch, DispatchWork, Heartbeat, Process, TokenCounts, find, get};

/// How dispatches are referred to.
pub const REFERENT: Referent = Referent {
    table: "dispatches",
    noun: "dispatch",
    not_found: Code::DispatchNotFound,
    listed_by: "ic dispatch list",
};

/// Hands work out: a pending dispatch in `phase` of a run, with its event.
pub fn create(
    tx: &Transaction<'_>,
    now: Timestamp,
    id: &DispatchId,
    run_id: &RunId,
    epoch: i64,
    phase: &str,
    work: &DispatchWork,
) -> Result<Dispatch> {
    let mut payload = json!({ "phase": phase, "name": work.name, "agent_type": work.agent_type });
    if let Some(parent) = &work.parent_id {
        payload["parent_id"] = json!(parent.as_str());
    }
    let event = NewEvent {
        subject_id: Some(id.as_str()),
        to: Some(DispatchStatus::Pending.as_str()),
        payload: Some(payload),
        ..NewEvent::of(run_id, epoch, EventType::DispatchCreated)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    // Bytes, because a path need not be UTF-8.
    let prompt_file = work.prompt_file.as_deref().map(path_bytes);
    tx.execute_one(
        "INSERT INTO dispatches (id, reversed_id, seq, run_id, phase, epoch, status, agent_type, name, model, \
         prompt_file, tokens_in, tokens_out, tokens_cache, created_at, parent_id) \
         VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, 0, 0, 0, $11, $12)",
        &[
            &id.as_str(),
            &reversed_digits(id.as_str()),
            &seq,
            &run_id.as_str(),
            &phase,
            &epoch,
            &work.agent_type,
            &work.name,
            &work.model,
            &prompt_file,
            &now.millis(),
            &work.parent_id.as_ref().map(DispatchId::as_str),
        ],
    )?;
    get(tx, id)
}

/// The dispatch with this id, or with an id that ends so. Errors: `dispatch_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<Dispatch> {
    reference::find(snapshot, REFERENT, Dispatch::COLUMNS, text, Dispatch::from_row)
}

/// Marks work as begun. Errors: `stale_dispatch`, `dispatch_running`, `dispatch_finished`.
pub fn start(tx: &Transaction<'_>, now: Timestamp, dispatch: &Dispatch, process: Option<&Process>) -> Result<Dispatch> {
    // This is checked before the status: work that a rollback cancelled has ended, too, and its worker has to learn of
    // the rollback.
    dispatch.require_current()?;
    dispatch.status.check_move_to(DispatchStatus::Running, dispatch.id.short())?;
    let (pid, start_time, boot_id) = Process::columns(process);
    let payload = pid.map(|pid| json!({ "pid": pid }));
    let to = DispatchStatus::Running;
    // The seq of the start decides on which side of a cut the work is, so the row keeps it.
    let seq = append_change(tx, now, dispatch, to, EventType::DispatchStarted, None, payload)?;
    tx.execute_one(
        "UPDATE dispatches SET status = 'running', pid = $1, pid_start_time = $2, pid_boot_id = $3, started_at = $4, \
         started_seq = $5 WHERE id = $6",
        &[&pid, &start_time, &boot_id, &now.millis(), &seq, &dispatch.id.as_str()],
    )?;
    get(tx, &dispatch.id)
}

/// Records the process that running work now is, or that it is none at the moment.
pub fn set_process(tx: &Transaction<'_>, id: &DispatchId, process: Option<&Process>) -> Result<()> {
    let (pid, start_time, boot_id) = Process::columns(process);
    // No row may match, and that is no error: work that has ended keeps the process that it had.
    tx.execute(
        "UPDATE dispatches SET pid = $1, pid_start_time = $2, pid_boot_id = $3 WHERE id = $4 AND status = 'running'",
        &[&pid, &start_time, &boot_id, &id.as_str()],
    )
    .map(|_| ())
}

/// Records that running work goes on, and is lost if it says nothing for `ttl` from now on (`None`: for as long as it may be silent already).
///
/// Errors: `stale_dispatch`, `dispatch_finished`; `invalid_value` for work that has not begun or was given no time.
pub fn beat(tx: &Transaction<'_>, now: Timestamp, dispatch: &Dispatch, ttl: Option<Duration>) -> Result<Dispatch> {
    dispatch.require_current()?;
    let id = dispatch.id.short();
    // Work that has ended is refused, so that a worker that lives on learns of it.
    match dispatch.status {
        DispatchStatus::Pending => {
            return Err(Diagnosis::new(Code::InvalidValue, format!("The dispatch {id} has not begun."))
                .hint(format!("begin it: ic dispatch start {id} --ttl DUR")));
        }
        DispatchStatus::Running => {}
        ended => ended.check_move_to(DispatchStatus::Running, id)?,
    }
    let Some(ttl) = ttl.or(dispatch.heartbeat.map(|known| known.ttl)) else {
        let message = format!("It is not known how long the dispatch {id} may be silent.");
        return Err(Diagnosis::new(Code::InvalidValue, message).hint(format!("say it: ic dispatch beat {id} --ttl 5m")));
    };
    set_heartbeat(tx, now, &dispatch.id, ttl)?;
    get(tx, &dispatch.id)
}

/// Records how long work may be silent from now on. No event tells it, because work says it dozens of times an hour.
pub fn set_heartbeat(tx: &Transaction<'_>, now: Timestamp, id: &DispatchId, ttl: Duration) -> Result<()> {
    let millis = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
    let due = now.millis().saturating_add(millis);
    tx.execute_one("UPDATE dispatches SET ttl_millis = $1, due_at = $2 WHERE id = $3", &[&millis, &due, &id.as_str()])
}

/// Records the tokens used so far; a later report replaces an earlier one. Accepted from rolled-back work too.
pub fn record_tokens(
    tx: &Transaction<'_>,
    now: Timestamp,
    dispatch: &Dispatch,
    tokens: TokenCounts,
) -> Result<Dispatch> {
    let late = dispatch.rolled_back_by.is_some();
    let event = NewEvent {
        subject_id: Some(dispatch.id.as_str()),
        payload: Some(json!({ "in": tokens.input, "out": tokens.output, "cache": tokens.cache, "late": late })),
        ..NewEvent::of(&dispatch.run_id, dispatch.epoch, EventType::DispatchTokens)
    };
    ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "UPDATE dispatches SET tokens_in = $1, tokens_out = $2, tokens_cache = $3 WHERE id = $4",
        &[&tokens.input, &tokens.output, &tokens.cache, &dispatch.id.as_str()],
    )?;
    get(tx, &dispatch.id)
}

/// Takes what an event of this type recorded out of the dispatch that `id` names: its names, or its summary and error.
pub fn redact(tx: &Transaction<'_>, id: &DispatchId, event_type: &str) -> Result<()> {
    let sql = match event_type {
        "dispatch_created" => {
            "UPDATE dispatches SET name = NULL, agent_type = NULL, model = NULL, prompt_file = NULL WHERE id = $1"
        }
        "dispatch_completed" | "dispatch_failed" | "dispatch_timed_out" | "dispatch_interrupted" => {
            "UPDATE dispatches SET summary = NULL, error = NULL WHERE id = $1"
        }
        // Events of other types leave no text in the row. The reason why work was cancelled is in its event alone.
        _ => return Ok(()),
    };
    tx.execute(sql, &[&id.as_str()]).map(|_| ())
}
