//! Foreign keys, checked by query because they are not enforced during a rewind.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, available_parallelism};

use ic_base::{Diagnosis, Result};

use crate::archive::{Archive, ArchiveManifest, ArchivedTable, SCHEMA, archived_column, rows_table};
use crate::error::RowNames;
use crate::order::names_of;
use crate::plan::{CutPlan, CutTable, PlanLine};
use crate::schema::parent::{has_parent, is_reference, same_parent};
use crate::schema::{Catalog, ForeignKey};
use crate::session::{DatabaseSession, quote};

/// Looks for rows that would stay and refer to rows of `cuts` to be removed: [`check_survivors`] before anything is deleted. Where the
/// database `is_large`, other connections help: a lookup for each row that stays takes most of the time of a large rewind.
///
/// Errors: `row_conflict`, which names rows.
pub(crate) fn refuse_survivors(
    session: &DatabaseSession,
    plan: &CutPlan,
    catalog: &Catalog,
    (cuts, line): (&[&CutTable], &PlanLine),
    is_large: bool,
) -> Result<()> {
    let keys_of = |cut| plan.keys.iter().filter(move |key: &&ForeignKey| key.parent == cut_name(cut));
    let looks: Vec<_> = cuts.iter().flat_map(|cut| keys_of(cut).map(move |key| (*cut, key))).collect();
    let look = |session: &DatabaseSession, (cut, key): (&CutTable, &ForeignKey)| {
        refuse_survivors_by(session, plan, catalog, (cut, line), key)
    };
    let helpers = if is_large { available_parallelism().map_or(1, NonZero::get).min(looks.len()) } else { 1 };
    if helpers < 2 {
        return looks.into_iter().try_for_each(|one| look(session, one));
    }
    let next = AtomicUsize::new(0);
    let work = |session: &DatabaseSession| -> Vec<(usize, Diagnosis)> {
        // Looks differ in length, so each connection takes the next one when it is ready, and has no fixed share.
        let take = || Some(next.fetch_add(1, Relaxed)).and_then(|n| Some((n, *looks.get(n)?)));
        std::iter::from_fn(take).filter_map(|(n, one)| Some((n, look(session, one).err()?))).collect()
    };
    let (path, patience) = (session.path(), session.patience());
    // Without another connection, the first one does all the work.
    let help = || DatabaseSession::open(path, patience).map_or_else(|_| Vec::new(), |session| work(&session));
    let refusals = thread::scope(|scope| {
        let others: Vec<_> = (1..helpers).map(|_| scope.spawn(help)).collect();
        let mut refusals = work(session);
        for other in others {
            refusals.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        refusals
    });
    // The refusal that a search in order would have met first.
    refusals.into_iter().min_by_key(|(n, _)| *n).map_or(Ok(()), |(_, refusal)| Err(refusal))
}

fn cut_name(cut: &CutTable) -> &str {
    &cut.info.name
}

/// Looks for rows that would stay and refer by `key` to rows of `cut` to be removed.
fn refuse_survivors_by(
    session: &DatabaseSession,
    plan: &CutPlan,
    catalog: &Catalog,
    (cut, line): (&CutTable, &PlanLine),
    key: &ForeignKey,
) -> Result<()> {
    let doomed = plan.doomed(cut, line);
    let name = |column: &str| Some(format!("c.{}", quote(column)));
    // Both are always there: `name` knows every column of a table in the database.
    let (Some(refers), Some(parent)) = (is_reference(key, name), same_parent(key, name)) else {
        return Ok(());
    };
    let goes = plan.doomed_as(cut, line, "p");
    let table = quote(&key.parent);
    // `IS NOT TRUE`, because a comparison with NULL is neither true nor false: such a row stays.
    let stays = plan
        .cut(&key.child)
        .map_or_else(String::new, |child| format!("({}) IS NOT TRUE AND ", plan.doomed_as(child, line, "c")));
    let row_key = row_key(catalog, key);
    // The last condition is needed because the parent's columns need not be unique: another row with the same values may stay.
    let sql = format!(
        "SELECT {} FROM main.{} AS c WHERE {refers} \
         AND EXISTS (SELECT 1 FROM main.{table} AS p WHERE {parent} AND {goes}) AND {stays}\
         NOT EXISTS (SELECT 1 FROM main.{table} AS p WHERE {parent} AND ({goes}) IS NOT TRUE) LIMIT {}",
        row_key.join(", "),
        quote(&key.child),
        RowNames::LIMIT + 1
    );
    let names = names_of(session, &key.child, row_key.len(), &sql, &doomed.params)?;
    if names.is_empty() { Ok(()) } else { Err(refused(&names, key)) }
}

/// SQL for the columns that name a row `c` which refers by `key`.
fn row_key(catalog: &Catalog, key: &ForeignKey) -> Vec<String> {
    catalog.table(&key.child).map(|child| child.key("c")).unwrap_or_default()
}

fn refused(names: &RowNames, key: &ForeignKey) -> Diagnosis {
    names
        .refuse(&format!("These rows would stay, but refer to rows of {} that would go", key.parent))
        .hint("rewind to a later task, or add the table to the configuration")
        .detail("table", key.child.as_str())
        .detail("parent", key.parent.as_str())
}

/// Proves that no row that stays refers to one that was deleted. A row that referred to nothing before does not matter.
///
/// Called after the deletes, in their transaction. Errors: `row_conflict`, which names rows.
pub(crate) fn check_survivors(
    session: &DatabaseSession,
    plan: &CutPlan,
    catalog: &Catalog,
    archive: &Archive,
    manifest: &ArchiveManifest,
) -> Result<()> {
    let mut attached = false;
    // A table that lost no row has left no row without its parent.
    let shrunk = manifest.tables.iter().enumerate().filter(|(_, table)| table.rows > 0);
    let keys = shrunk.flat_map(|(n, table)| {
        plan.keys.iter().filter(move |key| key.parent == table.name).map(move |key| (n, table, key))
    });
    for (n, table, key) in keys {
        let name = |column: &str| Some(format!("c.{}", quote(column)));
        let tests = [is_reference(key, name), has_parent(key, name).map(|parent| format!("NOT {parent}"))];
        let tests: Vec<String> = tests.into_iter().flatten().collect();
        let dangling = format!("FROM main.{} AS c WHERE {}", quote(&key.child), tests.join(" AND "));
        // For most keys no row dangles, and then the archive need not be attached.
        if session.query_all(&format!("SELECT 1 {dangling} LIMIT 1"), &[], |_| Ok(()))?.is_empty() {
            continue;
        }
        if !attached {
            session.attach(archive.path(), SCHEMA)?;
            attached = true;
        }
        // A reference by a column that is not archived may be new, so it counts as one to a deleted row.
        let was_deleted = points_into_archive(session, key, name, n, table)?;
        let was_deleted = was_deleted.unwrap_or_else(|| "TRUE".to_owned());
        let row_key = row_key(catalog, key);
        let sql = format!("SELECT {} {dangling} AND {was_deleted} LIMIT {}", row_key.join(", "), RowNames::LIMIT + 1);
        let names = names_of(session, &key.child, row_key.len(), &sql, &[])?;
        if !names.is_empty() {
            return Err(refused(&names, key));
        }
    }
    Ok(())
}

/// SQL that is true for rows whose parent by `key` was archived, compared with the collation of the parent's columns. `None` where that is
/// not known, because generated columns are not archived.
pub(crate) fn points_into_archive(
    session: &DatabaseSession,
    key: &ForeignKey,
    name: impl Fn(&str) -> Option<String>,
    n: usize,
    table: &ArchivedTable,
) -> Result<Option<String>> {
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for (from, to) in &key.columns {
        let (Some(own_column), Some(archived)) = (name(from), archived_column(&table.columns, to)) else {
            return Ok(None);
        };
        // SQLite compares keys by the collation of the parent's column, which the archive's columns do not have.
        let collation = session.query_all(
            "SELECT x.coll FROM pragma_index_list(?1, 'main') AS i JOIN pragma_index_xinfo(i.name, 'main') AS x \
             WHERE i.\"unique\" AND x.name = ?2 COLLATE NOCASE LIMIT 1",
            &[key.parent.as_str().into(), to.as_str().into()],
            |row| row.get::<_, String>(0),
        )?;
        let collation = collation.first().map_or("BINARY", String::as_str);
        own.push(format!("{own_column} COLLATE {}", quote(collation)));
        theirs.push(archived);
    }
    Ok(Some(format!("({}) IN (SELECT {} FROM {})", own.join(", "), theirs.join(", "), rows_table(n))))
}
