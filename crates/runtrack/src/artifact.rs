//! The table `run_artifacts`: what a run produced.

use std::path::{Path, PathBuf};

use ic_base::{ArtifactId, Code, DispatchId, Result, RollbackId, RunId, Seq, Timestamp, reversed_digits};
use ic_ledger::events::{Cut, EventType, NewEvent};
use ic_ledger::reference::{self, Referent};
use ic_ledger::{LedgerRow, Snapshot, Transaction, path_bytes};
use serde_json::json;

/// What redaction leaves of a path.
const REDACTED: &str = "[redacted]";

/// How artifacts are referred to.
pub const REFERENT: Referent = Referent {
    table: "run_artifacts",
    noun: "artifact",
    not_found: Code::ArtifactNotFound,
    listed_by: "ic run artifact list RUN",
};

ic_base::words! {
    /// Whether an artifact counts.
    pub enum ArtifactStatus {
        /// It counts for gates.
        Active = "active",
        /// It was rolled back; its record stays.
        RolledBack = "rolled_back",
    }
}

/// Something that a run produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Names it in commands and events.
    pub id: ArtifactId,
    /// The event that recorded it.
    pub seq: Seq,
    /// The run that produced it.
    pub run_id: RunId,
    /// The phase it belongs to.
    pub phase: String,
    /// Where it lies: from the project's root if it is inside, else absolute.
    pub path: PathBuf,
    /// The kind of artifact, in the caller's words: "plan", say.
    pub kind: String,
    /// The SHA-256 of its content in hex, if it was a file when it was registered.
    pub content_hash: Option<String>,
    /// The dispatch that produced it.
    pub dispatch_id: Option<DispatchId>,
    /// Whether it counts for gates.
    pub status: ArtifactStatus,
    /// When it was registered.
    pub created_at: Timestamp,
    /// The rollback that took it back.
    pub rolled_back_by: Option<RollbackId>,
}

/// What a new artifact is made of.
#[derive(Debug, Clone)]
pub struct NewArtifact<'a> {
    /// Made by the caller.
    pub id: ArtifactId,
    /// The run that produced it.
    pub run_id: &'a RunId,
    /// The run's epoch at this time.
    pub epoch: i64,
    /// The phase it belongs to.
    pub phase: &'a str,
    /// From the project's root if it is inside, else absolute; or an address.
    pub path: &'a Path,
    /// The kind of artifact, in the caller's words.
    pub kind: &'a str,
    /// The SHA-256 of its content, in hex.
    pub content_hash: Option<&'a str>,
    /// The dispatch that produced it.
    pub dispatch_id: Option<&'a DispatchId>,
}

/// Which artifacts of a run are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArtifactFilter<'a> {
    /// Only those of this phase.
    pub phase: Option<&'a str>,
    /// Only those with this status.
    pub status: Option<ArtifactStatus>,
}

impl Artifact {
    /// Whether it is the address of something elsewhere, and no file.
    pub fn is_address(&self) -> bool {
        is_address(&self.path)
    }

    /// Whether its path was redacted: where its file is, is not known.
    pub fn is_redacted(&self) -> bool {
        self.path == Path::new(REDACTED)
    }

    const COLUMNS: &'static str = "id, seq, run_id, phase, path, type, content_hash, dispatch_id, status, created_at, \
        rolled_back_by";

    fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        Ok(Self {
            id: ArtifactId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            run_id: RunId::from_ledger(row.get(2)?),
            phase: row.get(3)?,
            path: row.path(4)?,
            kind: row.get(5)?,
            content_hash: row.get(6)?,
            dispatch_id: row.get::<Option<String>>(7)?.map(DispatchId::from_ledger),
            status: row.parse(8, "run_artifacts", ArtifactStatus::parse)?,
            created_at: Timestamp(row.get(9)?),
            rolled_back_by: row.get::<Option<String>>(10)?.map(RollbackId::from_ledger),
        })
    }
}

/// Whether a path names something elsewhere by its address, and no file: a scheme, a colon and two slashes.
pub fn is_address(path: &Path) -> bool {
    // Lossy is enough: only the ASCII before `://` is looked at.
    let text = path.to_string_lossy();
    let Some((scheme, _)) = text.split_once("://") else { return false };
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_of_scheme)
}

/// The artifact that `text` names: an id, or the end of one.
///
/// Errors: `artifact_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<Artifact> {
    reference::find(snapshot, REFERENT, Artifact::COLUMNS, text, Artifact::from_row)
}

/// Registers an artifact, with its event.
pub fn add(tx: &Transaction<'_>, now: Timestamp, new: &NewArtifact<'_>) -> Result<Artifact> {
    // The event is JSON, which cannot hold every path. The row keeps the exact bytes.
    let event = NewEvent {
        subject_id: Some(new.id.as_str()),
        to: Some(ArtifactStatus::Active.as_str()),
        payload: Some(json!({
            "phase": new.phase,
            "path": new.path.to_string_lossy(),
            "type": new.kind,
            "content_hash": new.content_hash,
        })),
        ..NewEvent::of(new.run_id, new.epoch, EventType::ArtifactAdded)
    };
    let seq = ic_ledger::events::append(tx, now, &event)?;
    tx.execute_one(
        "INSERT INTO run_artifacts (id, reversed_id, seq, run_id, phase, path, type, content_hash, dispatch_id, \
         status, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'active', $10)",
        &[
            &new.id.as_str(),
            &reversed_digits(new.id.as_str()),
            &seq,
            &new.run_id.as_str(),
            &new.phase,
            &path_bytes(new.path),
            &new.kind,
            &new.content_hash,
            &new.dispatch_id.map(DispatchId::as_str),
            &now.millis(),
        ],
    )?;
    Ok(Artifact {
        id: new.id.clone(),
        seq,
        run_id: new.run_id.clone(),
        phase: new.phase.to_owned(),
        path: new.path.to_owned(),
        kind: new.kind.to_owned(),
        content_hash: new.content_hash.map(str::to_owned),
        dispatch_id: new.dispatch_id.cloned(),
        status: ArtifactStatus::Active,
        created_at: now,
        rolled_back_by: None,
    })
}

/// The wanted artifacts of a run, oldest first.
pub fn list(snapshot: &Snapshot<'_>, run_id: &RunId, filter: ArtifactFilter<'_>) -> Result<Vec<Artifact>> {
    let sql = format!(
        "SELECT {} FROM run_artifacts WHERE run_id = $1 AND ($2 IS NULL OR phase = $2) \
         AND ($3 IS NULL OR status = $3) ORDER BY seq",
        Artifact::COLUMNS
    );
    let status = filter.status.map(ArtifactStatus::as_str);
    snapshot.query_all(&sql, &[&run_id.as_str(), &filter.phase, &status], Artifact::from_row)
}

/// The hashes of all contents that artifacts were registered with, in hex.
pub fn content_hashes(snapshot: &Snapshot<'_>) -> Result<Vec<String>> {
    snapshot.query_all(
        "SELECT content_hash FROM run_artifacts WHERE content_hash IS NOT NULL AND seq > 0",
        &[],
        |row| row.get(0),
    )
}

/// The artifacts that a rollback covers: recorded after the cut, or of a rolled-back phase. Oldest first.
pub fn taken_back(snapshot: &Snapshot<'_>, cut: &Cut) -> Result<Vec<Artifact>> {
    let filter = ArtifactFilter { status: Some(ArtifactStatus::Active), phase: None };
    let mut artifacts = list(snapshot, &cut.run_id, filter)?;
    artifacts.retain(|a| cut.covers(a.seq, &a.phase, a.dispatch_id.as_ref()));
    Ok(artifacts)
}

/// Marks artifacts as rolled back (seed 001: `MarkArtifactsRolledBack`). Nothing is deleted.
///
/// `artifacts` is what [`taken_back`] found in the same transaction.
pub fn mark_artifacts_rolled_back(tx: &Transaction<'_>, artifacts: &[Artifact], rollback: &RollbackId) -> Result<()> {
    for artifact in artifacts {
        // Exactly one row must change: an artifact that another rollback has marked since is an error, and its mark stays.
        // The status and the rollback are set together: a CHECK of the table allows neither without the other.
        tx.execute_one(
            "UPDATE run_artifacts SET status = 'rolled_back', rolled_back_by = $1 \
             WHERE id = $2 AND rolled_back_by IS NULL",
            &[&rollback.as_str(), &artifact.id.as_str()],
        )?;
    }
    Ok(())
}

/// Removes the marks of a rollback: its artifacts count again.
pub fn unmark(tx: &Transaction<'_>, rollback: &RollbackId) -> Result<usize> {
    // This is for the same CHECK: an artifact without a rollback is active.
    tx.execute(
        "UPDATE run_artifacts SET rolled_back_by = NULL, status = 'active' WHERE rolled_back_by = $1",
        &[&rollback.as_str()],
    )
}

/// Takes path, type and hash out of the artifact that event `seq` of a run registered, if it registered one.
pub fn redact(tx: &Transaction<'_>, run_id: &RunId, seq: Seq) -> Result<()> {
    tx.execute(
        "UPDATE run_artifacts SET path = $1, type = '[redacted]', content_hash = NULL WHERE run_id = $2 AND seq = $3",
        &[&REDACTED.as_bytes(), &run_id.as_str(), &seq],
    )
    .map(|_| ())
}
