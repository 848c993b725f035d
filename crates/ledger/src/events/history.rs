//! Whether a ledger still has the history that a consumer has read. A server whose standby was promoted, or a file that an older copy
//! replaced, may have lost events and given their numbers to others.

use crate::Snapshot;
use ic_base::{Code, Diagnosis, Result, Seq};

use crate::events::list;
use crate::hash::{Hash, hex};

/// An event that was read, by its number and its hash, which covers all events before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPlace {
    /// Its number in the order of all events.
    pub seq: Seq,
    /// Its hash, which differs if any event before it differs.
    pub hash: Hash,
}

/// The current event with this number; `None`: the ledger has no such event.
pub fn place(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<HistoryPlace>> {
    snapshot
        .query_opt("SELECT hash FROM events WHERE seq = $1", &[&seq], |row| Ok(HistoryPlace { seq, hash: row.get(0)? }))
}

/// Errors: `history_forked` if the event that was read is not in the ledger, or another one has its number.
pub fn require(snapshot: &Snapshot<'_>, read: HistoryPlace) -> Result<()> {
    let found = place(snapshot, read.seq)?;
    if found == Some(read) {
        return Ok(());
    }
    let (head, _) = list::head(snapshot)?;
    let how = if found.is_some() {
        "another event has its number now".to_owned()
    } else {
        format!("the ledger ends at event {head} now")
    };
    Err(Diagnosis::new(
        Code::HistoryForked,
        format!("Event {} was read before, and is not in the ledger any more: {how}. Events were lost.", read.seq),
    )
    .hint("see what is there: ic events tail --all; then go on by a decision: ic events cursor commit NAME SEQ --back")
    .detail("seq", read.seq)
    .detail("expected", hex(&read.hash))
    .detail("found", found.map(|found| hex(&found.hash)))
    .detail("head", head))
}
