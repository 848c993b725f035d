//! The table `run_skips`: phases marked to be skipped.

use ic_base::mask::mask;
use ic_base::{Result, RollbackId, RunId, Seq, Timestamp};
use ic_ledger::events::{Cut, EventType, NewEvent};
use ic_ledger::{LedgerRow, Snapshot, Transaction};

use crate::machine;
use crate::run::Run;

/// A phase marked to be skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipRecord {
    /// The event that recorded it.
    pub seq: Seq,
    /// The phase that an advance leaves out.
    pub phase: String,
    /// The caller's reason; `None` where it was redacted.
    pub reason: Option<String>,
}

fn from_row(row: &LedgerRow<'_>) -> Result<SkipRecord> {
    Ok(SkipRecord { seq: row.get(0)?, phase: row.get(1)?, reason: row.get(2)? })
}

/// The skips of a run that stand, in the order they were made.
pub fn standing(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<SkipRecord>> {
    let mut skips = snapshot.query_all(
        "SELECT seq, phase, reason FROM run_skips WHERE run_id = $1 AND rolled_back_by IS NULL",
        &[&run_id.as_str()],
        from_row,
    )?;
    // The index of standing skips is by phase, not by seq.
    skips.sort_by_key(|skip| skip.seq);
    Ok(skips)
}

/// The phases of a run that an advance leaves out.
pub fn skipped_phases(snapshot: &Snapshot<'_>, run_id: &RunId) -> Result<Vec<String>> {
    Ok(standing(snapshot, run_id)?.into_iter().map(|skip| skip.phase).collect())
}

/// Marks a phase ahead to be skipped. For a phase that is marked already nothing is written, and no event is appended.
///
/// Returns the skip, and whether it is new. Errors: those of [`machine::check_skip`].
pub fn add(tx: &Transaction<'_>, now: Timestamp, run: &Run, phase: &str, reason: &str) -> Result<(SkipRecord, bool)> {
    // Before the look for an earlier skip: a phase that the run has passed is refused though it was marked once.
    machine::check_skip(run, phase)?;
    if let Some(skip) = standing(tx, &run.id)?.into_iter().find(|skip| skip.phase == phase) {
        return Ok((skip, false));
    }
    // Masked first, because both the event and the row hold the reason.
    let reason = &*mask(reason);
    let event = NewEvent { to: Some(phase), reason: Some(reason), ..NewEvent::of(&run.id, run.epoch, EventType::Skip) };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "INSERT INTO run_skips (seq, run_id, phase, reason, created_at) VALUES ($1, $2, $3, $4, $5)",
        &[&seq, &run.id.as_str(), &phase, &reason, &now.millis()],
    )?;
    Ok((SkipRecord { seq, phase: phase.to_owned(), reason: Some(reason.to_owned()) }, true))
}

/// The standing skips that a rollback to `target` clears: those made after the cut, and the target's own.
pub fn taken_back(snapshot: &Snapshot<'_>, cut: &Cut, target: &str) -> Result<Vec<SkipRecord>> {
    let mut skips = standing(snapshot, &cut.run_id)?;
    // The target's own skip may be older than the cut: the run passed the target without a stop. It cannot stand: the
    // run will be at the target, and only a phase ahead may be marked.
    // A skip is a decision about the run, and no dispatch's work.
    skips.retain(|skip| !cut.is_of_works() && (skip.seq > cut.seq || skip.phase == target));
    Ok(skips)
}

/// Marks skips as cleared by a rollback.
pub fn mark_rolled_back(tx: &Transaction<'_>, skips: &[SkipRecord], rollback: &RollbackId) -> Result<()> {
    for skip in skips {
        // Exactly one row must change: a skip that another rollback has marked since is an error, and its mark stays.
        tx.execute_one(
            "UPDATE run_skips SET rolled_back_by = $1 WHERE seq = $2 AND rolled_back_by IS NULL",
            &[&rollback.as_str(), &skip.seq],
        )?;
    }
    Ok(())
}

/// Removes the marks of a rollback: its skips are in force again.
pub fn unmark(tx: &Transaction<'_>, rollback: &RollbackId) -> Result<usize> {
    tx.execute("UPDATE run_skips SET rolled_back_by = NULL WHERE rolled_back_by = $1", &[&rollback.as_str()])
}

/// Takes the reason out of the skip that event `seq` recorded, if it recorded one.
pub fn redact(tx: &Transaction<'_>, seq: Seq) -> Result<()> {
    tx.execute("UPDATE run_skips SET reason = NULL WHERE seq = $1", &[&seq]).map(|_| ())
}
