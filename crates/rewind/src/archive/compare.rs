//! An archive against the application's database.

use ic_base::{Code, Diagnosis, Result};

use super::file::{ArchiveManifest, ArchiveState, ArchivedTable, rows_table};
use super::write::archived_column;
use crate::order::unsigned;
use crate::plan::{COMPLETED, CutPlan, UNDONE};
use crate::schema::{Catalog, Rowid, TableInfo};
use crate::session::{DatabaseSession, quote};

/// The number of the `n`-th table's archived rows that are not in the database with exactly the same values.
pub(crate) fn missing_from(
    session: &DatabaseSession,
    info: &TableInfo,
    table: &ArchivedTable,
    n: usize,
) -> Result<u64> {
    let mut same = same_key(info, table);
    same.extend(table.columns.iter().enumerate().map(|(i, column)| {
        let column = quote(column);
        // `IS` takes 1 and 1.0 for the same, and an undo must restore the very value.
        format!("a.c{i} IS m.{column} AND typeof(a.c{i}) = typeof(m.{column})")
    }));
    without(session, info, n, &same)
}

/// SQL for each part of the key by which a row `m` is the archived row `a`. It comes first in a condition, because an index finds it.
fn same_key(info: &TableInfo, table: &ArchivedTable) -> Vec<String> {
    // Where a table has a key, a hidden rowid says nothing: it may have been assigned anew.
    let key: Vec<&str> = match &info.rowid {
        Rowid::Hidden(name) if !info.has_key() => return vec![format!("m.{name} = a.r")],
        Rowid::Column(column) => vec![column],
        _ => info.columns.iter().filter(|c| c.key_place > 0).map(|c| c.name.as_str()).collect(),
    };
    // A module finds a key only by `=`, and its keys are never NULL.
    let is = if info.is_virtual() { "=" } else { "IS" };
    let found =
        |column: &str| archived_column(&table.columns, column).map(|own| format!("m.{} {is} a.{own}", quote(column)));
    key.into_iter().filter_map(found).collect()
}

/// The number of the `n`-th table's archived rows `a` for which the database has no row `m` that satisfies all of `same`.
fn without(session: &DatabaseSession, info: &TableInfo, n: usize, same: &[String]) -> Result<u64> {
    let sql = format!(
        "SELECT count(*) FROM {} AS a WHERE NOT EXISTS (SELECT 1 FROM main.{} AS m WHERE {})",
        rows_table(n),
        quote(&info.name),
        same.join(" AND ")
    );
    session.query_one(&sql, &[], |row| row.get::<_, i64>(0)).map(unsigned)
}

/// Whether the rows of the attached archive are gone: by the audit if it has the archive, else by the rows themselves.
pub(crate) fn is_applied(
    session: &DatabaseSession,
    plan: &CutPlan,
    catalog: &Catalog,
    manifest: &ArchiveManifest,
) -> Result<ArchiveState> {
    if let Some(audit) = &plan.audit {
        // The audit row commits together with the deletes, so it tells for certain. An undo adds one of its own and removes none:
        // where both are, the rows are back.
        let (event, payload) = (quote(&audit.event), quote(&audit.payload));
        let sql = format!("SELECT {payload} FROM main.{} WHERE {event} = ?1", quote(&audit.table.name));
        let count = |event: &str| -> Result<usize> {
            let found = session.query_all(&sql, &[event.into()], |row| {
                Ok(row.get_ref(0)?.as_str().is_ok_and(|payload| names(payload, &manifest.rewind_id)))
            })?;
            Ok(found.into_iter().filter(|names_it| *names_it).count())
        };
        return match (count(COMPLETED)?, count(UNDONE)?) {
            // The rewind did not commit; or the application cleared its log.
            (0, 0) => without_audit_row(session, &audit.table.name, catalog, manifest),
            (_, 0) => Ok(ArchiveState::Applied),
            _ => Ok(ArchiveState::Undone),
        };
    }
    // Without an audit the rows alone tell. All deletes commit together, so a mixture can only be the application's doing.
    let all: u64 = manifest.tables.iter().map(|table| table.rows).sum();
    match missing(session, catalog, manifest)? {
        0 => Ok(ArchiveState::Unused),
        missing if missing == all => Ok(ArchiveState::Applied),
        missing => Err(Diagnosis::new(
            Code::RowConflict,
            format!("{missing} of the {all} archived rows are not in the database, and the others are."),
        )
        .hint("the application has changed them since; nothing was done")),
    }
}

/// Whether a payload of the audit is that of a rewind. An application may have written anything there.
fn names(payload: &str, rewind_id: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(payload).is_ok_and(|payload| payload["rewind_id"] == rewind_id)
}

/// The number of rows of the attached archive that are not in the database with the same values.
pub(crate) fn missing(session: &DatabaseSession, catalog: &Catalog, manifest: &ArchiveManifest) -> Result<u64> {
    let mut missing = 0;
    for (n, table) in manifest.tables.iter().enumerate() {
        missing += match catalog.table(&table.name) {
            Some(info) => missing_from(session, info, table, n)?,
            // The application dropped the table, and its rows with it.
            None => table.rows,
        };
    }
    Ok(missing)
}

/// The state by the rows alone. Rows are removed all at once: they are gone when none has its old values, and those of some table are not
/// found by their keys either.
///
/// The application may have changed some of them after a rewind that did not commit, and may have assigned keys anew after one that did.
fn without_audit_row(
    session: &DatabaseSession,
    log: &str,
    catalog: &Catalog,
    manifest: &ArchiveManifest,
) -> Result<ArchiveState> {
    let filled = || manifest.tables.iter().enumerate().filter(|(_, table)| table.rows > 0);
    // Rows of the log itself are gone in either case once it was cleared.
    let tells = filled().any(|(_, table)| table.name != log);
    let mut state = ArchiveState::Unused;
    for (n, table) in filled().filter(|(_, table)| !tells || table.name != log) {
        let Some(info) = catalog.table(&table.name) else {
            // The table was dropped, which says nothing of the others: one row that has its old values there still means `Unused`.
            state = ArchiveState::Applied;
            continue;
        };
        if missing_from(session, info, table, n)? < table.rows {
            return Ok(ArchiveState::Unused);
        }
        if without(session, info, n, &same_key(info, table))? == table.rows {
            state = ArchiveState::Applied;
        }
    }
    Ok(state)
}
