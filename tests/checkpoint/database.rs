//! SQLite databases in use: what is captured is a whole database, and none is replaced under its writer.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ic_testkit::{Cli, CliOutcome, WorkerEnding, rounds};
use rusqlite::Connection;

use crate::project::{create, into, project, told, tree};
use crate::snapshot::Snapshot;

/// A database with two tables whose sums are equal after every transaction.
fn database(path: &Path, journal: &str) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection.busy_timeout(Duration::from_secs(20)).expect("a timeout");
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode={journal}; PRAGMA synchronous=OFF; PRAGMA cache_size=20;
             CREATE TABLE a (id INTEGER PRIMARY KEY, v INTEGER, filler TEXT);
             CREATE TABLE b (id INTEGER PRIMARY KEY, v INTEGER, filler TEXT);"
        ))
        .expect("its tables");
    for table in ["a", "b"] {
        connection
            .execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                 INSERT INTO {table} SELECT i, 0, hex(zeroblob(400)) FROM n;"
            ))
            .expect("rows");
    }
    connection
}

/// One transaction that changes pages all over the file.
fn write_once(connection: &Connection, turn: i64) {
    connection
        .execute_batch(&format!(
            "BEGIN IMMEDIATE;
             UPDATE a SET v = v + {turn} WHERE id % 3 = {rest};
             UPDATE b SET v = v + {turn} WHERE id % 3 = {rest};
             COMMIT;",
            rest = turn % 3
        ))
        .expect("a transaction");
}

fn assert_whole(path: &Path, when: &str) {
    let connection = Connection::open(path).expect("open the copy");
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap_or_else(|e| e.to_string());
    assert_eq!(check, "ok", "{when}");
    let sums = "SELECT (SELECT sum(v) FROM a), (SELECT sum(v) FROM b)";
    let (a, b): (i64, i64) = connection.query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("the sums");
    assert_eq!(a, b, "{when}: a transaction is torn");
}

/// The database that a checkpoint holds is whole, and none of its side files is in the checkpoint.
fn assert_kept_whole(cli: &Cli, id: &str, when: &str) {
    let place = tempfile::tempdir_in(cli.home()).expect("a directory");
    let restored = CliOutcome::of(&mut into(cli, id, place.path()));
    assert_eq!(restored.code, Some(0), "{when}: {restored:?}");
    for side in ["-wal", "-shm", "-journal"] {
        assert!(!place.path().join(format!("app.db{side}")).exists(), "{when}: {side} was captured");
    }
    assert_whole(&place.path().join("app.db"), when);
}

fn captures_while_it_is_written(journal: &str) {
    let cli = project();
    let path = cli.root().join("app.db");
    let connection = database(&path, journal);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            let mut turn = 1;
            while !is_over.load(Ordering::Relaxed) {
                write_once(&connection, turn);
                turn += 1;
            }
            println!("{journal}: {turn} transactions");
        });
        let end = WorkerEnding(is_over);
        for round in rounds(60) {
            let when = format!("{journal}, capture {round}");
            let outcome = cli.run(["checkpoint", "create", "--json"]);
            assert_eq!(outcome.code, Some(0), "{when}: {outcome:?}");
            let id = outcome.json()["id"].as_str().expect("an id").to_owned();
            assert_kept_whole(&cli, &id, &when);
        }
        drop(end);
    });
}

#[test]
fn a_database_with_a_write_ahead_log_is_captured_whole_while_it_is_written() {
    captures_while_it_is_written("WAL");
}

#[test]
fn a_database_with_a_rollback_journal_is_captured_whole_while_it_is_written() {
    captures_while_it_is_written("DELETE");
}

#[test]
fn a_database_with_a_journal_that_stays_is_captured_whole_while_it_is_written() {
    captures_while_it_is_written("PERSIST");
}

/// A database with a live log, written after a checkpoint of it.
fn in_use(cli: &Cli) -> (Connection, String) {
    let path = cli.root().join("app.db");
    fs::write(cli.root().join("plain.txt"), "old").expect("a file");
    let connection = database(&path, "WAL");
    let id = create(cli);
    write_once(&connection, 5);
    fs::write(cli.root().join("plain.txt"), "new").expect("a file");
    (connection, id)
}

#[test]
fn a_database_in_use_is_not_replaced_and_is_named() {
    let cli = project();
    let (connection, id) = in_use(&cli);
    let before = tree(&cli);
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    assert_eq!(report["status"], "partial", "{report}");
    let failed = told(&report, "failed", "error");
    let [(path, error)] = &failed[..] else { panic!("{report}") };
    assert_eq!(path, "app.db", "{report}");
    assert!(error.starts_with("database_in_use"), "{report}");
    let changed = told(&report, "changes", "change");
    assert_eq!(changed, [("plain.txt".to_owned(), "modify".to_owned())], "what failed is no change: {report}");
    let now = tree(&cli);
    for path in ["app.db", "app.db-wal"] {
        assert!(now.get(path.as_bytes()) == before.get(path.as_bytes()), "{path} was touched");
    }
    assert_eq!(fs::read_to_string(cli.root().join("plain.txt")).expect("the file"), "old", "{report}");
    write_once(&connection, 7);
    assert_whole(&cli.root().join("app.db"), "its writer goes on");
}

#[test]
fn a_preview_names_the_database_that_the_real_call_will_not_replace() {
    for journal in ["WAL", "DELETE"] {
        let cli = project();
        let connection = database(&cli.root().join("app.db"), journal);
        let id = create(&cli);
        write_once(&connection, 5);
        let before = tree(&cli);
        let asks = ["checkpoint", "restore", &id, "--dry-run", "--json"];
        let preview = cli.json(asks);
        // Without a write-ahead log a connection holds no lock between two transactions, so the database is not in use.
        let is_held = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]).code == Some(4);
        assert!(is_held || journal == "DELETE", "{journal}");
        let named = preview["warnings"].as_array().cloned().unwrap_or_default();
        let named: Vec<_> = named.iter().filter(|one| one["code"] == "database_in_use").collect();
        assert_eq!(named.len(), usize::from(is_held), "{journal}: {preview}");
        if is_held {
            assert!(named[0]["message"].as_str().expect("a text").contains("app.db"), "{preview}");
            assert!(tree(&cli).get(&b"app.db"[..]) == before.get(&b"app.db"[..]), "{journal}");
        }
        drop(connection);
        let preview = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
        assert_eq!(preview["warnings"], serde_json::Value::Null, "{journal}: {preview}");
    }
}

#[test]
fn a_database_that_a_program_has_open_under_another_name_is_in_use() {
    let cli = project();
    let (one, other) = (cli.root().join("d/app.db"), cli.root().join("other.db"));
    fs::create_dir(cli.root().join("d")).expect("a directory");
    database(&one, "DELETE").close().expect("close it");
    fs::hard_link(&one, &other).expect("another name");
    let id = create(&cli);
    let connection = Connection::open(&other).expect("open it by the other name");
    write_once(&connection, 5);
    let before = tree(&cli);
    let preview = cli.json(["checkpoint", "restore", &id, "--dry-run", "--json"]);
    let named = preview["warnings"].as_array().map_or(0, Vec::len);
    assert_eq!(named, 2, "{preview}");
    for paths in [&[][..], &["--path", "d/app.db"], &["--path", "other.db"]] {
        let outcome = cli.run([&["checkpoint", "restore", &id, "--yes", "--json"], paths].concat());
        assert_eq!(outcome.code, Some(4), "{paths:?}: {outcome:?}");
        let failed = told(&outcome.json(), "failed", "error");
        let is_told = |(_, error): &(String, String)| {
            error.contains("database_in_use") || error.contains("same file as d/app.db")
        };
        let expected = if paths.is_empty() { 2 } else { 1 };
        assert!(failed.len() == expected && failed.iter().all(is_told), "{failed:?}");
        tree(&cli).assert_is(&before, "neither name is another file");
        let inode = |path: &PathBuf| path.metadata().expect("the file").ino();
        assert_eq!(inode(&one), inode(&other), "{paths:?}: still one file");
    }
    write_once(&connection, 7);
    assert_whole(&one, "its writer goes on");
}

#[test]
fn a_new_database_in_use_is_not_deleted() {
    let cli = project();
    let id = create(&cli);
    let path = cli.root().join("app.db");
    let connection = database(&path, "WAL");
    write_once(&connection, 5);
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(path.exists() && cli.root().join("app.db-wal").exists(), "{outcome:?}");
    write_once(&connection, 7);
    assert_whole(&path, "its writer goes on");
}

#[test]
fn a_database_that_was_closed_is_restored_and_undone() {
    let cli = project();
    let (connection, id) = in_use(&cli);
    connection.close().expect("close it");
    let before = tree(&cli);
    let report = cli.json(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(report["status"], "restored", "{report}");
    assert_whole(&cli.root().join("app.db"), "the restore");
    cli.ok(["redo", "--yes"]);
    Snapshot::of(cli.root()).assert_is(&before, "the undo");
}

/// Leaves a database as a program leaves it that dies in the midst of a transaction.
fn dead_writer(cli: &Cli, journal: &str) {
    let elsewhere = cli.home().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    let connection = database(&elsewhere.join("app.db"), journal);
    write_once(&connection, 5);
    // More pages than the cache holds, so that some are in the file before the transaction ends.
    connection.execute_batch("BEGIN IMMEDIATE; UPDATE a SET v = v + 1, filler = hex(zeroblob(401));").expect("half");
    for side in ["", "-wal", "-journal"] {
        let name = format!("app.db{side}");
        if elsewhere.join(&name).exists() {
            fs::copy(elsewhere.join(&name), cli.root().join(&name)).expect("what is left");
        }
    }
}

fn capture_after_a_death(journal: &str) {
    let cli = project();
    dead_writer(&cli, journal);
    fs::write(cli.root().join("plain.txt"), "plain").expect("a file");
    let before = tree(&cli);
    let outcome = cli.run(["checkpoint", "create", "--json"]);
    // One file must not stand in the way of all others.
    assert!(matches!(outcome.code, Some(0 | 4)), "{journal}: {outcome:?}");
    let record = outcome.json();
    let skipped = told(&record, "skipped", "reason");
    let id = record["id"].as_str().expect("an id");
    let now = tree(&cli);
    now.assert_is(&before, "a capture changes nothing");
    if outcome.code == Some(0) {
        assert!(skipped.is_empty(), "{record}");
        assert_kept_whole(&cli, id, journal);
    } else {
        assert_eq!(skipped, [("app.db".to_owned(), "unreadable".to_owned())], "{record}");
    }
}

#[test]
fn a_database_whose_writer_died_with_a_rollback_journal_is_captured_whole_or_named() {
    capture_after_a_death("DELETE");
}

#[test]
fn a_database_whose_writer_died_with_a_write_ahead_log_is_captured_whole_or_named() {
    capture_after_a_death("WAL");
}
