//! Writing an archive.

use std::fs::File;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use ic_base::{Code, Diagnose, Diagnosis, Result};

use super::file::{APPLICATION_ID, Archive, ArchiveManifest, ArchivedTable, SCHEMA, VERSION, fingerprint, rows_table};
use crate::faults;
use crate::plan::{CutPlan, CutTable, PlanLine};
use crate::schema::parent::{has_parent, is_reference};
use crate::schema::{Column, ForeignKey, Rowid};
use crate::session::{DatabaseSession, quote};
use crate::value::SqlScalar;

/// Copies the rows that are to be deleted into a new archive, which is complete and durable when this returns. An unused one is replaced.
///
/// The caller holds the application's write lock and has changed nothing. `manifest` gets the tables.
/// Errors: nothing is left behind; only a crash may leave a file under another name.
pub(crate) fn write(
    archive: &Archive,
    database: &Path,
    busy_timeout: Duration,
    plan: &CutPlan,
    line: &PlanLine,
    manifest: &mut ArchiveManifest,
) -> Result<()> {
    let partial = archive.partial();
    let built = build(&partial, database, busy_timeout, plan, line, manifest)
        .and_then(|()| put_in_place(&partial, archive.path()));
    if built.is_err() {
        // A rest that cannot be removed now is replaced by the next attempt.
        let _ = std::fs::remove_file(&partial);
    }
    built
}

fn build(
    partial: &Path,
    database: &Path,
    busy_timeout: Duration,
    plan: &CutPlan,
    line: &PlanLine,
    manifest: &mut ArchiveManifest,
) -> Result<()> {
    faults::statement("-- making the archive")?;
    let made = || -> std::io::Result<()> {
        // A crash may have left one. It is removed and made anew, so that only its owner can read the new one.
        match std::fs::remove_file(partial) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        ic_ledger::private::create_new(partial).map(drop)
    };
    made().while_doing(|| format!("making {}", partial.display()))?;
    let session = DatabaseSession::open(database, busy_timeout)?.doing(format!(
        "copying rows of {} into the archive {}",
        database.display(),
        partial.display()
    ));
    session.attach(partial, SCHEMA)?;
    // Before it has its own name the file is worth nothing, so it needs no journal.
    session.batch(&format!(
        "PRAGMA {SCHEMA}.page_size=32768; PRAGMA {SCHEMA}.journal_mode=OFF; PRAGMA {SCHEMA}.synchronous=FULL"
    ))?;
    // Deferred: the connection of the rewind holds the write lock, and this one only reads the application's rows.
    session.batch("BEGIN DEFERRED")?;
    // Both read what no other connection can change now, so they run at once.
    let (tables, orphans) = thread::scope(|scope| {
        let orphans = scope.spawn(|| orphans(database, busy_timeout, plan, line));
        let copy = |(n, cut)| copy(&session, plan, cut, line, n);
        let tables: Result<Vec<ArchivedTable>> = plan.cuts.iter().enumerate().map(copy).collect();
        (tables, orphans.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    manifest.tables = tables?;
    for (table, orphans) in manifest.tables.iter_mut().zip(orphans?) {
        table.orphans = orphans;
    }
    let json = serde_json::to_string(manifest)
        .map_err(|e| Diagnosis::new(Code::Internal, format!("writing the archive: {e}.")).caused_by(e))?;
    session.batch(&format!("CREATE TABLE {SCHEMA}.manifest (json TEXT NOT NULL)"))?;
    session.execute(&format!("INSERT INTO {SCHEMA}.manifest (json) VALUES (?1)"), &[SqlScalar::Text(json)])?;
    session
        .batch(&format!("PRAGMA {SCHEMA}.application_id={APPLICATION_ID}; PRAGMA {SCHEMA}.user_version={VERSION}"))?;
    session.batch("COMMIT")
}

fn copy(session: &DatabaseSession, plan: &CutPlan, cut: &CutTable, line: &PlanLine, n: usize) -> Result<ArchivedTable> {
    let info = &cut.info;
    let columns: Vec<&Column> = info.stored().collect();
    let hidden = match &info.rowid {
        Rowid::Hidden(name) => Some(*name),
        _ => None,
    };
    // Columns without a type keep every storage class unchanged.
    let own: Vec<String> =
        hidden.map(|_| "r".to_owned()).into_iter().chain((0..columns.len()).map(|i| format!("c{i}"))).collect();
    let theirs: Vec<String> = hidden
        .map(str::to_owned)
        .into_iter()
        .chain(columns.iter().map(|c| quote(&c.name)))
        .map(|name| format!("c.{name}"))
        .collect();
    let rows = rows_table(n);
    session.batch(&format!("CREATE TABLE {rows} ({})", own.join(", ")))?;
    let doomed = plan.doomed(cut, line);
    let copied = session.execute(
        &format!(
            "INSERT INTO {rows} ({}) SELECT {} FROM main.{} AS c WHERE {}",
            own.join(", "),
            theirs.join(", "),
            quote(&info.name),
            doomed.sql
        ),
        &doomed.params,
    )?;
    Ok(ArchivedTable {
        name: info.name.clone(),
        columns: columns.iter().map(|c| c.name.clone()).collect(),
        rowid: hidden.is_some(),
        rows: copied,
        schema: fingerprint(info),
        orphans: Vec::new(),
    })
}

/// For each table, the number of rows to be deleted that have no parent, by each of its foreign keys.
fn orphans(database: &Path, busy_timeout: Duration, plan: &CutPlan, line: &PlanLine) -> Result<Vec<Vec<u64>>> {
    let session = DatabaseSession::open(database, busy_timeout)?
        .doing(format!("looking for parents of rows of {}", database.display()));
    let of_key = |cut: &CutTable, key: &ForeignKey| -> Result<u64> {
        // Compared as in an archive, whose columns have no type.
        let name = |column: &str| {
            let found = cut.info.stored().find(|c| c.name.eq_ignore_ascii_case(column));
            found.map(|c| format!("+c.{}", quote(&c.name)))
        };
        // A generated column is in no archive, so an undo does not check its key either.
        let (Some(refers), Some(parent)) = (is_reference(key, name), has_parent(key, name)) else {
            return Ok(0);
        };
        let (table, doomed) = (quote(&cut.info.name), plan.doomed(cut, line));
        let sql =
            format!("SELECT count(*) FROM main.{table} AS c WHERE ({}) AND {refers} AND NOT {parent}", doomed.sql);
        session.query_one(&sql, &doomed.params, |row| row.get::<_, i64>(0)).map(crate::order::unsigned)
    };
    let of_table = |cut: &CutTable| {
        let mut counts = Vec::new();
        for key in plan.keys.iter().filter(|key| key.child == cut.info.name) {
            // A key to a table that does not exist is not in the plan: all rows may be without a parent by that key.
            counts.resize(key.place, u64::MAX);
            counts.push(of_key(cut, key)?);
        }
        Ok(counts)
    };
    plan.cuts.iter().map(of_table).collect()
}

/// The archive's column with the values of `column`.
pub(crate) fn archived_column(columns: &[String], column: &str) -> Option<String> {
    columns.iter().position(|c| c.eq_ignore_ascii_case(column)).map(|n| format!("c{n}"))
}

fn put_in_place(partial: &Path, path: &Path) -> Result<()> {
    let doing = || format!("writing {}", path.display());
    // Content, then name, then directory, and only then are rows deleted: an archive that has its name is complete.
    faults::statement("-- syncing the archive")?;
    File::open(partial).and_then(|file| file.sync_all()).while_doing(doing)?;
    faults::statement("-- naming the archive")?;
    std::fs::rename(partial, path).while_doing(doing)?;
    faults::statement("-- syncing the archive's directory")?;
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|file| file.sync_all()).while_doing(doing)
}
