//! Restoring what a rewind removed.

use ic_base::{Code, Diagnosis, Result, Timestamp};
use serde::Serialize;

use super::audit;
use super::moment::{RelationalRollbackEngine, unexpected};
use crate::archive::{
    Archive, ArchiveManifest, ArchiveState, ArchivedTable, SCHEMA, archived_column, fingerprint, is_applied,
    missing_from, rows_table,
};
use crate::config::Triggers;
use crate::error::{RowNames, UndoError};
use crate::order::{names_of, unsigned};
use crate::plan::{CutPlan, UNDONE, refuse_triggers};
use crate::references::points_into_archive;
use crate::schema::parent::{has_parent, is_reference};
use crate::schema::{Catalog, Rowid, TableInfo, module};
use crate::session::{DatabaseSession, quote};
use crate::value::{RowCounts, SqlScalar};

/// The result of an undo, or of its preview.
pub type UndoResult<T> = std::result::Result<T, UndoError>;

/// What an undo restored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UndoReport {
    /// The rewind that was undone.
    pub rewind_id: String,
    /// The task to which that rewind went.
    pub task_id: Option<String>,
    /// The numbers of restored rows, in the order of restoring.
    pub restored_row_counts: RowCounts,
}

impl RelationalRollbackEngine {
    /// Restores the rows of `archive` exactly, in one transaction. The archive stays.
    ///
    /// Errors: [`UndoError::AllThere`] (`nothing_to_undo`) when they are there already; `row_conflict`, naming rows, when a table has
    /// another schema now, rows with the same keys were written since, or a row's parent is gone; `path_not_found`, `corrupt`. After any
    /// error the database is unchanged.
    pub fn undo(&mut self, archive: &Archive, now: Timestamp) -> UndoResult<UndoReport> {
        let manifest = archive.manifest()?;
        // A connection of its own, because the archive stays attached to it and constraints are not checked in it.
        let session = DatabaseSession::open(&self.target.database, self.options.busy_timeout)?;
        session.attach(archive.path(), SCHEMA)?;
        // Rows that were in the table once may return, whatever a constraint says that was added since.
        session.batch("PRAGMA ignore_check_constraints=ON")?;
        session.writing(|| {
            let catalog = Catalog::read(&session)?;
            let plan = CutPlan::new(&self.target, &catalog)?;
            let tables = fitting_tables(&session, &plan, &catalog, &manifest)?;
            // Parents first, in reverse of the order in which rows were removed.
            for (n, (info, table)) in tables.iter().zip(&manifest.tables).enumerate().rev() {
                put_back(&session, info, table, n)?;
            }
            // Checked after the last table, because parents and triggers may be in any of them.
            for (n, (info, table)) in tables.iter().zip(&manifest.tables).enumerate() {
                if missing_from(&session, info, table, n)? > 0 {
                    return Err(unexpected(&info.name, "Some rows would not come back as they were").into());
                }
                refuse_lost_parents(&session, &plan, info, table, n, &[])?;
            }
            let report = UndoReport::of(&manifest);
            if let Some(audit) = &plan.audit {
                let entry = audit::AuditEntry {
                    event: UNDONE,
                    rewind_id: &manifest.rewind_id,
                    task_id: manifest.task_id.as_deref(),
                    order: &manifest.order,
                    now,
                    // It is looked for after the rows are back, so that none of them has it.
                    rowid: audit::free_rowid(&session, audit)?,
                };
                audit::write(&session, audit, &entry, &report)?;
            }
            Ok(report)
        })
    }

    /// What [`undo`](Self::undo) would do now. Nothing is locked or changed.
    ///
    /// Errors: those of `undo`, except what the application's triggers and its constraints over expressions refuse: only `undo` meets
    /// those.
    pub fn preview_undo(&self, archive: &Archive) -> UndoResult<UndoReport> {
        self.beside(archive, |session, catalog, manifest| {
            let plan = CutPlan::new(&self.target, catalog)?;
            let tables = fitting_tables(session, &plan, catalog, manifest)?;
            for (n, (info, table)) in tables.iter().zip(&manifest.tables).enumerate() {
                refuse_lost_parents(session, &plan, info, table, n, &manifest.tables)?;
            }
            Ok(UndoReport::of(manifest))
        })
    }
}

impl UndoReport {
    fn of(manifest: &ArchiveManifest) -> Self {
        let mut rows = RowCounts::default();
        for table in manifest.tables.iter().rev() {
            rows.push(&table.name, table.rows);
        }
        Self { rewind_id: manifest.rewind_id.clone(), task_id: manifest.task_id.clone(), restored_row_counts: rows }
    }
}

/// The tables of the archive, when its rows are gone from them and still fit. Errors: [`UndoError::AllThere`], `row_conflict`.
fn fitting_tables<'a>(
    session: &DatabaseSession,
    plan: &CutPlan,
    catalog: &'a Catalog,
    manifest: &ArchiveManifest,
) -> UndoResult<Vec<&'a TableInfo>> {
    let tables = same_tables(plan, catalog, manifest)?;
    require_whole(session, manifest)?;
    // This is asked before conflicts: rows that are back would be named as conflicts with themselves.
    if is_there(session, plan, catalog, manifest, &tables)? {
        return Err(UndoError::AllThere { rewind_id: manifest.rewind_id.clone() });
    }
    // Tables come in the order of restoring, so the error is the one that the undo would meet first.
    for (n, (info, table)) in tables.iter().zip(&manifest.tables).enumerate().rev() {
        refuse_conflicts(session, info, table, n)?;
    }
    Ok(tables)
}

/// Errors: `corrupt` if the archive does not hold as many rows as it says.
fn require_whole(session: &DatabaseSession, manifest: &ArchiveManifest) -> Result<()> {
    for (n, table) in manifest.tables.iter().enumerate() {
        let sql = format!("SELECT count(*) FROM {}", rows_table(n));
        let held = session.query_one(&sql, &[], |row| row.get(0)).map(unsigned)?;
        if held != table.rows {
            let rows = format!("{} rows of {} were archived, and {held} are there", table.rows, table.name);
            return Err(Diagnosis::new(
                Code::Corrupt,
                format!("The archive of the rewind {} is damaged: {rows}.", manifest.rewind_id),
            )
            .hint("put a whole copy of it in its place, and undo again; nothing was changed")
            .detail("table", table.name.as_str()));
        }
    }
    Ok(())
}

/// The tables of the archive as the database has them now. Errors: `row_conflict` when the schema of one changed.
fn same_tables<'a>(plan: &CutPlan, catalog: &'a Catalog, manifest: &ArchiveManifest) -> Result<Vec<&'a TableInfo>> {
    let mut tables = Vec::new();
    for table in &manifest.tables {
        let changed = |how: &str| {
            Diagnosis::new(Code::TableConflict, format!("The table {} {how} since the rewind.", table.name))
                .hint("its archived rows no longer fit; nothing was changed")
                .detail("table", table.name.as_str())
        };
        let info = catalog.table(&table.name).ok_or_else(|| changed("was removed"))?;
        if fingerprint(info) != table.schema {
            return Err(changed("was changed"));
        }
        // The configuration does not name the table any more, so nothing says that its triggers may fire.
        if plan.cut(&info.name).is_none() {
            refuse_triggers(info, Triggers::Refuse)?;
        }
        tables.push(info);
    }
    Ok(tables)
}

/// Whether all rows are in the tables already.
fn is_there(
    session: &DatabaseSession,
    plan: &CutPlan,
    catalog: &Catalog,
    manifest: &ArchiveManifest,
    tables: &[&TableInfo],
) -> Result<bool> {
    // Without an audit the rows decide below. `is_applied` would refuse a mixture of rows here, and the conflicts that follow
    // name them.
    if plan.audit.is_some() {
        match is_applied(session, plan, catalog, manifest)? {
            ArchiveState::Applied => return Ok(false),
            ArchiveState::Undone => return Ok(true),
            // The audit may have been cleared; then the rows decide.
            ArchiveState::Unused => {}
        }
    }
    for (n, (info, table)) in tables.iter().zip(&manifest.tables).enumerate() {
        if missing_from(session, info, table, n)? > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Errors: `row_conflict`, which names rows that have a key of an archived row.
fn refuse_conflicts(session: &DatabaseSession, info: &TableInfo, table: &ArchivedTable, n: usize) -> Result<()> {
    let mut ways: Vec<String> = Vec::new();
    if let (Rowid::Hidden(name), false) = (&info.rowid, info.has_key()) {
        ways.push(format!("m.{name} = a.r"));
    }
    for unique in &info.unique {
        // Parts that are NULL conflict with nothing, as `=` has it. A key with a generated column is left out: it is in no archive.
        let same = |column: &String| {
            archived_column(&table.columns, column).map(|own| format!("m.{} = a.{own}", quote(column)))
        };
        ways.extend(unique.iter().map(same).collect::<Option<Vec<_>>>().map(|parts| parts.join(" AND ")));
    }
    let key = info.key("m");
    for way in ways {
        let sql = format!(
            "SELECT {} FROM {} AS a JOIN main.{} AS m ON {way} LIMIT {}",
            key.join(", "),
            rows_table(n),
            quote(&info.name),
            // The limit is one more than is named, so that the message can say that there are others.
            RowNames::LIMIT + 1
        );
        let names = names_of(session, &info.name, key.len(), &sql, &[])?;
        if !names.is_empty() {
            return Err(names
                .refuse("These rows were written since the rewind, and have the keys of rows that would come back")
                .hint("remove them or give them other keys, and undo again")
                .detail("table", info.name.as_str()));
        }
    }
    Ok(())
}

fn put_back(session: &DatabaseSession, info: &TableInfo, table: &ArchivedTable, n: usize) -> Result<()> {
    let theirs: Vec<String> = table.columns.iter().map(|c| quote(c)).collect();
    let own = table.columns.iter().enumerate().map(|(i, column)| {
        let value = format!("c{i}");
        info.column(column).map_or(value.clone(), |column| module::as_vector(column, &value))
    });
    let own: Vec<String> = own.collect();
    let (theirs, own, rows, name) = (theirs.join(", "), own.join(", "), rows_table(n), quote(&info.name));
    // `OR ABORT` overrides what the schema says about conflicts, which may be to replace rows.
    let insert = format!("INSERT OR ABORT INTO main.{name}");
    let restored = match &info.rowid {
        Rowid::Hidden(rowid) => {
            // New rows of the application may have taken these rowids; rows with a key can get others.
            let taken = format!("SELECT r FROM {rows} WHERE r IN (SELECT {rowid} FROM main.{name})");
            let taken = session.query_all(&taken, &[], |row| row.get::<_, i64>(0))?;
            let exact = format!(
                "{insert} ({rowid}, {theirs}) SELECT r, {own} FROM {rows} AS a \
                 WHERE NOT EXISTS (SELECT 1 FROM main.{name} AS m WHERE m.{rowid} = a.r) ORDER BY r"
            );
            let mut restored = session.execute(&exact, &[])?;
            let anew = format!("{insert} ({theirs}) SELECT {own} FROM {rows} WHERE r = ?1");
            for rowid in taken {
                restored += session.execute(&anew, &[SqlScalar::Integer(rowid)])?;
            }
            restored
        }
        _ => session.execute(&format!("{insert} ({theirs}) SELECT {own} FROM {rows} ORDER BY rowid"), &[])?,
    };
    if restored == table.rows {
        return Ok(());
    }
    Err(unexpected(&info.name, &format!("{} rows are archived but {restored} came back", table.rows)))
}

/// Errors: `row_conflict` when rows were restored whose parents were deleted since. `to_come`: the archived tables whose rows are still to
/// be restored.
fn refuse_lost_parents(
    session: &DatabaseSession,
    plan: &CutPlan,
    info: &TableInfo,
    table: &ArchivedTable,
    n: usize,
    to_come: &[ArchivedTable],
) -> Result<()> {
    for key in plan.keys.iter().filter(|key| key.child == info.name) {
        // The place of the key finds its number: the table of another key may have been made or dropped since. If there is no number, the
        // table of this key was made since.
        let Some(were_orphans) = table.orphans.get(key.place) else { continue };
        let name = |column: &str| archived_column(&table.columns, column).map(|c| format!("a.{c}"));
        let (Some(refers), Some(parent)) = (is_reference(key, name), has_parent(key, name)) else { continue };
        let mut orphans = format!("FROM {} AS a WHERE {refers} AND NOT {parent}", rows_table(n));
        for (p, parents) in to_come.iter().enumerate().filter(|(_, parents)| parents.name == key.parent) {
            // A key that cannot be compared with the archive refuses no preview: the undo looks again once all rows are back.
            let comes_too = points_into_archive(session, key, name, p, parents)?;
            orphans.push_str(&format!(" AND NOT {}", comes_too.unwrap_or_else(|| "TRUE".to_owned())));
        }
        let now = session.query_one(&format!("SELECT count(*) {orphans}"), &[], |row| row.get(0)).map(unsigned)?;
        // Rows that had no parent before the rewind may have none again.
        if now <= *were_orphans {
            continue;
        }
        let of_key: Vec<String> = key.columns.iter().filter_map(|(from, _)| name(from)).collect();
        let sql = format!("SELECT DISTINCT {} {orphans} LIMIT {}", of_key.join(", "), RowNames::LIMIT + 1);
        return Err(names_of(session, &key.parent, of_key.len(), &sql, &[])?
            .refuse(&format!("Rows of {} would come back whose parents are gone", info.name))
            .hint("restore these parents, and undo again")
            .detail("table", info.name.as_str()));
    }
    Ok(())
}
