//! A database and the files beside it are one: a restore that writes or removes it takes them along, and brings them back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ic_testkit::Cli;
use rusqlite::Connection;
use serde_json::Value;

use crate::project::{create, make_again, project, restore, take_back, told};

const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Makes a database in a directory of its own and leaves there what a program leaves that is killed.
fn killed_program(cli: &Cli, journal: &str) -> std::path::PathBuf {
    let place = tempfile::tempdir_in(cli.home()).expect("a directory").keep();
    let connection = Connection::open(cli.root().join("app.db")).expect("the database");
    let journal_mode = format!("PRAGMA journal_mode={journal}; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=5;");
    connection.execute_batch(&journal_mode).expect("its journal");
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                  INSERT INTO t (v) SELECT hex(randomblob(60)) FROM n;";
    connection.execute_batch(insert).expect("more rows");
    if journal == "WAL" {
        connection
            .execute_batch("PRAGMA wal_checkpoint(RESTART); UPDATE t SET v = hex(randomblob(50)) WHERE id < 150;")
            .expect("newer pages");
    } else {
        connection
            .execute_batch("BEGIN IMMEDIATE; UPDATE t SET v = hex(randomblob(80)) WHERE id < 400;")
            .expect("half a transaction");
    }
    for end in ["", "-wal", "-shm", "-journal"] {
        let name = format!("app.db{end}");
        if cli.root().join(&name).exists() {
            fs::copy(cli.root().join(&name), place.join(&name)).expect("what it leaves");
        }
    }
    drop(connection);
    place
}

/// A tree with a database of 400 rows in a checkpoint, in whose place stands what a killed program left; returns the checkpoint.
pub(crate) fn left_behind(cli: &Cli, journal: &str) -> String {
    let connection = Connection::open(cli.root().join("app.db")).expect("a database");
    // With a log the program lives while the checkpoint is taken, which passes the log over.
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode={journal}; PRAGMA wal_autocheckpoint=0;
                 CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX ti ON t (v);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                 INSERT INTO t (v) SELECT hex(randomblob(40)) FROM n;",
        ))
        .expect("its rows");
    let id = create(cli);
    connection.close().expect("close it");
    let left = killed_program(cli, journal);
    for end in ["", "-wal", "-shm", "-journal"] {
        let name = format!("app.db{end}");
        let _ = fs::remove_file(cli.root().join(&name));
        if left.join(&name).exists() {
            fs::copy(left.join(&name), cli.root().join(&name)).expect("what was left");
        }
    }
    id
}

/// The rows of a copy, and that the copy is whole.
pub(crate) fn rows(cli: &Cli) -> i64 {
    content(cli).0
}

/// How many rows there are and how many bytes are in them. It reads a copy with all side files, because opening a database may change it.
pub(crate) fn content(cli: &Cli) -> (i64, i64) {
    let place = tempfile::tempdir_in(cli.home()).expect("a directory");
    for end in ["", "-wal", "-shm", "-journal"] {
        let name = format!("app.db{end}");
        if cli.root().join(&name).exists() {
            fs::copy(cli.root().join(&name), place.path().join(&name)).expect("a copy");
        }
    }
    let connection = Connection::open(place.path().join("app.db")).expect("the copy");
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap_or_else(|e| e.to_string());
    assert_eq!(check, "ok");
    connection
        .query_row("SELECT count(*), sum(length(v)) FROM t", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("the rows")
}

/// The files of the database. Opening it, and so a capture, makes the index of its log (`-shm`) anew: only its presence counts.
pub(crate) fn files(cli: &Cli) -> BTreeMap<String, Vec<u8>> {
    let content = |end: &str| {
        let content = fs::read(cli.root().join(format!("app.db{end}"))).ok()?;
        Some((format!("app.db{end}"), if end == "-shm" { Vec::new() } else { content }))
    };
    ["", "-wal", "-shm", "-journal"].into_iter().filter_map(content).collect()
}

pub(crate) fn sides(cli: &Cli) -> Vec<String> {
    SIDES.iter().map(|end| format!("app.db{end}")).filter(|name| cli.root().join(name).exists()).collect()
}

/// Takes the files away whose names are given.
fn remove(cli: &Cli, names: &[&str]) {
    for name in names {
        fs::remove_file(cli.root().join(name)).expect("it was there");
    }
}

/// Restores, undoes and redoes; every time the rows are those of the state, and every file is.
fn comes_and_goes(cli: &Cli, id: &str, what: &str) {
    let before = files(cli);
    let has_database = cli.root().join("app.db").exists();
    let rows_before = has_database.then(|| rows(cli));
    restore(cli, id);
    assert_eq!((rows(cli), sides(cli)), (400, Vec::new()), "{what}: restored");
    let restored = files(cli);
    take_back(cli);
    assert!(files(cli) == before, "{what}: undone, its files are not as they were");
    assert_eq!(has_database.then(|| rows(cli)), rows_before, "{what}: undone");
    make_again(cli);
    assert!(files(cli) == restored, "{what}: restored again, its files are not as they were");
    assert_eq!(rows(cli), 400, "{what}: restored again");
}

#[test]
fn a_database_whose_program_was_killed_is_restored_without_its_log_and_undone_with_it() {
    for journal in ["WAL", "DELETE"] {
        let cli = project();
        let id = left_behind(&cli, journal);
        assert!(!sides(&cli).is_empty(), "{journal}: there is no log");
        comes_and_goes(&cli, &id, journal);
    }
}

#[test]
fn a_log_whose_database_is_gone_goes_when_the_database_comes_back() {
    for journal in ["WAL", "DELETE"] {
        for with_index in [true, false] {
            let cli = project();
            let id = left_behind(&cli, journal);
            remove(&cli, &["app.db"]);
            if !with_index && cli.root().join("app.db-shm").exists() {
                remove(&cli, &["app.db-shm"]);
            }
            comes_and_goes(&cli, &id, &format!("{journal}, {with_index}"));
        }
    }
}

#[test]
fn a_log_that_is_too_large_ignored_or_passed_over_goes_all_the_same() {
    for rule in ["oversize", "ignored"] {
        for is_gone in [true, false] {
            let cli = project();
            match rule {
                "oversize" => {
                    let config = "rollback:\n  checkpointing:\n    max-file-size: 150KiB\n";
                    fs::write(cli.root().join(".ic.yaml"), config).expect("a limit");
                }
                _ => fs::write(cli.root().join(".gitignore"), "*.db-*\n").expect("a rule"),
            }
            let id = left_behind(&cli, "WAL");
            let log = fs::metadata(cli.root().join("app.db-wal")).expect("a log").len();
            assert!(log > 150 << 10, "the log is small: {log}");
            if is_gone {
                remove(&cli, &["app.db"]);
            }
            comes_and_goes(&cli, &id, &format!("{rule}, {is_gone}"));
        }
    }
}

#[test]
fn a_database_that_the_target_lacks_goes_with_its_log() {
    for journal in ["WAL", "DELETE"] {
        let cli = project();
        let id = create(&cli);
        left_behind(&cli, journal);
        let before = files(&cli);
        let rows_before = rows(&cli);
        restore(&cli, &id);
        assert!(!cli.root().join("app.db").exists(), "{journal}");
        assert_eq!(sides(&cli), Vec::<String>::new(), "{journal}");
        take_back(&cli);
        assert!(files(&cli) == before, "{journal}: undone, its files are not as they were");
        assert_eq!(rows(&cli), rows_before, "{journal}");
    }
}

#[test]
fn a_database_alone_among_paths_takes_its_log_along() {
    let cli = project();
    let id = left_behind(&cli, "WAL");
    fs::write(cli.root().join("other.txt"), "made since").expect("a file");
    cli.ok(["checkpoint", "restore", &id, "--path", "app.db", "--yes"]);
    assert_eq!((rows(&cli), sides(&cli)), (400, Vec::new()));
    assert!(cli.root().join("other.txt").exists());
}

#[test]
fn a_log_that_cannot_be_saved_keeps_its_database_as_it_is() {
    let cli = project();
    let id = left_behind(&cli, "WAL");
    remove(&cli, &["app.db", "app.db-wal", "app.db-shm"]);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        cli.root().join("app.db-wal"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    );
    made.expect("a fifo");
    let outcome = cli.run(["checkpoint", "restore", &id, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    let skipped: BTreeMap<_, _> = told(&report, "skipped", "reason").into_iter().collect();
    assert_eq!(skipped.get("app.db").map(String::as_str), Some("app.db-wal beside it is special"), "{report}");
    assert!(!cli.root().join("app.db").exists(), "{report}");
}

/// A process that has files open and nothing else to do.
struct Holder(Child);

impl Holder {
    fn of(path: &Path) -> Self {
        let file = fs::File::open(path).expect("the file");
        Self(Command::new("sleep").arg("600").stdin(Stdio::from(file)).spawn().expect("a process"))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn refused_in_use(cli: &Cli, id: &str) -> Value {
    let before = files(cli);
    let outcome = cli.run(["checkpoint", "restore", id, "--yes", "--json"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let report = outcome.json();
    let failed: BTreeMap<_, _> = told(&report, "failed", "error").into_iter().collect();
    assert!(failed.get("app.db").is_some_and(|error| error.starts_with("database_in_use")), "{report}");
    assert_eq!(told(&report, "changes", "change"), [], "what failed is no change");
    assert!(files(cli) == before, "a database in use was touched");
    report
}

#[test]
fn a_database_that_an_idle_program_has_open_is_not_replaced() {
    let cli = project();
    let id = left_behind(&cli, "WAL");
    let holder = Holder::of(&cli.root().join("app.db-wal"));
    refused_in_use(&cli, &id);
    drop(holder);
    restore(&cli, &id);
    assert_eq!((rows(&cli), sides(&cli)), (400, Vec::new()));
}

#[test]
fn a_database_without_a_log_that_a_program_has_open_is_not_replaced() {
    let cli = project();
    let id = left_behind(&cli, "DELETE");
    drop(Connection::open(cli.root().join("app.db")).map(|c| c.query_row("SELECT count(*) FROM t", [], |_| Ok(()))));
    assert_eq!(sides(&cli), Vec::<String>::new(), "it was recovered");
    let holder = Holder::of(&cli.root().join("app.db"));
    refused_in_use(&cli, &id);
    drop(holder);
    restore(&cli, &id);
    assert_eq!(rows(&cli), 400);
}

#[test]
fn no_database_comes_beside_the_log_of_a_program_that_lost_its_file() {
    let cli = project();
    let id = left_behind(&cli, "WAL");
    // It has the log open, and its database has no name any more.
    let holder = Holder::of(&cli.root().join("app.db-wal"));
    remove(&cli, &["app.db"]);
    refused_in_use(&cli, &id);
    drop(holder);
    restore(&cli, &id);
    assert_eq!((rows(&cli), sides(&cli)), (400, Vec::new()));
}

/// A reader makes a log that stays empty, and an index of it: the database is what it was, while it is open and when its reader died.
#[test]
fn a_database_that_was_only_opened_for_reading_is_not_changed() {
    let cli = project();
    let path = cli.root().join("app.db");
    let writer = Connection::open(&path).expect("a database");
    writer.execute_batch("PRAGMA journal_mode=wal; CREATE TABLE t (a); INSERT INTO t VALUES (1);").expect("rows");
    drop(writer);
    let changes = |from: &str, to: &str| {
        let diff: Value = cli.json(["checkpoint", "diff", from, to, "--json"]);
        diff["changes"].as_array().expect("changes").len()
    };
    let before = create(&cli);
    let reader = Connection::open(&path).expect("a database");
    let count: i64 = reader.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("a count");
    assert_eq!(count, 1);
    assert!(cli.root().join("app.db-shm").exists(), "it is open");
    let read = create(&cli);
    assert_eq!(changes(&before, &read), 0, "it was only read");
    // What is written counts, although the file itself is as it was.
    reader.execute_batch("INSERT INTO t VALUES (2);").expect("a row");
    let written = create(&cli);
    assert_eq!(changes(&read, &written), 1);
    // Its reader died: what it left is a copy of both files as they lie now.
    reader.execute_batch("PRAGMA wal_checkpoint(truncate);").expect("an empty log");
    let emptied = create(&cli);
    let left: Vec<_> = SIDES
        .iter()
        .filter_map(|end| std::fs::read(cli.root().join(format!("app.db{end}"))).ok().map(|bytes| (end, bytes)))
        .collect();
    drop(reader);
    for (end, bytes) in &left {
        std::fs::write(cli.root().join(format!("app.db{end}")), bytes).expect("what it left");
    }
    let dead = create(&cli);
    assert_eq!(changes(&emptied, &dead), 0, "it died");
    assert!(left.iter().all(|(end, _)| cli.root().join(format!("app.db{end}")).exists()), "a capture removes nothing");
}
