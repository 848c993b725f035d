//! Events, cursors and verification.

use ic_base::{RollbackId, RunId};
use ic_ledger::Actor;
use ic_ledger::events::cursor::Cursor;
use ic_ledger::events::{ChainReport, Event, hex};
use ic_session::places::own_name;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::text::{Cell, TextTable, counted, plain, style, styled};

shape! {
    /// The position of a consumer of events (`events cursor`).
    pub(crate) struct CursorJson from cursor: &Cursor {
        name: String = cursor.name.clone(),
        /// The run that it follows; null: all runs.
        run_id: Option<String> = cursor.run_id.as_ref().map(ToString::to_string),
        /// The clone whose cursor it is, as `MACHINE:DIRECTORY`; null in a ledger that one clone has for itself.
        seat: Option<String> = Some(cursor.seat.clone()).filter(|seat| !seat.is_empty()),
        /// The last event that it has handled.
        seq: i64 = cursor.seq,
        updated_at: String = cursor.updated_at.to_string(),
    }

    /// Whether the chain of events is intact (`events verify`).
    pub(crate) struct VerifyJson from report: &ChainReport {
        ok: bool = report.first_bad.is_none(),
        /// The number of events that were checked.
        event_count: i64 = report.events,
        chain_head: HeadJson = HeadJson { seq: report.head.0, hash: hex(&report.head.1) },
        /// The first event that does not verify; null if all do.
        first_bad: Option<BadJson> =
            report.first_bad.as_ref().map(|(seq, problem)| BadJson { seq: *seq, problem: problem.clone() }),
    }

    pub(crate) struct HeadJson {
        pub(crate) seq: i64,
        pub(crate) hash: String,
    }

    /// Who did something: a user in a clone, and for whom.
    pub(crate) struct ActorJson from actor: &Actor {
        user: String = actor.user.clone(),
        /// The clone in which it was done, as `MACHINE:DIRECTORY`.
        seat: String = actor.seat.clone(),
        /// The coding agent that did it or for whose session it was done; null: a person or a script did it.
        client: Option<String> = actor.session.as_ref().map(|(client, _)| client.clone()),
        /// What that client calls its session.
        client_session_id: Option<String> = actor.session.as_ref().map(|(_, id)| own_name(id).to_owned()),
        /// The dispatch on whose behalf it was done.
        dispatch_id: Option<String> = actor.dispatch.clone(),
    }

    struct BadJson {
        seq: i64,
        problem: String,
    }

    /// A redaction (`events redact`).
    pub(crate) struct RedactedJson {
        /// The event whose texts were removed.
        pub(crate) seq: i64,
        /// The event that says so.
        pub(crate) redaction_seq: i64,
    }
}

/// An event: one line of the record.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventJson<'e> {
    /// Its number in the order of all events: from 1, without gaps.
    seq: i64,
    run_id: Option<&'e str>,
    /// The kind of thing that it is about; more kinds may come.
    source: &'e str,
    /// What happened, as a word; more words may come.
    kind: &'e str,
    subject_id: Option<&'e str>,
    /// The phase, status or id before it, depending on its source.
    from: Option<&'e str>,
    /// The phase, status or id after it.
    to: Option<&'e str>,
    /// The run's epoch when it happened; for an event of a dispatch, the epoch of that work.
    epoch: Option<i64>,
    #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&ic_phase::gate::GateResult::WORDS))))]
    gate_result: Option<&'e str>,
    #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::or_null(&crate::views::tests::schema_words::tiers()))))]
    gate_tier: Option<&'e str>,
    reason: Option<&'e str>,
    #[cfg_attr(test, schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    payload: Option<&'e RawValue>,
    /// Who wrote it; null: a program that did not say.
    actor: Option<ActorJson>,
    created_at: String,
    /// Its SHA-256 in hex, over the hash of the event before as well.
    hash: String,
    /// Whether its reason and payload were removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
    /// The rollback in force that undid this advance (`run events`); left out if there is none.
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
            // A payload that is not JSON is left out: one event must not end the list.
            payload: event.payload.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            actor: event.actor.as_ref().map(ActorJson::from),
            created_at: event.created_at.to_string(),
            hash: hex(&event.hash),
            redacted: event.reason_hash.is_some() || event.payload_hash.is_some(),
            rolled_back_by: rolled_back_by.map(RollbackId::as_str),
        }
    }
}

/// One event on one line.
pub(crate) fn line(event: &Event, is_rolled_back: bool) -> String {
    let time = styled(style::DIM, &event.created_at.to_string());
    let subject = match (&event.subject_id, &event.run_id) {
        (Some(id), _) => short(id),
        (None, Some(run)) => run.short().to_owned(),
        (None, None) => String::new(),
    };
    let change = match (&event.from, &event.to) {
        (Some(from), Some(to)) => format!("  {} → {}", plain(from), plain(to)),
        (None, Some(to)) => format!("  {}", plain(to)),
        _ => String::new(),
    };
    let reason = event.reason.as_deref().map(|r| format!("  {}", plain(r))).unwrap_or_default();
    let mark = if is_rolled_back { styled(style::WARN, "  (rolled back)") } else { String::new() };
    let kind = styled(style_of(&event.event_type), &format!("{:<23}", event.event_type));
    let who = event
        .actor
        .as_ref()
        .map(|actor| styled(style::DIM, &format!("  by {}", plain(&actor.in_words()))))
        .unwrap_or_default();
    format!("{:>6}  {time}  {kind}  {subject:<8}{change}{mark}{who}{reason}\n", event.seq)
}

fn style_of(event_type: &str) -> anstyle::Style {
    match event_type {
        "advance" | "dispatch_completed" | "agent_completed" | "compensation_done" => style::GOOD,
        "rollback"
        | "dispatch_failed"
        | "dispatch_timed_out"
        | "dispatch_interrupted"
        | "dispatch_cancelled"
        | "agent_failed"
        | "run_cancelled"
        | "compensation_failed" => style::BAD,
        "block" | "pause" | "override" | "skip" | "redacted" | "compensation_skipped" => style::WARN,
        _ => style::NONE,
    }
}

fn short(id: &str) -> String {
    // The end, as in every short id: the beginning is its time, and alike for ids of one day.
    let start = id.char_indices().rev().nth(7).map_or(0, |(i, _)| i);
    plain(&id[start..])
}

/// Cursors, one a line.
pub(crate) fn cursors(cursors: &[Cursor]) -> String {
    let mut table = TextTable::new(&["CURSOR", "FOLLOWS", "AFTER EVENT", "MOVED"]);
    for c in cursors {
        table.row(vec![
            Cell::new(style::STRONG, &c.name),
            format!("{}{}", c.run_id.as_ref().map_or("all runs", |id| id.short()), of_seat(c)).as_str().into(),
            c.seq.to_string().into(),
            Cell::new(style::DIM, &c.updated_at.to_string()),
        ]);
    }
    table.render("No cursors.")
}

fn of_seat(cursor: &Cursor) -> String {
    if cursor.seat.is_empty() { String::new() } else { format!(" for {}", plain(&cursor.seat)) }
}

/// The result of a verification, in a sentence.
pub(crate) fn verified(report: &ChainReport) -> String {
    let events = usize::try_from(report.events).unwrap_or(0);
    match report.first_bad {
        None => format!(
            "{} {}; head {}:{}\n",
            styled(style::GOOD, "verified"),
            counted(events, "event"),
            report.head.0,
            hex(&report.head.1)
        ),
        Some(_) => format!("{} after {}\n", styled(style::BAD, "broken"), counted(events, "good event")),
    }
}
