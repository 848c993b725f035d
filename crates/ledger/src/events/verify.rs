//! Walking the chain: is the record what was written?

use std::ops::ControlFlow;

use crate::Snapshot;
use ic_base::{Code, Result, Seq};

use crate::events::chain::hash_of;
use crate::events::event::Event;
use crate::events::list;
use crate::hash::{Hash, hex};

/// A head that was kept elsewhere: what `seq` must hash to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedHead {
    /// The event up to which the chain was seen elsewhere; 0: before the first.
    pub seq: Seq,
    /// The hash that this event had there; zeros for `seq` 0.
    pub hash: Hash,
}

/// The result of [`verify`]: how far the chain holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// How many events were walked.
    pub events: i64,
    /// The head row: the last seq and its hash.
    pub head: (Seq, Hash),
    /// The first event that is wrong, and how.
    pub first_bad: Option<(Seq, String)>,
}

/// Walks every event from the first, in flat memory, and stops at the first that is wrong.
///
/// A chain alone cannot see that its tail is missing: the head row does, and `expected` with one kept elsewhere.
pub fn verify(snapshot: &Snapshot<'_>, expected: Option<ExpectedHead>) -> Result<ChainReport> {
    let head = list::head(snapshot)?;
    let mut walk = Walk { next: 1, before: [0; 32], first_bad: None, expected };
    let walked = list::each_since(snapshot, None, 0, i64::MAX, |event| {
        if let Some(problem) = walk.step(&event) {
            // Of a gap, the missing event is named, and not the one after it.
            walk.first_bad = Some((event.seq.min(walk.next), problem));
            return Ok(ControlFlow::Break(()));
        }
        // A text may be missing only if the record says so: without its event, the redaction was made from outside.
        if event.reason_hash.is_some() || event.payload_hash.is_some() {
            let evidence = redaction_of(snapshot, event.seq)?;
            if evidence.is_none() {
                walk.first_bad = Some((event.seq, "a text was removed without a redaction event".to_owned()));
                return Ok(ControlFlow::Break(()));
            }
        }
        walk.next += 1;
        Ok(ControlFlow::Continue(()))
    });
    match walked {
        // A row that cannot be read is a finding, not a failure of the walk.
        Err(error) if error.code() == Code::Corrupt => {
            walk.first_bad = Some((walk.next, format!("it cannot be read ({})", error.message())));
        }
        other => other?,
    }
    // The end comes after the walk: an event that is wrong in the middle is the first problem, whatever the
    // head says.
    let last = walk.next - 1;
    let first_bad = walk.first_bad.or_else(|| tail_problem(last, walk.before, head, expected));
    Ok(ChainReport { events: last, head, first_bad })
}

struct Walk {
    next: Seq,
    before: Hash,
    first_bad: Option<(Seq, String)>,
    expected: Option<ExpectedHead>,
}

impl Walk {
    fn step(&mut self, event: &Event) -> Option<String> {
        if event.seq != self.next {
            return Some(format!("event {} is missing", self.next));
        }
        if event.prev_hash != self.before {
            return Some("it does not follow from the event before it".to_owned());
        }
        let hash = hash_of(event, &self.before);
        if hash != event.hash {
            return Some("its content is not what was recorded".to_owned());
        }
        if self.expected.is_some_and(|e| e.seq == event.seq && e.hash != hash) {
            return Some("its hash is not the expected one".to_owned());
        }
        self.before = hash;
        None
    }
}

fn tail_problem(last: Seq, hash: Hash, head: (Seq, Hash), expected: Option<ExpectedHead>) -> Option<(Seq, String)> {
    if head != (last, hash) {
        return Some((
            last + 1,
            format!("the head row names event {} with hash {}; the last event found is {last}", head.0, hex(&head.1)),
        ));
    }
    // The walk has compared an expected event that it met. Left are one beyond the end, and the place before the first.
    match expected {
        Some(e) if e.seq > last => Some((last + 1, format!("event {} is expected; the last is {last}", e.seq))),
        Some(e) if e.seq == 0 && e.hash != [0; 32] => {
            Some((1, "the hash before the first event is all zeros".to_owned()))
        }
        _ => None,
    }
}

fn redaction_of(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<Seq>> {
    // The type is not a parameter: only in the text of the statement does it lead SQLite to the partial index.
    snapshot.query_opt(
        "SELECT seq FROM events WHERE subject_id = $1 AND type = 'redacted'",
        &[&seq.to_string()],
        |row| row.get(0),
    )
}
