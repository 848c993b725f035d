use std::ops::ControlFlow;

use crate::Ledger;
use ic_base::{Code, Label, RunId, Timestamp};
use serde_json::json;

use crate::events::cursor::CursorKey;
use crate::events::{
    EventType, ExpectedHead, NewEvent, append, before_newest, cursor, each_since, head, redact, verify,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn run() -> RunId {
    RunId::from_ledger("run-a".to_owned())
}

fn ledger_with(n: usize) -> Ledger {
    let ledger = Ledger::in_memory().unwrap();
    let run = run();
    for i in 0..n {
        ledger
            .write(|tx| {
                let mut event = NewEvent::of(&run, 0, EventType::Advance);
                event.reason = Some("because");
                event.payload = Some(json!({ "i": i }));
                append(tx, NOW, &event)
            })
            .unwrap();
    }
    ledger
}

/// What a person with the file and a shell can do.
fn tamper(ledger: &Ledger, sql: &str) -> ic_base::Result<usize> {
    ledger.write(|tx| tx.execute(sql, &[]))
}

#[test]
fn seq_has_no_gaps_and_the_chain_verifies() {
    let ledger = ledger_with(5);
    let report = ledger.read(|s| verify(s, None)).unwrap();
    assert_eq!((report.events, report.head.0, report.first_bad), (5, 5, None));
}

#[test]
fn the_database_refuses_to_change_or_delete_events() {
    let ledger = ledger_with(3);
    for sql in [
        "DELETE FROM events WHERE seq = 2",
        "UPDATE events SET to_state = 'x' WHERE seq = 2",
        "UPDATE events SET reason = 'other' WHERE seq = 2",
        "UPDATE events SET reason = NULL WHERE seq = 2",
        "UPDATE events SET seq = 9 WHERE seq = 2",
        "INSERT OR REPLACE INTO events (seq, source, type, created_at, prev_hash, hash) VALUES (2, 'run', 'x', 1, x'00', x'00')",
        "INSERT INTO events (seq, source, type, created_at, prev_hash, hash) VALUES (9, 'run', 'x', 1, x'00', x'00')",
        "DELETE FROM event_head",
    ] {
        assert!(tamper(&ledger, sql).is_err(), "{sql}");
    }
    assert_eq!(ledger.read(|s| verify(s, None)).unwrap().first_bad, None);
}

#[test]
fn what_was_changed_behind_the_triggers_is_named() {
    for (sql, seq) in [
        ("UPDATE events SET reason = 'other' WHERE seq = 3", 3),
        ("UPDATE events SET payload = NULL WHERE seq = 1", 1),
        ("UPDATE events SET epoch = 7 WHERE seq = 4", 4),
        ("UPDATE events SET created_at = created_at + 1 WHERE seq = 2", 2),
        ("DELETE FROM events WHERE seq = 3", 3),
        ("DELETE FROM events WHERE seq > 3", 4),
        ("UPDATE event_head SET seq = 4", 6),
    ] {
        let ledger = ledger_with(5);
        tamper(&ledger, "DROP TRIGGER events_are_not_changed").unwrap();
        tamper(&ledger, "DROP TRIGGER events_are_not_deleted").unwrap();
        tamper(&ledger, sql).unwrap();
        let report = ledger.read(|s| verify(s, None)).unwrap();
        assert_eq!(report.first_bad.map(|(seq, _)| seq), Some(seq), "{sql}");
    }
}

#[test]
fn a_truncated_tail_is_seen_with_a_head_kept_elsewhere() {
    let ledger = ledger_with(5);
    let (seq, hash) = ledger.read(head).unwrap();
    let fourth = ledger.read(|s| crate::events::get(s, 4)).unwrap().hash;
    tamper(&ledger, "DROP TRIGGER events_are_not_deleted").unwrap();
    tamper(&ledger, "DELETE FROM events WHERE seq = 5").unwrap();
    ledger.write(|tx| tx.execute("UPDATE event_head SET seq = 4, hash = $1", &[&fourth])).unwrap();
    assert_eq!(ledger.read(|s| verify(s, None)).unwrap().first_bad, None);
    let expected = Some(ExpectedHead { seq, hash });
    assert_eq!(ledger.read(|s| verify(s, expected)).unwrap().first_bad.map(|b| b.0), Some(5));
    let wrong = Some(ExpectedHead { seq: 2, hash });
    assert_eq!(ledger.read(|s| verify(s, wrong)).unwrap().first_bad.map(|b| b.0), Some(2));
}

#[test]
fn a_redaction_is_visible_and_keeps_the_chain() {
    let ledger = ledger_with(3);
    let seq = ledger.write(|tx| redact(tx, NOW, 2, "a token")).unwrap();
    assert_eq!(seq, 4);
    let event = ledger.read(|s| crate::events::get(s, 2)).unwrap();
    assert_eq!((event.reason, event.payload), (None, None));
    assert_eq!(ledger.read(|s| verify(s, None)).unwrap().first_bad, None);
    let again = ledger.write(|tx| redact(tx, NOW, 2, "a token")).unwrap_err();
    assert_eq!(again.code(), Code::NothingToRedact);
    let unknown = ledger.write(|tx| redact(tx, NOW, 99, "x")).unwrap_err();
    assert_eq!(unknown.code(), Code::EventNotFound);
}

#[test]
fn a_text_taken_out_without_a_redaction_is_named() {
    let ledger = ledger_with(3);
    let hash = crate::events::chain::hash_of_text("because");
    ledger.write(|tx| tx.execute("UPDATE events SET reason = NULL, reason_hash = $1 WHERE seq = 2", &[&hash])).unwrap();
    let report = ledger.read(|s| verify(s, None)).unwrap();
    assert_eq!(report.first_bad.map(|b| b.0), Some(2));
}

#[test]
fn newest_and_since_are_oldest_first() {
    let ledger = ledger_with(6);
    let before = |run: Option<&RunId>, limit| ledger.read(|s| before_newest(s, run, limit)).unwrap();
    assert_eq!((before(None, 2), before(Some(&run()), 2), before(None, 6), before(None, 100)), (4, 4, 0, 0));
    assert_eq!(before(Some(&RunId::from_ledger("run-b".to_owned())), 2), 0);
    let mut found = Vec::new();
    ledger
        .read(|s| {
            each_since(s, Some(&run()), 2, 3, |e| {
                found.push(e.seq);
                Ok(ControlFlow::Continue(()))
            })
        })
        .unwrap();
    assert_eq!(found, [3, 4, 5]);
}

fn key<'a>(name: &'a Label, run_id: Option<&'a RunId>) -> CursorKey<'a> {
    CursorKey { name, seat: "", run_id }
}

#[test]
fn cursors_only_move_forward_until_they_are_reset() {
    let ledger = ledger_with(3);
    let name = Label::parse("cursor", "mine").unwrap();
    let at = |run: Option<&RunId>| ledger.read(|s| cursor::position(s, key(&name, run))).unwrap();
    assert_eq!(at(None), 0);
    for seq in [2, 1] {
        ledger.write(|tx| cursor::advance_to(tx, NOW, key(&name, None), seq)).unwrap();
    }
    assert_eq!((at(None), at(Some(&run()))), (2, 0));
    let reset = ledger.write(|tx| cursor::reset(tx, NOW, &name, "")).unwrap();
    assert_eq!((reset.len(), at(None)), (1, 0));
    let other = Label::parse("cursor", "other").unwrap();
    assert!(ledger.write(|tx| cursor::reset(tx, NOW, &other, "")).is_err());
}

#[test]
fn the_views_show_events_under_the_names_of_the_seed() {
    let ledger = ledger_with(1);
    let run = run();
    ledger
        .write(|tx| {
            let mut event = NewEvent::of(&run, 3, EventType::DispatchCancelled);
            event.subject_id = Some("dispatch-a");
            event.from = Some("running");
            event.to = Some("cancelled");
            append(tx, NOW, &event)
        })
        .unwrap();
    let phase: Vec<String> =
        ledger.read(|s| s.query_all("SELECT event_type FROM phase_events", &[], |row| row.get(0))).unwrap();
    assert_eq!(phase, ["advance"]);
    let dispatch = ledger
        .read(|s| {
            s.query_all("SELECT dispatch_id, event_type, from_status, to_status FROM dispatch_events", &[], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get::<String>(3)?])
            })
        })
        .unwrap();
    assert_eq!(dispatch, [["dispatch-a", "dispatch_cancelled", "running", "cancelled"].map(str::to_owned)]);
}

#[test]
fn an_event_that_cannot_be_read_is_named_too() {
    for sql in
        ["UPDATE events SET hash = x'00' WHERE seq = 3", "UPDATE events SET type = CAST(x'ff' AS TEXT) WHERE seq = 3"]
    {
        let ledger = ledger_with(5);
        tamper(&ledger, "DROP TRIGGER events_are_not_changed").unwrap();
        tamper(&ledger, sql).unwrap();
        let report = ledger.read(|s| verify(s, None)).unwrap();
        assert_eq!(report.first_bad.map(|(seq, _)| seq), Some(3), "{sql}");
    }
}
