//! An open engine, the moments to which it rewinds, and the numbers of rows that it removes.

use crate::config::Target;
use crate::order;
use crate::plan::{Bound, Line};
use crate::session::{Session, quote};
use crate::value::{RowCounts, Scalar};
use ic_base::{Code, Diagnosis, Result, Timestamp};
use serde::Serialize;
use std::time::Duration;

/// How the engine waits for the application.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long to wait for the application before the error `busy`.
    pub busy_timeout: Duration,
}

impl Default for Options {
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
    pub snapshot_created_at: Scalar,
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
    pub snapshot_created_at: Scalar,
    /// The numbers of removed rows, in the order in which the tables were cut.
    pub deleted_row_counts: RowCounts,
}

/// Rewinds an application's SQLite tables to a task (seed 002).
///
/// The configuration is checked against the database when it is opened, and again in every operation.
pub struct RelationalRollbackEngine {
    pub(super) session: Session,
    pub(super) target: Target,
    pub(super) options: Options,
}

/// A moment that was found in the database.
pub(super) struct Moment {
    pub(super) task_id: Option<String>,
    pub(super) line: Line,
}

impl Moment {
    pub(super) fn order(&self) -> Scalar {
        match &self.line.bound {
            Bound::After(order) => order.clone(),
            Bound::Everything => Scalar::Null,
        }
    }
}

/// The number of rows in a table.
pub(super) fn count_rows(session: &Session, table: &str) -> Result<u64> {
    let sql = format!("SELECT count(*) FROM main.{}", quote(table));
    session.query_one(&sql, &[], |row| row.get::<_, i64>(0)).map(order::unsigned)
}

/// The error for a change of rows that no statement of the rewind made.
pub(super) fn unexpected(table: &str, what: &str) -> Diagnosis {
    Diagnosis::new(Code::RowConflict, format!("{what} in {table}; nothing was changed."))
        .hint(
            "do triggers of the table, or an index that is damaged, change rows? see: PRAGMA integrity_check",
        )
        .detail("table", table)
}

/// A value with the name of its column.
pub(super) type Named = (String, Scalar);

pub(super) fn is_empty(named: &[Named]) -> bool {
    named.is_empty()
}
