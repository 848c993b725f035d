use std::os::unix::fs::PermissionsExt;

use ic_base::{Code, Context};
use refinery_core::Target;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::{LATEST, bring_up_to_date, create, embedded, runner};
use crate::{Ledger, OpenOptions};

#[test]
fn every_file_is_a_migration_and_the_constant_is_the_highest() {
    let files = std::fs::read_dir("../../migrations/sqlite").unwrap().count();
    let migrations = embedded::migrations::runner();
    let versions: Vec<i32> = migrations.get_migrations().iter().map(refinery_core::Migration::version).collect();
    assert_eq!(versions.len(), files, "a misnamed file would be skipped in silence");
    assert_eq!(versions.iter().max(), Some(&LATEST));
}

#[test]
fn a_new_migration_in_any_folder_rebuilds_the_crate() {
    let watched = include_str!("../../build.rs");
    for folder in std::fs::read_dir("../../migrations").unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        assert!(watched.contains(&format!("\"{name}\"")), "{name}: cargo would embed it as it was");
    }
}

/// A ledger of schema `version`, with a row in the table that every version has.
fn older(path: &std::path::Path, version: i32) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    runner().set_target(Target::Version(version)).run(&mut super::InTransaction(&connection)).unwrap();
    connection
        .execute_batch(&format!(
            "INSERT INTO event_cursors VALUES ('kept', '', '', 1, 1);
             PRAGMA application_id={}; PRAGMA user_version={version}; COMMIT;",
            super::APPLICATION_ID
        ))
        .unwrap();
}

fn cursor_is_kept(ledger: &Ledger) {
    let name: Option<String> =
        ledger.read(|s| s.query_opt("SELECT name FROM event_cursors", &[], |r| r.get(0))).unwrap();
    assert_eq!(name.as_deref(), Some("kept"));
}

#[test]
fn every_earlier_version_is_upgraded_after_a_private_backup() {
    for version in 1..LATEST {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ic.db");
        older(&path, version);
        let ledger = Ledger::open(&path, OpenOptions::default(), &Context::system()).unwrap();
        cursor_is_kept(&ledger);
        let backup = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| p.to_string_lossy().ends_with(".backup"))
            .expect("a backup");
        assert_eq!(std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
        let copy = Connection::open(&backup).unwrap();
        let found: i32 = copy.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap();
        assert_eq!(found, version);
        assert_eq!(copy.query_row("PRAGMA integrity_check", [], |r| r.get::<_, String>(0)).unwrap(), "ok");
    }
}

#[test]
fn an_upgrade_gives_the_same_schema_as_a_new_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.db"), dir.path().join("new.db"));
    older(&old, 1);
    Ledger::open(&old, OpenOptions::default(), &Context::system()).unwrap();
    create(&new, OpenOptions::default(), &Context::system()).unwrap();
    assert_eq!(schema(&old), schema(&new));
}

/// The schema is a promise to readers of the ledger with a shell: a change of it is seen in review, whichever file makes it.
#[test]
fn the_schema_is_the_recorded_one() {
    const RECORDED: &str = "a6c1f22d8739d135611cc60d098bbaed8c9057993a4b749d146eb735fda99895";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ic.db");
    create(&path, OpenOptions::default(), &Context::system()).unwrap();
    let schema = schema(&path).join(";\n\n") + ";\n";
    let found: String = Sha256::digest(&schema).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, RECORDED, "record this hash if the schema is meant to change to:\n{schema}");
}

fn schema(path: &std::path::Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement =
        connection.prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY type, name").unwrap();
    statement.query_map([], |r| r.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_restored_dump_is_recognised_and_marked_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ic.db");
    create(&path, OpenOptions::default(), &Context::system()).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA journal_mode=DELETE; PRAGMA application_id=0; PRAGMA user_version=0;")
        .unwrap();
    Ledger::open(&path, OpenOptions::default(), &Context::system()).unwrap();
    let connection = Connection::open(&path).unwrap();
    for (pragma, value) in [("user_version", LATEST), ("application_id", super::APPLICATION_ID)] {
        let found: i32 = connection.query_row(&format!("PRAGMA {pragma}"), [], |r| r.get(0)).unwrap();
        assert_eq!(found, value, "{pragma}");
    }
}

#[test]
fn newer_and_foreign_files_are_refused_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let newer = dir.path().join("newer.db");
    create(&newer, OpenOptions::default(), &Context::system()).unwrap();
    Connection::open(&newer)
        .unwrap()
        .execute_batch("PRAGMA user_version=99; PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
    // The last schema before the baseline.
    let unreleased = dir.path().join("unreleased.db");
    Connection::open(&unreleased)
        .unwrap()
        .execute_batch(&format!(
            "CREATE TABLE events(seq); PRAGMA user_version=23; PRAGMA application_id={}",
            super::APPLICATION_ID
        ))
        .unwrap();
    let foreign = dir.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let text = dir.path().join("text.db");
    std::fs::write(&text, "not a database, but long enough to be looked at".repeat(40)).unwrap();
    let blank = dir.path().join("blank.db");
    Connection::open(&blank).unwrap().execute_batch("PRAGMA journal_mode=WAL").unwrap();
    let empty = dir.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();

    for (path, code) in [
        (&newer, Code::NewerSchema),
        (&unreleased, Code::NewerSchema),
        (&foreign, Code::ForeignDatabase),
        (&text, Code::ForeignDatabase),
        (&empty, Code::NoLedger),
        (&blank, Code::NoLedger),
    ] {
        let before = std::fs::read(path).unwrap();
        let error = Ledger::open(path, OpenOptions::default(), &Context::system()).err().expect("refused");
        assert_eq!(error.code(), code, "{error:?}");
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
}

#[test]
fn a_failing_migration_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ic.db");
    older(&path, 1);
    let mut connection = Connection::open(&path).unwrap();
    // A table in the way of a later migration.
    connection.execute_batch("CREATE TABLE run_agents(x)").unwrap();
    let error = bring_up_to_date(&mut connection, &path, OpenOptions::default(), &Context::system()).unwrap_err();
    assert_eq!(error.code(), Code::MigrationFailed);
    let version: i32 = connection.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap();
    assert_eq!(version, 1);
    let runs: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'runs'", [], |r| r.get(0)).unwrap();
    assert_eq!(runs, 0, "the migrations before the failing one are rolled back too");
}

#[test]
fn whoever_holds_the_lock_is_waited_for_no_longer_than_asked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ic.db");
    let held = crate::lock::open(&super::sibling(&path, ".lock")).unwrap();
    held.lock().unwrap();
    let options = OpenOptions { busy_timeout: std::time::Duration::from_millis(50), ..OpenOptions::default() };
    assert_eq!(create(&path, options, &Context::system()).unwrap_err().code(), Code::Busy);
    drop(held);
    assert!(create(&path, options, &Context::system()).unwrap());
}

#[test]
fn what_a_crash_left_of_a_backup_is_not_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ic.db");
    older(&path, 1);
    let partial = dir.path().join("ic.db.backup.partial");
    std::fs::write(&partial, "half of a copy").unwrap();
    Ledger::open(&path, OpenOptions::default(), &Context::system()).unwrap();
    assert!(!partial.exists());
}
