//! A row of the table `rewinds`.

use crate::archive::ArchiveManifest;
use crate::config::RewindTarget;
use crate::engine::{RollbackResult, TaskRef};
use crate::value::SqlScalar;
use ic_base::{CheckpointId, Result, RewindId, Seq, Timestamp};
use ic_ledger::LedgerRow;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

ic_base::words! {
    /// How far a rewind came: git, then the database, then vectors.
    #[derive(PartialOrd, Ord)]
    pub enum Stage {
        /// No stage is done.
        Planned = "planned",
        /// The tree is at the task's commit.
        GitDone = "git_done",
        /// The rows are deleted; without a git stage this follows `planned`.
        DbDone = "db_done",
        /// Vectors are pruned, or there are none.
        VectorDone = "vector_done",
    }
}

ic_base::words! {
    /// The outcome of a rewind so far.
    pub enum RewindStatus {
        /// Every stage is done.
        Done = "done",
        /// A stage failed; later ones did not run.
        Stopped = "stopped",
        /// A process works on it, or died while it did.
        InProgress = "in_progress",
        /// Its rows are restored, or were never deleted.
        Undone = "undone",
    }
}

/// The configuration with which a rewind began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindJournalSetup {
    /// The state database and what is rolled back there.
    pub target: RewindTarget,
    /// The program that prunes an outside store of vectors, with its arguments.
    pub vectors: Option<Vec<String>>,
}

/// What was deleted, or only the order of the target before anything was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The order of the target task.
    pub snapshot_created_at: SqlScalar,
    /// The numbers of deleted rows, by table in the order in which they were cut; `None` before that.
    pub rows: Option<Vec<(String, u64)>>,
}

/// The failure of a stage, in the form that the ledger stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindFailure {
    /// The code of the error.
    pub code: String,
    /// The message of the error.
    pub message: String,
}

/// The state of HEAD before git moved it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftHead {
    /// The branch, without `refs/heads/`; `None`: HEAD was detached.
    pub branch: Option<Vec<u8>>,
    /// The commit; `None`: there was none yet.
    pub head: Option<String>,
    /// The ref that keeps the commit reachable.
    pub kept_ref: Option<Vec<u8>>,
}

/// A row of the journal: a rewind that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct RewindEntry {
    /// Names it in commands and events.
    pub id: RewindId,
    /// The event that recorded it.
    pub seq: Seq,
    /// The working tree that git moves.
    pub root: PathBuf,
    /// The file of the application's database.
    pub database: PathBuf,
    /// The task to which it goes.
    pub task_id: String,
    /// The values of the task's scope columns.
    pub scope: Vec<(String, SqlScalar)>,
    /// The configuration with which it began.
    pub setup: RewindJournalSetup,
    /// The commit that the tree goes to; `None`: the tree stays.
    pub git_commit: Option<String>,
    /// Whether local changes are allowed.
    pub is_forced: bool,
    /// How far it came.
    pub stage: Stage,
    /// Whether it runs, stopped, is done or was undone.
    pub status: RewindStatus,
    /// The checkpoint of the tree before git moved it; `None`: it was not moved.
    pub safety_id: Option<CheckpointId>,
    /// The state of HEAD before git moved it.
    pub left: LeftHead,
    /// The file with the deleted rows.
    pub archive: PathBuf,
    /// The process of the command for vectors, while it runs, as JSON.
    pub child: Option<String>,
    /// The numbers of deleted rows, and the order of the target.
    pub deleted: Deleted,
    /// The failure because of which it stopped.
    pub error: Option<RewindFailure>,
    /// When its row was written.
    pub created_at: Timestamp,
}

impl RewindEntry {
    pub(super) const COLUMNS: &'static str = "id, seq, root, database, task_id, scope, target, git_commit, forced, stage, status, \
        safety_id, left_branch, left_head, kept_ref, archive, child, result, error, created_at";

    pub(super) fn from_row(row: &LedgerRow<'_>) -> Result<Self> {
        let database = row.path(3)?;
        let mut setup: RewindJournalSetup = row.parse(6, "rewinds", |text| serde_json::from_str(text).ok())?;
        // The setup is JSON, which cannot hold every path: `begin` leaves this one out of it.
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
            status: row.parse(10, "rewinds", RewindStatus::parse)?,
            safety_id: row.get::<Option<String>>(11)?.map(CheckpointId::from_ledger),
            left: LeftHead { branch: row.get(12)?, head: row.get(13)?, kept_ref: row.get(14)? },
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

    /// The task, in the form in which the engine takes it.
    pub fn task_ref(&self) -> TaskRef {
        let task = TaskRef::new(self.task_id.as_str());
        self.scope.iter().fold(task, |task, (column, value)| task.in_scope(column, value.clone()))
    }

    /// The archive, if the rewind made one and the file still exists.
    pub fn kept_archive(&self) -> Option<&Path> {
        Some(self.archive.as_path()).filter(|archive| archive.exists())
    }

    /// Whether its rows were deleted and its archive removed, so that it cannot be undone. `false` where the whole directory is missing:
    /// then no prune removed it.
    pub fn is_given_up(&self) -> bool {
        let is_gone = self.archive.parent().is_some_and(Path::exists) && self.kept_archive().is_none();
        self.stage >= Stage::DbDone && self.status != RewindStatus::Undone && is_gone
    }

    /// Whether something outside of the ledger may have been changed already.
    pub fn has_begun(&self) -> bool {
        // A process that died while it was in progress may have done a part of the first stage.
        self.stage != Stage::Planned || self.safety_id.is_some() || self.status == RewindStatus::InProgress
    }

    /// Whether a stage is left, or was in progress when its process died.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.status, RewindStatus::InProgress | RewindStatus::Stopped)
    }
}

impl From<&RollbackResult> for Deleted {
    fn from(result: &RollbackResult) -> Self {
        let rows = result.deleted_row_counts.iter().map(|(table, rows)| (table.to_owned(), rows));
        Self { snapshot_created_at: result.snapshot_created_at.clone(), rows: Some(rows.collect()) }
    }
}

impl From<&ArchiveManifest> for Deleted {
    fn from(manifest: &ArchiveManifest) -> Self {
        let rows = manifest.tables.iter().map(|table| (table.name.clone(), table.rows));
        Self { snapshot_created_at: manifest.order.clone(), rows: Some(rows.collect()) }
    }
}
