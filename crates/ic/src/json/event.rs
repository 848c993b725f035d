//! Events, cursors and verification.

use ic_base::{RollbackId, RunId};
use ic_events::cursor::Cursor;
use ic_events::{Event, Report, hex};
use serde::Serialize;
use serde_json::value::RawValue;

/// An event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventJson<'e> {
    /// Its place in the total order, from 1, without gaps.
    seq: i64,
    run_id: Option<&'e str>,
    /// What kind of thing it is about; more kinds may come.
    source: &'e str,
    /// What happened; more kinds may come.
    kind: &'e str,
    subject_id: Option<&'e str>,
    /// The phase, status or id that it went from, as its source has it.
    from: Option<&'e str>,
    /// The phase, status or id that it went to.
    to: Option<&'e str>,
    /// The run's epoch when it happened; of a dispatch's event, the epoch that its work belongs to.
    epoch: Option<i64>,
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&ic_phase::gate::GateResult::WORDS))))]
    gate_result: Option<&'e str>,
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::or_null(&crate::json::words::tiers()))))]
    gate_tier: Option<&'e str>,
    reason: Option<&'e str>,
    #[cfg_attr(test, schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    payload: Option<&'e RawValue>,
    created_at: String,
    /// SHA-256 in hex; the hash before is part of it.
    hash: String,
    /// Reason and payload were removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
    /// The rollback in force that undid this advance (`run events`); left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rolled_back_by: Option<&'e str>,
}

impl<'e> EventJson<'e> {
    pub(crate) fn new(event: &'e Event, rolled_back_by: Option<&'e RollbackId>) -> Self {
        Self {
            seq: event.seq,
            run_id: event.run_id.as_ref().map(RunId::as_str),
            source: &event.source,
            kind: &event.event_type,
            subject_id: event.subject_id.as_deref(),
            from: event.from.as_deref(),
            to: event.to.as_deref(),
            epoch: event.epoch,
            gate_result: event.gate_result.as_deref(),
            gate_tier: event.gate_tier.as_deref(),
            reason: event.reason.as_deref(),
            payload: event.payload.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            created_at: event.created_at.to_string(),
            hash: hex(&event.hash),
            redacted: event.reason_hash.is_some() || event.payload_hash.is_some(),
            rolled_back_by: rolled_back_by.map(RollbackId::as_str),
        }
    }
}

/// How far a consumer has read (`events cursor`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CursorJson {
    name: String,
    /// The run it follows; null: all runs.
    run_id: Option<String>,
    /// The last event that it covers.
    seq: i64,
    updated_at: String,
}

impl From<&Cursor> for CursorJson {
    fn from(cursor: &Cursor) -> Self {
        Self {
            name: cursor.name.clone(),
            run_id: cursor.run_id.as_ref().map(ToString::to_string),
            seq: cursor.seq,
            updated_at: cursor.updated_at.to_string(),
        }
    }
}

/// Whether the record is what was written (`events verify`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VerifyJson {
    ok: bool,
    /// How many events were walked.
    event_count: i64,
    chain_head: HeadJson,
    /// The first event that is wrong.
    first_bad: Option<BadJson>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HeadJson {
    seq: i64,
    hash: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BadJson {
    seq: i64,
    problem: String,
}

impl From<&Report> for VerifyJson {
    fn from(report: &Report) -> Self {
        Self {
            ok: report.first_bad.is_none(),
            event_count: report.events,
            chain_head: HeadJson { seq: report.head.0, hash: hex(&report.head.1) },
            first_bad: report
                .first_bad
                .as_ref()
                .map(|(seq, problem)| BadJson { seq: *seq, problem: problem.clone() }),
        }
    }
}

/// A redaction (`events redact`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RedactedJson {
    /// The event whose texts were removed.
    pub(crate) seq: i64,
    /// The event that says so.
    pub(crate) redaction_seq: i64,
}
