//! Databases that a failing step leaves with a log: they go back with it, and none comes back beside a log of another state.

use std::fs;
use std::path::Path;

use ic_testkit::TestWorld;
use rusqlite::Connection;

use crate::calls::Calls as _;
use crate::flow::Flow as _;
use crate::project::{plain, with_checkpoints};

const MORE: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                    INSERT INTO t (v) SELECT hex(randomblob(60)) FROM n;";

/// A database of 300 rows, and outside of the project what a program leaves of it that is killed after it wrote 300 more.
fn database(world: &TestWorld) {
    let path = world.cli.root().join("app.db");
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);").expect("a table");
    connection.execute_batch(MORE).expect("rows");
    connection.close().expect("close it");
    let place = world.outside.path("left");
    fs::create_dir(&place).expect("a directory");
    fs::copy(&path, place.join("work.db")).expect("a copy");
    let connection = Connection::open(place.join("work.db")).expect("the copy");
    connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;").expect("a log");
    connection.execute_batch(MORE).expect("more rows");
    connection
        .execute_batch("PRAGMA wal_checkpoint(RESTART); UPDATE t SET v = 'x' WHERE id < 200;")
        .expect("newer pages");
    for end in ["", "-wal"] {
        fs::copy(place.join(format!("work.db{end}")), place.join(format!("app.db{end}"))).expect("what it leaves");
    }
    drop(connection);
}

/// The rows of a copy, which is whole.
fn rows(root: &Path) -> i64 {
    let place = tempfile::tempdir().expect("a directory");
    for end in ["", "-wal"] {
        let name = format!("app.db{end}");
        let _ = fs::copy(root.join(&name), place.path().join(&name));
    }
    let connection = Connection::open(place.path().join("app.db")).expect("the copy");
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap_or_else(|e| e.to_string());
    assert_eq!(check, "ok");
    connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("rows")
}

#[test]
fn the_rollback_of_a_workflow_takes_a_database_back_with_its_log() {
    let world = with_checkpoints();
    database(&world);
    world.steps(&["{id: a, run: 'cp OUT/left/app.db OUT/left/app.db-wal .; exit 1'}"]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(rows(world.cli.root()), 300, "{report}");
    assert!(!world.cli.root().join("app.db-wal").exists(), "{report}");
}

#[test]
fn a_file_that_an_undo_restores_alone_does_not_come_beside_a_log_of_another_state() {
    let world = plain();
    database(&world);
    world.steps(&[
        "{id: a, run: 'cp OUT/left/app.db OUT/left/app.db-wal .; exit 1', compensate: {restore-file: app.db}}",
    ]);
    let outcome = world.cli.run(["workflow", "run", "flow.yaml", "--on-failure", "rollback", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stdout.contains("database_in_use"), "{outcome:?}");
    assert_eq!(rows(world.cli.root()), 600, "{outcome:?}");
    // What the error says can be done.
    fs::remove_file(world.cli.root().join("app.db-wal")).expect("move it away");
    let report = world.report(&format!("workflow rollback {} --yes", world.newest_run()), 0);
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(rows(world.cli.root()), 300, "{report}");
}
