//! An open engine, the moments to which it rewinds, and the numbers of rows that it removes.

use crate::config::RewindTarget;
use crate::order;
use crate::plan::{CutBound, PlanLine};
use crate::session::{DatabaseSession, quote};
use crate::value::{RowCounts, SqlScalar};
use ic_base::{Code, Diagnosis, Result, Timestamp};
use serde::Serialize;
use std::time::Duration;

/// How the engine waits for the application.
#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// How long to wait for the application before the error `busy`.
    pub busy_timeout: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5) }
    }
}

/// The identity and the time of a rewind.
#[derive(Debug, Clone, Copy)]
pub struct Rewind<'a> {
    /// The id that the archive and the audit name it by.
    pub id: &'a str,
    /// The time of the call, for archive and audit.
    pub now: Timestamp,
}

/// What a rewind would remove. It does not restore rows that were updated since.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollbackSnapshot {
    /// The task; `None` for a mark that was made before there was one.
    pub task_id: Option<String>,
    /// The task's order, as the database has it; NULL when everything is removed.
    pub snapshot_created_at: SqlScalar,
    /// The numbers of rows to be removed, in the order in which the tables are cut.
    pub affected_row_counts: RowCounts,
}

/// What a rewind removed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollbackResult {
    /// The id of the rewind.
    pub rewind_id: String,
    /// The task; `None` for a mark that was made before there was one.
    pub task_id: Option<String>,
    /// The task's order, as the database has it; NULL when everything was removed.
    pub snapshot_created_at: SqlScalar,
    /// The numbers of removed rows, in the order in which the tables were cut.
    pub deleted_row_counts: RowCounts,
}

/// Rewinds an application's SQLite tables to a task (seed 002).
///
/// The configuration is checked against the database when it is opened, and again in every operation.
pub struct RelationalRollbackEngine {
    pub(super) session: DatabaseSession,
    pub(super) target: RewindTarget,
    pub(super) options: EngineOptions,
}

/// A moment that was found in the database.
pub(super) struct Moment {
    pub(super) task_id: Option<String>,
    pub(super) line: PlanLine,
}

impl Moment {
    pub(super) fn order(&self) -> SqlScalar {
        match &self.line.bound {
            CutBound::After(order) => order.clone(),
            CutBound::Everything => SqlScalar::Null,
        }
    }
}

/// The number of rows in a table.
pub(super) fn count_rows(session: &DatabaseSession, table: &str) -> Result<u64> {
    let sql = format!("SELECT count(*) FROM main.{}", quote(table));
    session.query_one(&sql, &[], |row| row.get::<_, i64>(0)).map(order::unsigned)
}

/// The error for a change of rows that no statement of the rewind made.
pub(super) fn unexpected(table: &str, what: &str) -> Diagnosis {
    Diagnosis::new(Code::RowConflict, format!("{what} in {table}; nothing was changed."))
        .hint("do triggers of the table, or an index that is damaged, change rows? see: PRAGMA integrity_check")
        .detail("table", table)
}

/// A value with the name of its column.
pub(super) type NamedMoment = (String, SqlScalar);
