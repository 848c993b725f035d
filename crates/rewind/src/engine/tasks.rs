//! The rows of the anchor table.

use ic_base::{Code, Diagnosis, Result};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::Serialize;

use super::moment::NamedMoment;
use crate::config::Anchor;
use crate::error::UnknownTaskError;
use crate::lineage::CheckpointDescription;
use crate::plan::CutPlan;
use crate::session::{DatabaseSession, quote};
use crate::value::SqlScalar;

/// The number of bytes of a checkpoint that are read to find its time.
const BEGINNING: usize = 4096;

/// A task to which can be rewound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnchorTask {
    /// The key of its row, as text.
    pub task_id: String,
    /// The order of its row, as the database has it.
    pub created_at: SqlScalar,
    /// Its git commit, if the configuration names the column and it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The values of the scope columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<NamedMoment>,
    /// The checkpointer's description of it; `None` in the database of another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub described: Option<CheckpointDescription>,
}

/// A reference to a task: its key, and its scope where the key is not enough.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRef {
    pub(super) id: String,
    pub(super) scope: Vec<NamedMoment>,
}

impl TaskRef {
    /// The task with this key: a text or a number as displayed, or a BLOB as `x'…'`.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), scope: Vec::new() }
    }

    /// The same task, only in the scope whose `column` has this value.
    #[must_use]
    pub fn in_scope(mut self, column: &str, value: impl Into<SqlScalar>) -> Self {
        self.scope.push((column.to_owned(), value.into()));
        self
    }

    /// The values that the key may have in the database.
    fn keys(&self) -> Vec<SqlScalar> {
        let mut keys = vec![SqlScalar::Text(self.id.clone())];
        // Only in the form in which it is shown: `007` is a text and not the number 7.
        let number = self.id.parse::<i64>().ok().filter(|number| number.to_string() == self.id);
        keys.extend(number.map(SqlScalar::Integer));
        keys.extend(blob_literal(&self.id).map(|blob| SqlScalar::Blob { blob }));
        keys
    }
}

impl From<&str> for TaskRef {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

fn blob_literal(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("x'")?.strip_suffix('\'')?;
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// SQL that selects tasks, to be followed by conditions on `t`.
fn select(plan: &CutPlan) -> String {
    let anchor = &plan.anchor;
    // NULL in its place keeps the places of the columns after it, by which `from_row` reads.
    let commit = anchor.commit.as_ref().map_or_else(|| "NULL".to_owned(), |column| format!("t.{}", quote(column)));
    let scope: String = anchor.scope.iter().map(|column| format!(", t.{}", quote(column))).collect();
    let (key, order, table) = (quote(&anchor.key), quote(&anchor.order), quote(&anchor.table));
    // The time is in the first bytes of a checkpoint, which may be large.
    let described = if plan.is_described {
        format!(", t.type, substr(t.checkpoint, 1, {BEGINNING}), t.metadata, t.checkpoint_ns")
    } else {
        String::new()
    };
    format!("SELECT t.{key}, t.{order}, {commit}{scope}{described} FROM main.{table} AS t")
}

fn from_row(plan: &CutPlan, row: &Row<'_>) -> rusqlite::Result<AnchorTask> {
    let anchor = &plan.anchor;
    let scope = anchor.scope.iter().enumerate().map(|(n, column)| Ok((column.clone(), row.get(3 + n)?)));
    let commit = match row.get(2)? {
        SqlScalar::Null => None,
        value => Some(value.to_string()),
    };
    Ok(AnchorTask {
        task_id: SqlScalar::shown(row.get_ref(0)?),
        created_at: row.get(1)?,
        commit,
        scope: scope.collect::<rusqlite::Result<_>>()?,
        described: plan.is_described.then(|| described(row, 3 + anchor.scope.len())).transpose()?,
    })
}

/// The description of a checkpoint, from the columns that begin with this one.
fn described(row: &Row<'_>, first: usize) -> rusqlite::Result<CheckpointDescription> {
    let bytes = |n: usize| {
        Ok::<_, rusqlite::Error>(match row.get_ref(first + n)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
            _ => &[],
        })
    };
    let text = |n: usize| bytes(n).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(CheckpointDescription::of(&text(0)?, bytes(1)?, bytes(2)?, text(3)?))
}

pub(super) fn all(session: &DatabaseSession, plan: &CutPlan) -> Result<Vec<AnchorTask>> {
    let anchor = &plan.anchor;
    let sql = format!("{} ORDER BY t.{}, t.{}", select(plan), quote(&anchor.order), quote(&anchor.key));
    session.query_all(&sql, &[], |row| from_row(plan, row))
}

/// Tasks whose order can be compared, newest first, at most `limit`; with `scope` only those whose first scope column has this value.
///
/// Errors: `invalid_value` for a scope where the anchor has no scope column.
pub(super) fn newest(
    session: &DatabaseSession,
    plan: &CutPlan,
    scope: Option<&str>,
    limit: u32,
) -> Result<Vec<AnchorTask>> {
    let anchor = &plan.anchor;
    let (order, key) = (quote(&anchor.order), quote(&anchor.key));
    // The database leaves out what `order::check_target` refuses, because the limit must count only tasks that are shown.
    let mut sql = format!(
        // `9e999` is infinity in SQLite.
        "{} WHERE typeof(t.{order}) IN ('integer', 'real', 'text') AND t.{order} NOT IN (9e999, -9e999)",
        select(plan)
    );
    let mut params = vec![SqlScalar::Integer(limit.into())];
    if let Some(value) = scope {
        let Some(column) = anchor.scope.first() else {
            return Err(Diagnosis::new(Code::InvalidValue, format!("The tasks in {} have no scopes.", anchor.table))
                .hint("leave the scope out, or name its column in the configuration: rewind: anchor: scope"));
        };
        let value = SqlScalar::from(value);
        sql.push_str(&format!(" AND {}", is_in_scope(column, &value, 2)));
        params.push(value);
    }
    // The key decides between equal orders: the tasks that a limit shows are the same in each call.
    sql.push_str(&format!(" ORDER BY t.{order} DESC, t.{key} DESC LIMIT ?1"));
    session.query_all(&sql, &params, |row| from_row(plan, row))
}

/// SQL: the scope column of `t` has the `value`, which is parameter `n`.
fn is_in_scope(column: &str, value: &SqlScalar, n: usize) -> String {
    let column = quote(column);
    // In a column without a type, a number that was typed as text may be stored as a number.
    let or_number = match value {
        SqlScalar::Text(text) if text.parse().is_ok_and(|number: i64| number.to_string() == *text) => {
            format!(" OR t.{column} IS CAST(?{n} AS INTEGER)")
        }
        _ => String::new(),
    };
    format!("(t.{column} IS ?{n}{or_number})")
}

/// Errors: `unknown_task`; `ambiguous_id`; `invalid_value` for a scope column that the anchor does not have.
pub(super) fn find(session: &DatabaseSession, plan: &CutPlan, task: &TaskRef) -> Result<AnchorTask> {
    let anchor = &plan.anchor;
    let mut sql = format!("{} WHERE t.{} = ?1", select(plan), quote(&anchor.key));
    let mut scope = Vec::new();
    for (column, value) in &task.scope {
        let Some(column) = anchor.scope.iter().find(|c| c.eq_ignore_ascii_case(column)) else {
            return Err(Diagnosis::new(
                Code::InvalidValue,
                format!("{column} is not a scope column of {}.", anchor.table),
            )
            .hint(format!("its scope columns: {}", anchor.scope.join(", "))));
        };
        scope.push(value.clone());
        sql.push_str(&format!(" AND {}", is_in_scope(column, value, scope.len() + 1)));
    }
    // The text comes first: SQLite converts it by the type of the column. The other forms are for columns without a type.
    for key in task.keys() {
        let params: Vec<SqlScalar> = std::iter::once(key).chain(scope.iter().cloned()).collect();
        let mut found = session.query_all(&sql, &params, |row| from_row(plan, row))?;
        match (found.pop(), found.pop()) {
            (Some(task), None) => return Ok(task),
            (Some(_), Some(_)) => return Err(ambiguous(anchor, task)),
            (None, _) => {}
        }
    }
    Err(unknown_task(task, &anchor.table))
}

fn ambiguous(anchor: &Anchor, task: &TaskRef) -> Diagnosis {
    let diagnosis =
        Diagnosis::new(Code::AmbiguousId, format!("Several rows of {} have the key {}.", anchor.table, task.id))
            .detail("task_id", task.id.as_str());
    if anchor.scope.is_empty() {
        return diagnosis.hint("name a column under rewind: anchor: key whose values are unique");
    }
    diagnosis.hint(format!("give the scope too: {}", anchor.scope.join(", ")))
}

fn unknown_task(task: &TaskRef, table: &str) -> Diagnosis {
    UnknownTaskError { task_id: task.id.clone(), table: table.to_owned() }.into()
}
