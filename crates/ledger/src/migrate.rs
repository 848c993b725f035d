//! Bringing a ledger to the newest schema.
//!
//! Migrations and their history rows are one transaction under a file lock, so that many processes may start at
//! once and a crash leaves the old schema whole. `user_version` mirrors the newest applied migration: a process
//! start compares one integer and never runs the migrator. Before existing data is migrated, a consistent copy of
//! the ledger (mode 0600) is laid beside it.

use std::path::Path;
use std::time::Duration;

use ic_base::{Code, Context, Diagnose, Diagnosis, Result, Timestamp};
use refinery_core::traits::sync as refinery_sync;
use refinery_core::{Migration, Runner};
use rusqlite::Connection;

use crate::connection::{OpenOptions, OpenedLedger, connect, no_room, use_wal};
use crate::error::{busy, diagnose, no_ledger};
use crate::identity::APPLICATION_ID;
use crate::lock::{FileLock, LockMode, Rank};
use crate::log::sibling;
use crate::{faults, identity, private};

mod embedded {
    refinery::embed_migrations!("../../migrations/sqlite");
}

/// The schema version that this program reads and writes.
pub const LATEST: i32 = 11;

/// The schema version of the file, 0 for a ledger restored from a dump.
///
/// Errors: `foreign_database`, `newer_schema`, `corrupt`.
pub(crate) fn version_of(connection: &Connection, path: &Path) -> Result<i32> {
    let read = |pragma: &str| {
        connection
            .query_row(pragma, [], |row| row.get::<_, i32>(0))
            .map_err(|e| diagnose(e, &format!("opening the ledger {}", path.display())))
    };
    //   application_id   user_version     tables
    //   ours             up to LATEST     any      a ledger, perhaps of an older schema
    //   ours             more             any      a ledger of a newer program
    //   0                0                ours     restored from a dump
    //   0                0                none     what a crash left of a new ledger
    //   anything else                              a database of another program
    let version = read("PRAGMA user_version")?;
    match read("PRAGMA application_id")? {
        APPLICATION_ID if version <= LATEST => Ok(version),
        APPLICATION_ID => Err(newer(&path.display().to_string(), version)),
        0 if version == 0 && has_our_tables(connection)? => Ok(0),
        0 if version == 0 && is_blank(connection)? => Err(no_ledger(path, "is empty")),
        _ => Err(Diagnosis::new(
            Code::ForeignDatabase,
            format!("{} is a database, but not a ledger of ic.", path.display()),
        )
        .hint("see which file is used: ic where; choose another: --db PATH")),
    }
}

/// The ledger was written by a newer program.
pub(crate) fn newer(name: &str, version: i32) -> Diagnosis {
    Diagnosis::new(Code::NewerSchema, format!("The ledger {name} has schema {version}; this program knows {LATEST}."))
        .hint("use the newer ic that wrote it")
        .detail("schema_version", version)
        .detail("supported", LATEST)
}

/// A `.dump` keeps the tables but neither `application_id` nor `user_version`.
fn has_our_tables(connection: &Connection) -> Result<bool> {
    connection
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('refinery_schema_history', 'events', 'event_head')",
            [],
            |row| row.get::<_, i64>(0),
        )
        .map(|n| n == 3)
        .map_err(|e| diagnose(e, "reading the ledger's tables"))
}

/// What a crash leaves of a ledger whose schema was not yet committed: a database without marks and tables.
fn is_blank(connection: &Connection) -> Result<bool> {
    let mark = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    mark("PRAGMA application_id")
        .and_then(|id| mark("PRAGMA user_version").map(|version| id | version))
        .and_then(|marks| mark("SELECT count(*) FROM sqlite_schema").map(|tables| marks | tables))
        .map(|found| found == 0)
        .map_err(|e| diagnose(e, "reading the ledger's tables"))
}

/// Applies what is missing, in one transaction. Errors: `migration_failed` (nothing was changed), `busy`.
pub(crate) fn bring_up_to_date(
    connection: &mut Connection,
    path: &Path,
    options: OpenOptions,
    context: &Context,
) -> Result<()> {
    // Of many processes that find an old ledger, one migrates; the others wait here and find it done.
    let _lock = lock(path, options.busy_timeout)?;
    // Before the transaction, because SQLite changes the mode only outside of one. A ledger from a dump has no log yet.
    use_wal(connection, options.busy_timeout)?;
    immediate(connection, |connection| {
        // Another process may have been here while this one waited for the lock.
        let version = version_of(connection, path)?;
        if version == LATEST {
            return Ok(());
        }
        if version > 0 {
            back_up(path, options, version, context.now())?;
        }
        apply(connection, context)
    })
}

/// Makes a new ledger at `path`, or finishes one that a crash left empty. An existing ledger is opened and kept.
pub(crate) fn create(path: &Path, options: OpenOptions, context: &Context) -> Result<bool> {
    // Of two processes that make a ledger at once, the second must find it whole and keep it.
    let lock = lock(path, options.busy_timeout)?;
    if !path.exists() {
        // Made here and not by SQLite: it must have mode 0600 from its first byte on.
        faults::statement("-- making the file");
        private::create_new(path).map(drop).while_doing(|| format!("creating {}", path.display()))?;
    }
    let OpenedLedger { mut connection, alone, .. } = connect(path, options)?;
    if alone.is_some() {
        return Err(no_room(path));
    }
    if is_blank(&connection)? {
        use_wal(&connection, options.busy_timeout)?;
        create_schema(&mut connection, context)?;
        return Ok(true);
    }
    if version_of(&connection, path)? != LATEST {
        // `bring_up_to_date` takes the same lock: it would wait for the lock that this call holds.
        drop(lock);
        bring_up_to_date(&mut connection, path, options, context)?;
    }
    Ok(false)
}

/// Applies every migration to an empty database.
pub(crate) fn create_schema(connection: &mut Connection, context: &Context) -> Result<()> {
    immediate(connection, |connection| apply(connection, context))
}

fn immediate(connection: &mut Connection, work: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
    // One transaction over all migrations: a crash in between leaves the older schema whole.
    faults::statement("BEGIN IMMEDIATE");
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(|e| diagnose(e, "waiting for the ledger"))?;
    work(&transaction)?;
    faults::statement("COMMIT");
    transaction.commit().map_err(|e| diagnose(e, "committing the migration"))?;
    faults::statement("-- committed");
    Ok(())
}

fn apply(connection: &Connection, context: &Context) -> Result<()> {
    runner().run(&mut InTransaction(connection)).map_err(|e| {
        Diagnosis::new(
            Code::MigrationFailed,
            format!("The ledger could not be brought to schema {LATEST}: {}. Nothing was changed.", reason(&e)),
        )
        .hint("the copy beside the ledger, if there is one, is from before this attempt")
        .caused_by(e)
    })?;
    // In the transaction of the migration and under its lock: no process ever sees a ledger of this schema without an id, nor two ids.
    identity::give(connection, &context.new_ledger_id())?;
    faults::statement("PRAGMA application_id");
    connection
        .execute_batch(&format!("PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={LATEST};"))
        .map_err(|e| diagnose(e, "marking the ledger"))
}

/// The error of SQLite, without the text of the whole migration.
fn reason(error: &refinery_core::Error) -> String {
    match std::error::Error::source(error).and_then(|e| e.downcast_ref()) {
        Some(rusqlite::Error::SqlInputError { msg, .. }) => msg.clone(),
        Some(other) => other.to_string(),
        None => error.to_string(),
    }
}

fn runner() -> Runner {
    embedded::migrations::runner().set_grouped(true)
}

/// The connection as refinery wants it, inside the transaction that we already hold.
struct InTransaction<'c>(&'c Connection);

impl refinery_sync::Transaction for InTransaction<'_> {
    type Error = rusqlite::Error;

    fn execute<'a, T: Iterator<Item = &'a str>>(&mut self, queries: T) -> rusqlite::Result<usize> {
        let mut count = 0;
        for query in queries {
            faults::statement(query);
            self.0.execute_batch(query)?;
            count += 1;
        }
        Ok(count)
    }
}

impl refinery_sync::Query<Vec<Migration>> for InTransaction<'_> {
    fn query(&mut self, query: &str) -> rusqlite::Result<Vec<Migration>> {
        let mut statement = self.0.prepare(query)?;
        let rows = statement.query_map([], |row| {
            let applied_on: String = row.get(2)?;
            let checksum: String = row.get(3)?;
            let wrong = |column| {
                rusqlite::Error::InvalidColumnType(
                    column,
                    "refinery_schema_history".into(),
                    rusqlite::types::Type::Text,
                )
            };
            let applied_on = time::OffsetDateTime::parse(&applied_on, &time::format_description::well_known::Rfc3339)
                .map_err(|_| wrong(2))?;
            let checksum = checksum.parse().map_err(|_| wrong(3))?;
            Ok(Migration::applied(row.get(0)?, row.get(1)?, applied_on, checksum))
        })?;
        rows.collect()
    }
}

impl refinery_sync::Migrate for InTransaction<'_> {}

/// Copies the ledger before its migration. The caller holds the write lock, so nothing changes during the copy.
fn back_up(path: &Path, options: OpenOptions, version: i32, now: Timestamp) -> Result<()> {
    let target = sibling(path, &format!(".v{version}-{}.backup", now.millis()));
    // It gets its name once it is whole: a person must not take what a crash left for a backup.
    let partial = sibling(path, ".backup.partial");
    let doing = || format!("backing the ledger up to {}", target.display());
    match std::fs::remove_file(&partial) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).while_doing(doing),
        _ => {}
    }
    faults::statement("-- copying");
    private::create_new(&partial).map(drop).while_doing(doing)?;
    copy(path, &partial, options).map_err(|e| diagnose(e, &doing()))?;
    faults::statement("-- naming the copy");
    std::fs::rename(&partial, &target).while_doing(doing)
}

/// Copies the ledger into an empty file.
fn copy(from: &Path, to: &Path, options: OpenOptions) -> rusqlite::Result<()> {
    // A connection of its own, which sees what is committed. The caller's has begun the transaction of the migration.
    let source = Connection::open_with_flags(from, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    source.busy_timeout(options.busy_timeout)?;
    let mut copy = Connection::open(to)?;
    // No journal: one that outlived a crash would be rolled back into the next copy.
    copy.query_row("PRAGMA journal_mode=OFF", [], |_| Ok(()))?;
    rusqlite::backup::Backup::new(&source, &mut copy)
        .and_then(|backup| backup.run_to_completion(i32::MAX, Duration::ZERO, None))
}

/// The lock that one creating or migrating process holds; the operating system ends it with the process.
///
/// Errors: `busy` when another one held it past the timeout.
fn lock(path: &Path, timeout: Duration) -> Result<FileLock> {
    let lock_path = sibling(path, ".lock");
    let doing = || format!("locking {}", lock_path.display());
    let taken = FileLock::take(&lock_path, Rank::Schema, LockMode::Exclusive, timeout).while_doing(doing)?;
    taken.ok_or_else(|| busy(&doing()))
}

#[cfg(test)]
mod tests;
