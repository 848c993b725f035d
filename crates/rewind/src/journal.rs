//! The table `rewinds`: what was begun, how far it came, and what is needed to go on or to take it back.
//!
//! ```text
//!   stage    planned ──▶ git_done ──▶ db_done ──▶ vector_done          without a stage of git: planned ──▶ db_done
//!   status   in_progress ◀── resumes ── stopped        in_progress ── ends ──▶ done        any of them ── is undone ──▶ undone
//!                │                         ▲
//!                └──────── stops ──────────┘
//! ```
//!
//! Git first and the rows second: a commit that cannot be checked out is found before a row is deleted. The archive of the rows is written
//! and synced before the transaction that deletes them. A stage is recorded once it is done, and each can be made again.
//!
//! Compatibility: an older binary refuses a ledger of a newer schema (`newer_schema`), so it resumes no rewind that it does not understand.
//! The configuration that a rewind began with is in its row: a later version, or another `.ic.yaml`, resumes it as it began. An unknown
//! stage or status is `corrupt`.

mod state;
mod write;

use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, Result, RewindId, Seq, Timestamp};
use ic_store::reference::{self, Referent};
use ic_store::{Row, Snapshot, path_bytes};
use serde::{Deserialize, Serialize};

use crate::{Manifest, RollbackResult, Scalar, Target, TaskRef};

pub use write::{
    NewRewind, begin, db_done, finish, git_done, leave, redact, reopen, set_child, stop, undone,
};

/// How rewinds are referred to.
pub const REFERENT: Referent = Referent {
    table: "rewinds",
    noun: "rewind",
    not_found: Code::RewindNotFound,
    listed_by: "ic rewind list",
};

ic_base::words! {
    /// How far a rewind came: git, then the database, then vectors.
    #[derive(PartialOrd, Ord)]
    pub enum Stage {
        /// Nothing is done.
        Planned = "planned",
        /// The tree is at the task's commit.
        GitDone = "git_done",
        /// The rows are gone; without a git stage this follows on `planned`.
        DbDone = "db_done",
        /// Vectors are pruned, or there are none.
        VectorDone = "vector_done",
    }
}

ic_base::words! {
    /// What became of a rewind.
    pub enum Status {
        /// Every stage is done.
        Done = "done",
        /// A stage failed; later ones did not run.
        Stopped = "stopped",
        /// A process works on it, or died while it did.
        InProgress = "in_progress",
        /// Its rows are back, or were never gone.
        Undone = "undone",
    }
}

/// What a rewind acts on: the configuration as it was when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The state database and what is taken back there.
    pub target: Target,
    /// The program that prunes an outside store of vectors, with its arguments.
    pub vectors: Option<Vec<String>>,
}

/// What was deleted, or where the line is before anything was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The task's order.
    pub snapshot_created_at: Scalar,
    /// The rows that went, by table in the order in which they were cut; `None` until they are gone.
    pub rows: Option<Vec<(String, u64)>>,
}

impl From<&RollbackResult> for Deleted {
    fn from(result: &RollbackResult) -> Self {
        let rows = result.deleted_row_counts.iter().map(|(table, rows)| (table.to_owned(), rows));
        Self { snapshot_created_at: result.snapshot_created_at.clone(), rows: Some(rows.collect()) }
    }
}

impl From<&Manifest> for Deleted {
    fn from(manifest: &Manifest) -> Self {
        let rows = manifest.tables.iter().map(|table| (table.name.clone(), table.rows));
        Self { snapshot_created_at: manifest.order.clone(), rows: Some(rows.collect()) }
    }
}

/// Why a stage failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error's code.
    pub code: String,
    /// The error's message.
    pub message: String,
}

/// What was checked out before git moved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Left {
    /// The branch, without `refs/heads/`; `None`: HEAD was detached.
    pub branch: Option<Vec<u8>>,
    /// The commit; `None`: there was none yet.
    pub head: Option<String>,
    /// The ref that keeps the commit reachable.
    pub kept_ref: Option<Vec<u8>>,
}

/// A rewind that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: RewindId,
    /// The event that recorded it.
    pub seq: Seq,
    /// The working tree that git moves.
    pub root: PathBuf,
    /// The application's database.
    pub database: PathBuf,
    /// The task that is gone back to.
    pub task_id: String,
    /// The task's scope.
    pub scope: Vec<(String, Scalar)>,
    /// The configuration as it was.
    pub setup: Setup,
    /// The commit that the tree goes to; `None`: the tree stays.
    pub git_commit: Option<String>,
    /// Whether local changes are no hindrance.
    pub is_forced: bool,
    /// How far it came.
    pub stage: Stage,
    /// What became of it.
    pub status: Status,
    /// The tree before git moved it; `None`: it was not moved.
    pub safety_id: Option<CheckpointId>,
    /// What was checked out before.
    pub left: Left,
    /// Where the deleted rows are.
    pub archive: PathBuf,
    /// The process of the command for vectors, while it runs; JSON.
    pub child: Option<String>,
    /// What was deleted.
    pub deleted: Deleted,
    /// Why it stopped.
    pub error: Option<Failure>,
    /// When it was begun.
    pub created_at: Timestamp,
}

impl Entry {
    const COLUMNS: &'static str = "id, seq, root, database, task_id, scope, target, git_commit, forced, stage, status, \
        safety_id, left_branch, left_head, kept_ref, archive, child, result, error, created_at";

    fn from_row(row: &Row<'_>) -> Result<Self> {
        let database = row.path(3)?;
        let mut setup: Setup = row.parse(6, "rewinds", |text| serde_json::from_str(text).ok())?;
        setup.target.database.clone_from(&database);
        Ok(Self {
            id: RewindId::from_ledger(row.get(0)?),
            seq: row.get(1)?,
            root: row.path(2)?,
            database,
            task_id: row.get(4)?,
            scope: row.parse(5, "rewinds", |text| serde_json::from_str(text).ok())?,
            setup,
            git_commit: row.get(7)?,
            is_forced: row.get(8)?,
            stage: row.parse(9, "rewinds", Stage::parse)?,
            status: row.parse(10, "rewinds", Status::parse)?,
            safety_id: row.get::<Option<String>>(11)?.map(CheckpointId::from_ledger),
            left: Left { branch: row.get(12)?, head: row.get(13)?, kept_ref: row.get(14)? },
            archive: row.path(15)?,
            child: row.get(16)?,
            deleted: row.parse(17, "rewinds", |text| serde_json::from_str(text).ok())?,
            error: row
                .get::<Option<String>>(18)?
                .map(|_| row.parse(18, "rewinds", |text| serde_json::from_str(text).ok()))
                .transpose()?,
            created_at: Timestamp(row.get(19)?),
        })
    }

    /// The task that is gone back to, as the engine asks for it.
    pub fn task_ref(&self) -> TaskRef {
        let task = TaskRef::new(self.task_id.as_str());
        self.scope.iter().fold(task, |task, (column, value)| task.in_scope(column, value.clone()))
    }

    /// The archive, if the rewind made one and it is still there.
    pub fn kept_archive(&self) -> Option<&Path> {
        Some(self.archive.as_path()).filter(|archive| archive.exists())
    }

    /// Whether its rows went and are no longer kept: it cannot be undone. Where not even the directory is, nobody gave them up.
    pub fn is_given_up(&self) -> bool {
        let is_gone = self.archive.parent().is_some_and(Path::exists) && self.kept_archive().is_none();
        self.stage >= Stage::DbDone && self.status != Status::Undone && is_gone
    }

    /// Whether something outside of the ledger may have been changed already.
    pub fn has_begun(&self) -> bool {
        self.stage != Stage::Planned || self.safety_id.is_some() || self.status == Status::InProgress
    }

    /// Whether a stage is still to be done.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.status, Status::InProgress | Status::Stopped)
    }
}

/// The rewind with this id. Errors: `rewind_not_found`.
pub fn get(snapshot: &Snapshot<'_>, id: &RewindId) -> Result<Entry> {
    let sql = format!("SELECT {} FROM rewinds WHERE id = $1", Entry::COLUMNS);
    snapshot.query_opt(&sql, &[&id.as_str()], Entry::from_row)?.ok_or_else(|| {
        Diagnosis::new(Code::RewindNotFound, format!("There is no rewind {id}.")).hint("see: ic rewind list")
    })
}

/// The rewind that `text` names: an id, or the end of one.
///
/// Errors: `rewind_not_found`, `ambiguous_id`, `invalid_reference`.
pub fn resolve(snapshot: &Snapshot<'_>, text: &str) -> Result<Entry> {
    let id = reference::resolve(snapshot, REFERENT, text)?;
    get(snapshot, &RewindId::from_ledger(id))
}

/// The newest rewind, of any database.
pub fn newest(snapshot: &Snapshot<'_>) -> Result<Option<Entry>> {
    let sql = format!("SELECT {} FROM rewinds WHERE seq > 0 ORDER BY seq DESC LIMIT 1", Entry::COLUMNS);
    snapshot.query_opt(&sql, &[], Entry::from_row)
}

/// The newest rewind that took this working tree to the commit at which it is, by what the caller knows of it.
pub fn newest_at(snapshot: &Snapshot<'_>, root: &Path, commit: &str) -> Result<Option<Entry>> {
    let sql = format!(
        "SELECT {} FROM rewinds WHERE root = $1 AND git_commit = $2 AND stage <> 'planned' ORDER BY seq DESC LIMIT 1",
        Entry::COLUMNS
    );
    snapshot.query_opt(&sql, &[&path_bytes(root), &commit], Entry::from_row)
}

/// Every rewind, newest first.
pub fn list(snapshot: &Snapshot<'_>) -> Result<Vec<Entry>> {
    let sql = format!("SELECT {} FROM rewinds WHERE seq > 0 ORDER BY seq DESC", Entry::COLUMNS);
    snapshot.query_all(&sql, &[], Entry::from_row)
}

/// The rewinds of a database that began to change something and are not finished, oldest first.
pub fn unfinished(snapshot: &Snapshot<'_>, database: &Path) -> Result<Vec<Entry>> {
    let sql = format!(
        "SELECT {} FROM rewinds WHERE database = $1 AND status IN ('in_progress', 'stopped')",
        Entry::COLUMNS
    );
    let mut found = snapshot.query_all(&sql, &[&path_bytes(database)], Entry::from_row)?;
    found.retain(Entry::has_begun);
    found.sort_by_key(|entry| entry.seq);
    Ok(found)
}

/// The rewinds of any database that move this working tree, began to change something and are not finished, oldest first.
pub fn unfinished_in(snapshot: &Snapshot<'_>, root: &Path) -> Result<Vec<Entry>> {
    // From the first name on: a search by the index of the unfinished, of which there are few.
    let sql = format!(
        "SELECT {} FROM rewinds WHERE database > $1 AND status IN ('in_progress', 'stopped')",
        Entry::COLUMNS
    );
    let mut found = snapshot.query_all(&sql, &[&path_bytes(Path::new(""))], Entry::from_row)?;
    found.retain(|entry| entry.root == root && entry.has_begun());
    found.sort_by_key(|entry| entry.seq);
    Ok(found)
}

/// The safety checkpoints of rewinds that can be undone: what leads back to the tree before them.
pub fn safety_checkpoints(snapshot: &Snapshot<'_>) -> Result<Vec<CheckpointId>> {
    let sql = format!(
        "SELECT {} FROM rewinds WHERE seq > 0 AND safety_id IS NOT NULL AND status <> 'undone' ORDER BY seq",
        Entry::COLUMNS
    );
    let mut entries = snapshot.query_all(&sql, &[], Entry::from_row)?;
    entries.retain(|entry| entry.is_unfinished() || !entry.is_given_up());
    Ok(entries.into_iter().filter_map(|entry| entry.safety_id).collect())
}
