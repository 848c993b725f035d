//! An archive against the application's database.

use ic_base::{Code, Diagnosis, Result};

use super::write::archived_column;
use super::{ArchiveState, ArchivedTable, Manifest, rows_table};
use crate::order::unsigned;
use crate::plan::{COMPLETED, Plan, UNDONE};
use crate::schema::{Rowid, TableInfo};
use crate::session::{Session, quote};

/// How many of the `n`-th table's archived rows are not in the database with exactly the same values.
pub(crate) fn missing_from(
    session: &Session,
    info: &TableInfo,
    table: &ArchivedTable,
    n: usize,
) -> Result<u64> {
    let mut same: Vec<String> = table
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let column = quote(column);
            format!("a.c{i} IS m.{column} AND typeof(a.c{i}) = typeof(m.{column})")
        })
        .collect();
    // What an index finds comes first. Where there is a key, a hidden rowid says nothing: it may have been given anew.
    let key: Vec<&str> = match &info.rowid {
        Rowid::Hidden(name) if !info.has_key() => {
            same.insert(0, format!("m.{name} = a.r"));
            Vec::new()
        }
        Rowid::Column(column) => vec![column],
        _ => info.columns.iter().filter(|c| c.key_place > 0).map(|c| c.name.as_str()).collect(),
    };
    // A module looks a key up by `=` alone, and its keys are never NULL.
    let is = if info.is_virtual() { "=" } else { "IS" };
    let found = |column: &str| {
        archived_column(&table.columns, column).map(|own| format!("m.{} {is} a.{own}", quote(column)))
    };
    same.splice(0..0, key.into_iter().filter_map(found));
    let sql = format!(
        "SELECT count(*) FROM {} AS a WHERE NOT EXISTS (SELECT 1 FROM main.{} AS m WHERE {})",
        rows_table(n),
        quote(&info.name),
        same.join(" AND ")
    );
    session.query_one(&sql, &[], |row| row.get::<_, i64>(0)).map(unsigned)
}

/// Whether the rows of the attached archive are gone: by the audit if there is one, else by the rows themselves.
pub(crate) fn is_applied(
    session: &Session,
    plan: &Plan,
    catalog: &crate::schema::Catalog,
    manifest: &Manifest,
) -> Result<ArchiveState> {
    if let Some(audit) = &plan.audit {
        let (event, payload) = (quote(&audit.event), quote(&audit.payload));
        let sql = format!(
            "SELECT count(*) FROM main.{} WHERE {event} = ?1 AND \
             CASE WHEN json_valid({payload}) THEN json_extract({payload}, '$.rewind_id') END = ?2",
            quote(&audit.table.name)
        );
        let count = |event: &str| {
            session.query_one(&sql, &[event.into(), manifest.rewind_id.as_str().into()], |row| {
                row.get::<_, i64>(0)
            })
        };
        return Ok(match (count(COMPLETED)?, count(UNDONE)?) {
            (0, _) => ArchiveState::Unused,
            (_, 0) => ArchiveState::Applied,
            _ => ArchiveState::Undone,
        });
    }
    let (mut missing, mut all) = (0, 0);
    for (n, table) in manifest.tables.iter().enumerate() {
        all += table.rows;
        missing += match catalog.table(&table.name) {
            Some(info) => missing_from(session, info, table, n)?,
            None => table.rows,
        };
    }
    match missing {
        0 => Ok(ArchiveState::Unused),
        _ if missing == all => Ok(ArchiveState::Applied),
        _ => Err(Diagnosis::new(
            Code::Conflict,
            format!("{missing} of the {all} archived rows are not in the database, and the others are."),
        )
        .hint("the application has changed them since; nothing was done")),
    }
}
