//! Taking a secret out of an event, and out of the rows that repeat it.

use std::ops::ControlFlow;

use ic_base::{Code, CompensationId, DispatchId, Result, RewindId, RunId, Seq};
use ic_checkpoint::record;
use ic_dispatch::{code, dispatch};
use ic_effects::compensation;
use ic_ledger::Transaction;
use ic_ledger::events::Event;
use ic_phase::{run, skip};
use ic_runtrack::{agent, artifact};

use ic_kernel::Kernel;

/// Takes reason and payload out of event `seq` and out of the row that it recorded; returns the redaction's seq. `above` takes
/// them out of rows that are owned by crates above this one.
///
/// The file is rebuilt, so that no copy is left in it. Errors: `event_not_found`, `nothing_to_redact`, `stale_dispatch`; `busy` if another
/// process read the ledger past the timeout: then the event is redacted, and only the file is not wiped.
pub fn redact(
    kernel: &Kernel,
    seq: Seq,
    reason: &str,
    above: impl Fn(&Transaction<'_>, &Event) -> Result<()>,
) -> Result<Seq> {
    let redacted = kernel.write(|tx, now| {
        let event = ic_ledger::events::get(tx, seq)?;
        let redaction = ic_ledger::events::redact(tx, now, seq, reason)?;
        redact_rows(tx, &event)?;
        // The same reason would still be read in the events that were recorded with it.
        for copy in copies(tx, &event)? {
            ic_ledger::events::redact(tx, now, copy, reason)?;
        }
        above(tx, &event)?;
        Ok(redaction)
    });
    // A retry after a crash finds nothing left to redact, and the file still to be wiped.
    let nothing_left = redacted.as_ref().is_err_and(|error| error.code() == Code::NothingToRedact);
    if redacted.is_ok() || nothing_left {
        kernel.ledger.wipe()?;
    }
    redacted
}

/// The events that repeat the reason of a rollback or of a run's cancelling: those of the work that it cancelled. They are redacted along
/// with it.
fn copies(tx: &Transaction<'_>, event: &Event) -> Result<Vec<Seq>> {
    match (event.event_type.as_str(), &event.run_id, &event.subject_id, &event.reason) {
        ("rollback" | "rollback_begun", Some(run), Some(id), Some(_)) => copies_of(tx, event, run, |payload| {
            payload.and_then(ic_kernel::journal::table::named_in).as_ref() == Some(id)
        }),
        // A rollback names itself in the payload; a cancelled run has none after it until it is reopened.
        ("run_cancelled", Some(run), _, Some(_)) => copies_of(tx, event, run, |payload| payload.is_none()),
        _ => Ok(Vec::new()),
    }
}

fn copies_of(
    tx: &Transaction<'_>,
    event: &Event,
    run: &RunId,
    belongs: impl Fn(Option<&str>) -> bool,
) -> Result<Vec<Seq>> {
    let mut copies = Vec::new();
    ic_ledger::events::each_since(tx, Some(run), event.seq, i64::MAX, |other| {
        let repeats = other.event_type == "dispatch_cancelled" && other.reason == event.reason;
        if repeats && belongs(other.payload.as_deref()) {
            copies.push(other.seq);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(copies)
}

/// Takes what the event recorded out of the row that repeats it.
fn redact_rows(tx: &Transaction<'_>, event: &Event) -> Result<()> {
    // Each owner looks for a row that this very event recorded. At most one has it, and the others change nothing.
    run::redact(tx, event.seq)?;
    skip::redact(tx, event.seq)?;
    record::redact(tx, event.seq)?;
    if let Some(run_id) = &event.run_id {
        ic_kernel::journal::table::redact(tx, run_id, event.seq)?;
        agent::redact(tx, run_id, event.seq)?;
        artifact::redact(tx, run_id, event.seq)?;
        code::redact(tx, run_id, event.seq)?;
        if let Some(merged) = merged_settings(event) {
            run::redact_settings(tx, run_id, &merged)?;
        }
    }
    match (&event.subject_id, event.source.as_str()) {
        (Some(id), "dispatch") => {
            let id = DispatchId::from_ledger(id.clone());
            // Calls record no events of their own. What they were asked to do goes with the work that they belong to.
            if event.event_type == "dispatch_created" {
                ic_session::call::redact(tx, &id)?;
            }
            dispatch::redact(tx, &id, &event.event_type)
        }
        (Some(id), "compensation") => {
            let id = CompensationId::from_ledger(id.clone());
            match event.event_type.as_str() {
                // This looks for the compensation: a step that is resumed arms its row anew, and the row then has the number of that event.
                "compensation_registered" | "compensation_armed" => compensation::redact(tx, &id),
                _ => compensation::redact_error(tx, &id),
            }
        }
        (Some(id), "rewind") => ic_rewind::journal::redact(tx, &RewindId::from_ledger(id.clone())),
        _ => Ok(()),
    }
}

/// The metadata that a `run_set` event merged into its run.
fn merged_settings(event: &Event) -> Option<serde_json::Map<String, serde_json::Value>> {
    let payload: serde_json::Value = serde_json::from_str(event.payload.as_deref()?).ok()?;
    match payload.get("metadata_merge")? {
        serde_json::Value::Object(merged) if event.event_type == "run_set" => Some(merged.clone()),
        _ => None,
    }
}
