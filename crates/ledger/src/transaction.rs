//! Reading and writing the ledger: what domain code is given, and what it cannot do (commit).

use std::cell::RefCell;
use std::ops::{ControlFlow, Deref};

use ic_base::Result;
use rusqlite::{CachedStatement, Connection};

use crate::actor::Actor;
use crate::error::{changed_other_than_one, diagnose};
use crate::faults;
use crate::server::OpenTransaction;
use crate::values::{BoundValue, EventHead, LedgerRow, Param, RowSource};

/// One consistent view of the ledger.
pub struct Snapshot<'c> {
    view: View<'c>,
}

/// What a view is of.
enum View<'c> {
    File(&'c Connection),
    Server(&'c OpenTransaction<'c>),
}

impl<'c> Snapshot<'c> {
    pub(crate) fn of_file(connection: &'c Connection) -> Self {
        Self { view: View::File(connection) }
    }

    pub(crate) fn of_server(open: &'c OpenTransaction<'c>) -> Self {
        Self { view: View::Server(open) }
    }

    /// The first row of the result, mapped; `None` if there is no row.
    pub fn query_opt<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        map: impl FnOnce(&LedgerRow<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let connection = match self.view(sql) {
            View::File(connection) => connection,
            View::Server(open) => {
                return open.first(sql, params, map);
            }
        };
        let mut statement = prepare(connection, sql)?;
        let mut rows = statement.query(bound(params)).map_err(|e| diagnose(e, "reading the ledger"))?;
        // The rest is not read: dropping `rows` resets the statement.
        match rows.next().map_err(|e| diagnose(e, "reading the ledger"))? {
            Some(row) => map(&LedgerRow(RowSource::File(row))).map(Some),
            None => Ok(None),
        }
    }

    /// All rows of the result, mapped, in the order of the statement.
    pub fn query_all<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut map: impl FnMut(&LedgerRow<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        // All rows are kept anyway, so they come as one answer. The cursor of `each` costs a question a part.
        if let View::Server(open) = self.view(sql) {
            return open.rows(sql, params)?.iter().map(|row| map(&LedgerRow(RowSource::Server(row)))).collect();
        }
        let mut all = Vec::new();
        self.each(sql, params, |row| {
            all.push(map(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Gives each row to `visit` when it is read, in flat memory, until `visit` breaks.
    pub fn each(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut visit: impl FnMut(&LedgerRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let connection = match self.view(sql) {
            View::File(connection) => connection,
            View::Server(open) => return open.each(sql, params, visit),
        };
        let mut statement = prepare(connection, sql)?;
        let mut rows = statement.query(bound(params)).map_err(|e| diagnose(e, "reading the ledger"))?;
        while let Some(row) = rows.next().map_err(|e| diagnose(e, "reading the ledger"))? {
            if visit(&LedgerRow(RowSource::File(row)))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The view to run a statement on; debug builds check the order of its parameters first.
    fn view(&self, sql: &str) -> &View<'c> {
        debug_assert!(parameters_ascend(sql), "parameters must first appear in ascending order: {sql}");
        &self.view
    }
}

fn prepare<'c>(connection: &'c Connection, sql: &str) -> Result<CachedStatement<'c>> {
    faults::statement(sql);
    connection.prepare_cached(sql).map_err(|e| diagnose(e, "preparing a statement"))
}

fn bound<'a>(params: &'a [Param<'a>]) -> impl rusqlite::Params + 'a {
    rusqlite::params_from_iter(params.iter().map(|param| BoundValue(param.value())))
}

/// A write transaction: everything that is written through it is committed together, or not at all.
///
/// It reads as a [`Snapshot`] does. Only [`crate::Ledger::write`] begins and commits one.
pub struct Transaction<'c> {
    snapshot: Snapshot<'c>,
    // Set by the caller that opens it, so that no function between has to pass it on.
    actor: RefCell<Option<Actor>>,
}

impl<'c> Transaction<'c> {
    pub(crate) fn of_file(connection: &'c Connection) -> Self {
        Self { snapshot: Snapshot::of_file(connection), actor: RefCell::default() }
    }

    pub(crate) fn of_server(open: &'c OpenTransaction<'c>) -> Self {
        Self { snapshot: Snapshot::of_server(open), actor: RefCell::default() }
    }

    /// Says who writes the events from here on.
    pub fn act_as(&self, actor: Actor) {
        self.actor.replace(Some(actor));
    }

    /// Who writes its events.
    pub(crate) fn actor(&self) -> Option<Actor> {
        self.actor.borrow().clone()
    }

    /// Runs an INSERT or UPDATE and returns how many rows it changed.
    pub fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<usize> {
        match self.snapshot.view(sql) {
            View::File(connection) => {
                let mut statement = prepare(connection, sql)?;
                statement.execute(bound(params)).map_err(|e| diagnose(e, "writing the ledger"))
            }
            View::Server(open) => open.execute(sql, params),
        }
    }

    /// As [`Transaction::execute`], for a statement that must change exactly one row. Errors: `internal`, at the latest of the commit.
    pub fn execute_one(&self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        if let View::Server(open) = self.snapshot.view(sql) {
            // It is queued and sent with later statements, to save round trips; a wrong count is found when they are sent.
            return open.execute_one(sql, params);
        }
        match self.execute(sql, params)? {
            1 => Ok(()),
            n => Err(changed_other_than_one(n as u64, sql)),
        }
    }

    /// The seq and hash of the newest event, where the lock of a server's ledger has told them already.
    pub fn head(&self) -> Option<EventHead> {
        match self.snapshot.view {
            // To ask a file costs no round trip.
            View::File(_) => None,
            View::Server(open) => open.head(),
        }
    }

    /// Says which event is now the newest: by its hash a commit is known again whose answer was lost.
    pub fn appended(&self, head: EventHead) {
        // A file answers its commit in this process: that answer cannot be lost.
        if let View::Server(open) = self.snapshot.view {
            open.set_appended(head);
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
    // The first value of `SELECT $2, $1` goes to `$2` in SQLite, and to `$1` in PostgreSQL.
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
