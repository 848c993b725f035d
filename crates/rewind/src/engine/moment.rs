//! An engine that is open, the moments that it goes back to, and what that takes away.

use crate::config::Target;
use crate::order;
use crate::plan::{Bound, Line};
use crate::session::{Session, quote};
use crate::value::{RowCounts, Scalar};
use ic_base::{Code, Diagnosis, Result, Timestamp};
use serde::Serialize;
use std::time::Duration;

/// How the application's database is used.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long to wait for the application before giving up with `busy`.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5) }
    }
}

/// What names a rewind and says when it is.
#[derive(Debug, Clone, Copy)]
pub struct Rewind<'a> {
    /// Its id.
    pub id: &'a str,
    /// The time now.
    pub now: Timestamp,
}

/// What a rewind would take away. It removes rows; it does not restore rows that were updated since.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollbackSnapshot {
    /// The task; `None` for a mark that was made before there was one.
    pub task_id: Option<String>,
    /// The task's order, as it is stored; NULL when everything goes.
    pub snapshot_created_at: Scalar,
    /// The rows that would go, in the order in which the tables are cut.
    pub affected_row_counts: RowCounts,
}

/// What a rewind took away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollbackResult {
    /// The rewind.
    pub rewind_id: String,
    /// The task; `None` for a mark that was made before there was one.
    pub task_id: Option<String>,
    /// The task's order, as it is stored; NULL when everything went.
    pub snapshot_created_at: Scalar,
    /// The rows that went, in the order in which the tables were cut.
    pub deleted_row_counts: RowCounts,
}

/// Takes an application's SQLite tables back to a task (seed 002).
///
/// The configuration is checked against the database when it is opened, and again in every operation.
pub struct RelationalRollbackEngine {
    pub(super) session: Session,
    pub(super) target: Target,
    pub(super) options: Options,
}

/// A place in time, found in the database.
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

/// How many rows a table has.
pub(super) fn count_rows(session: &Session, table: &str) -> Result<u64> {
    let sql = format!("SELECT count(*) FROM main.{}", quote(table));
    session.query_one(&sql, &[], |row| row.get::<_, i64>(0)).map(order::unsigned)
}

/// Something happened to rows that nobody asked for.
pub(super) fn unexpected(table: &str, what: &str) -> Diagnosis {
    Diagnosis::new(Code::RowConflict, format!("{what} in {table}; nothing was changed."))
        .hint(
            "do triggers of the table, or an index that is damaged, change rows? see: PRAGMA integrity_check",
        )
        .detail("table", table)
}

/// A value that comes from a column named so.
pub(super) type Named = (String, Scalar);

pub(super) fn is_empty(named: &[Named]) -> bool {
    named.is_empty()
}
