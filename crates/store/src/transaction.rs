//! Reading and writing the ledger: what domain code is given, and what it cannot do (commit).

use std::ops::{ControlFlow, Deref};

use ic_base::{Code, Diagnosis, Result};
use rusqlite::{CachedStatement, Connection};

use crate::error::diagnose;
use crate::faults;
use crate::values::{Param, Row};

/// One consistent view of the ledger.
pub struct Snapshot<'c> {
    connection: &'c Connection,
}

impl<'c> Snapshot<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// The first row of the result, mapped; `None` if there is no row.
    pub fn query_opt<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        map: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params).map_err(|e| diagnose(e, "reading the ledger"))?;
        match rows.next().map_err(|e| diagnose(e, "reading the ledger"))? {
            Some(row) => map(&Row(row)).map(Some),
            None => Ok(None),
        }
    }

    /// All rows of the result, mapped, in the order of the statement.
    pub fn query_all<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, params, |row| {
            all.push(map(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Gives each row to `visit` as it is read, in flat memory, until it breaks.
    pub fn each(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut visit: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params).map_err(|e| diagnose(e, "reading the ledger"))?;
        while let Some(row) = rows.next().map_err(|e| diagnose(e, "reading the ledger"))? {
            if visit(&Row(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>> {
        debug_assert!(parameters_ascend(sql), "parameters must first appear in ascending order: {sql}");
        faults::statement(sql);
        self.connection.prepare_cached(sql).map_err(|e| diagnose(e, "preparing a statement"))
    }
}

/// A write transaction: everything that is written through it is committed together, or not at all.
///
/// It reads as a [`Snapshot`] does. Only [`crate::Ledger::write`] begins and commits one.
pub struct Transaction<'c> {
    snapshot: Snapshot<'c>,
}

impl<'c> Transaction<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { snapshot: Snapshot::new(connection) }
    }

    /// Runs an INSERT or UPDATE and returns how many rows it changed.
    pub fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<usize> {
        self.prepare(sql)?.execute(params).map_err(|e| diagnose(e, "writing the ledger"))
    }

    /// As [`Transaction::execute`], for a statement that must change exactly one row. Errors: `internal`.
    pub fn execute_one(&self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        match self.execute(sql, params)? {
            1 => Ok(()),
            n => Err(Diagnosis::new(
                Code::Internal,
                format!("A statement changed {n} rows where it must change one; nothing was changed: {sql}"),
            )),
        }
    }
}

impl<'c> Deref for Transaction<'c> {
    type Target = Snapshot<'c>;

    fn deref(&self) -> &Snapshot<'c> {
        &self.snapshot
    }
}

/// SQLite numbers `$n` by first appearance, PostgreSQL by `n`: they agree when these ascend from 1.
fn parameters_ascend(sql: &str) -> bool {
    let mut highest = 0;
    for part in sql.split('$').skip(1) {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        match digits.parse::<u32>() {
            Ok(n) if n <= highest => {}
            Ok(n) if n == highest + 1 => highest = n,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::parameters_ascend;

    #[test]
    fn parameters_are_checked() {
        assert!(parameters_ascend("SELECT 1"));
        assert!(parameters_ascend("SELECT $1, $2, $1, $3"));
        assert!(!parameters_ascend("SELECT $2, $1"));
        assert!(!parameters_ascend("SELECT $1, $3"));
        assert!(!parameters_ascend("SELECT $name"));
    }
}
