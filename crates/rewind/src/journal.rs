//! The table `rewinds`: which rewinds were begun, how far they came, and what is needed to resume or undo them.
//!
//! ```text
//!   stage    planned ──▶ git_done ──▶ db_done ──▶ vector_done          without a stage of git: planned ──▶ db_done
//!   status   in_progress ◀── resumes ── stopped        in_progress ── ends ──▶ done        any of them ── is undone ──▶ undone
//!                │                         ▲
//!                └──────── stops ──────────┘
//! ```
//!
//! Git comes first and the rows second: a commit that cannot be checked out is found before a row is deleted. The archive of the rows is
//! written and synced before the transaction that deletes them. A stage is recorded once it is done, and each can be repeated.
//!
//! Compatibility: an older binary refuses a ledger of a newer schema (`newer_schema`), so it resumes no rewind that it does not understand.
//! The configuration that a rewind began with is in its row: a later version, or another `.ic.yaml`, resumes it as it began. An unknown
//! stage or status is `corrupt`.

mod entry;
mod state;
mod write;

use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, Result, RewindId};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{Snapshot, path_bytes};

pub use entry::{Deleted, LeftHead, RewindEntry, RewindFailure, RewindJournalSetup, RewindStatus, Stage};
pub use write::{NewRewind, begin, db_done, finish, git_done, leave, redact, reopen, set_child, stop, undone};

/// How rewinds are referred to.
pub const REFERENT: Referent =
    Referent { table: "rewinds", noun: "rewind", not_found: Code::RewindNotFound, listed_by: "ic rewind list" };

/// The rewind with this id. Errors: `rewind_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &RewindId) -> Result<RewindEntry> {
    let sql = format!("SELECT {} FROM rewinds WHERE id = $1", RewindEntry::COLUMNS);
    snapshot.query_opt(&sql, &[&id.as_str()], RewindEntry::from_row)?.ok_or_else(|| {
        Diagnosis::new(Code::RewindNotFound, format!("There is no rewind {id}.")).hint("see: ic rewind list")
    })
}

/// The rewind that `text` names: an id, or the end of one.
///
/// Errors: `rewind_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<RewindEntry> {
    reference::find(snapshot, REFERENT, RewindEntry::COLUMNS, text, RewindEntry::from_row)
}

/// The newest rewind, of any database.
pub fn newest(snapshot: &Snapshot<'_>) -> Result<Option<RewindEntry>> {
    // `seq > 0` holds for every row. With it SQLite plans a search by the index, and without it a scan.
    let sql = format!("SELECT {} FROM rewinds WHERE seq > 0 ORDER BY seq DESC LIMIT 1", RewindEntry::COLUMNS);
    snapshot.query_opt(&sql, &[], RewindEntry::from_row)
}

/// The newest rewind that moved this working tree to `commit`, at which the caller found it.
pub fn newest_at(snapshot: &Snapshot<'_>, root: &Path, commit: &str) -> Result<Option<RewindEntry>> {
    let sql = format!(
        "SELECT {} FROM rewinds WHERE root = $1 AND git_commit = $2 AND stage <> 'planned' ORDER BY seq DESC LIMIT 1",
        RewindEntry::COLUMNS
    );
    snapshot.query_opt(&sql, &[&path_bytes(root), &commit], RewindEntry::from_row)
}

/// Every rewind, newest first.
pub fn list(snapshot: &Snapshot<'_>) -> Result<Vec<RewindEntry>> {
    let sql = format!("SELECT {} FROM rewinds WHERE seq > 0 ORDER BY seq DESC", RewindEntry::COLUMNS);
    snapshot.query_all(&sql, &[], RewindEntry::from_row)
}

/// The rewinds of a database that began to change something and are not finished, oldest first.
pub fn unfinished(snapshot: &Snapshot<'_>, database: &Path) -> Result<Vec<RewindEntry>> {
    let sql = format!(
        "SELECT {} FROM rewinds WHERE database = $1 AND status IN ('in_progress', 'stopped')",
        RewindEntry::COLUMNS
    );
    let mut found = snapshot.query_all(&sql, &[&path_bytes(database)], RewindEntry::from_row)?;
    found.retain(RewindEntry::has_begun);
    found.sort_by_key(|entry| entry.seq);
    Ok(found)
}

/// The rewinds of any database that move this working tree, began to change something and are not finished, oldest first.
pub fn unfinished_in(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<RewindEntry>> {
    // `database > ''` searches the index of unfinished rewinds, of which there are few.
    let sql = format!(
        "SELECT {} FROM rewinds WHERE database > $1 AND status IN ('in_progress', 'stopped')",
        RewindEntry::COLUMNS
    );
    let mut found = snapshot.query_all(&sql, &[&path_bytes(Path::new(""))], RewindEntry::from_row)?;
    found.retain(|entry| entry.root == root && entry.has_begun());
    found.sort_by_key(|entry| entry.seq);
    Ok(found)
}

/// The safety checkpoints of rewinds that can be undone: they have the tree from before.
pub fn safety_checkpoints(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointId>> {
    let sql = format!(
        "SELECT {} FROM rewinds WHERE seq > 0 AND safety_id IS NOT NULL AND status <> 'undone' ORDER BY seq",
        RewindEntry::COLUMNS
    );
    let mut entries = snapshot.query_all(&sql, &[], RewindEntry::from_row)?;
    // One that stopped may still be resumed, whatever became of its archive.
    entries.retain(|entry| entry.is_unfinished() || !entry.is_given_up());
    Ok(entries.into_iter().filter_map(|entry| entry.safety_id).collect())
}
