//! Completion only reads: it creates nothing, changes nothing, prints no errors, and reads little.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ic_testkit::{CliOutcome, older_ledger};

use super::{asking, values};
use crate::statements::{GROWING, plan};
use crate::support::{Project, story};
use crate::verbs::rewind::with_tasks;

/// A line for each kind of value.
const LINES: &[&str] = &[
    "",
    "run status ",
    "run list --before ",
    "run rollback @ --to-phase ",
    "run skip @ ",
    "run advance @ --expect-phase ",
    "run advance @ --dispatch ",
    "dispatch show ",
    "run agent update ",
    "run artifact cat ",
    "checkpoint show ",
    "checkpoint restore --name ",
    "rollback show ",
    "redo ",
    "rewind to ",
    "events redact ",
    "events tail @ --since ",
    "events cursor reset ",
    "compensation run @ --step ",
];

/// Every file below a directory with its content.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).expect("a directory").filter_map(Result::ok) {
            let path = entry.path();
            // Shared memory, which every process that opens a database makes anew.
            if path.to_string_lossy().ends_with("-shm") {
                continue;
            }
            if path.is_dir() {
                left.push(path.clone());
            }
            found.insert(path.to_string_lossy().into_owned(), std::fs::read(&path).unwrap_or_default());
        }
    }
    found
}

/// Asks for everything; how many words were offered altogether.
fn ask_for_everything(project: &Project) -> usize {
    LINES.iter().map(|line| values(project, line).len()).sum()
}

#[test]
fn a_ledger_is_left_as_it_is() {
    let project = Project::new();
    story(&project);
    with_tasks(&project);
    project.ok("checkpoint create --name one");
    project.ok("events tail --cursor notifier");
    let before = files(project.cli.home());
    let number = ask_for_everything(&project);
    assert!(number > 60, "{number} words");
    assert_eq!(files(project.cli.home()), before);
}

#[test]
fn without_a_ledger_nothing_is_offered_and_nothing_is_made() {
    let project = Project::without_ledger();
    let before = files(project.cli.home());
    for line in &LINES[1..] {
        assert!(values(&project, line).is_empty(), "{line}");
    }
    assert_eq!(values(&project, "--db nowhere/ic.db run status "), Vec::<String>::new());
    assert_eq!(values(&project, "-C nowhere run status "), Vec::<String>::new());
    // Candidates that need none are offered anyway.
    assert_eq!(values(&project, "-C nowhere run stat"), ["status"]);
    assert_eq!(files(project.cli.home()), before);
}

#[test]
fn a_ledger_that_cannot_be_read_is_none() {
    let project = Project::without_ledger();
    let place = project.root().join(".ic");
    std::fs::create_dir(&place).expect("a store");
    let db = place.join("ic.db");
    for content in [&b""[..], b"not a database", &[0; 4096]] {
        std::fs::write(&db, content).expect("a file");
        for line in &LINES[1..] {
            assert!(values(&project, line).is_empty(), "{line}");
        }
        assert_eq!(std::fs::read(&db).expect("the file"), content);
    }
    std::fs::remove_file(&db).expect("the file");
    std::fs::create_dir(&db).expect("a directory in its place");
    assert!(values(&project, "run status ").is_empty());
    std::fs::remove_dir(&db).expect("the directory");
    // A database of another program, and a ledger of a newer ic.
    for sql in ["CREATE TABLE t(a)", "PRAGMA application_id = 1768115271; PRAGMA user_version = 10000"] {
        let connection = rusqlite::Connection::open(&db).expect("a database");
        connection.execute_batch(sql).expect("its content");
        drop(connection);
        assert!(values(&project, "run status ").is_empty(), "{sql}");
        std::fs::remove_file(&db).expect("the file");
    }
}

#[test]
fn an_older_ledger_is_not_migrated() {
    let project = Project::without_ledger();
    std::fs::create_dir(project.root().join(".ic")).expect("a store");
    older_ledger(&project.cli.db());
    let before = files(project.cli.home());
    assert_eq!(LINES[1..].iter().map(|line| values(&project, line).len()).sum::<usize>(), 0);
    assert_eq!(files(project.cli.home()), before);
    // The next call migrates it, as ever.
    project.ok("run create --goal g");
    assert_eq!(values(&project, "run status ").len(), 2);
}

#[test]
fn a_directory_that_cannot_be_written_is_no_hindrance() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let project = Project::new();
    story(&project);
    let store = project.root().join(".ic");
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o500)).expect("read-only");
    let outcome = CliOutcome::of(&mut asking(&project, ["run", "status", ""]));
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o700)).expect("as it was");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
fn somebody_who_writes_is_not_waited_for() {
    let project = Project::new();
    story(&project);
    let writer = project.database();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE runs SET goal = 'another'").expect("a writer");
    let begun = Instant::now();
    assert_eq!(values(&project, "run status ").len(), 2);
    assert!(begun.elapsed() < Duration::from_secs(2));
    writer.execute_batch("ROLLBACK").expect("the end");
    writer.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("an exclusive lock");
    let begun = Instant::now();
    values(&project, "run status ");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn the_newest_hundred_are_offered() {
    let project = Project::new();
    let mut last = String::new();
    for _ in 0..110 {
        last = project.ok("run create --goal many --phases a,b");
    }
    for _ in 0..105 {
        project.ok(&format!("dispatch create {last}"));
    }
    let runs = values(&project, "run status ");
    assert_eq!((runs.len(), runs[0].as_str()), (100, &last[28..]));
    assert_eq!(values(&project, "run list --before ").len(), 100);
    assert_eq!(values(&project, "dispatch show ").len(), 100);
    assert_eq!(values(&project, "events redact ").len(), 100);
}

#[test]
fn statements_only_read_and_find_their_rows_by_an_index() {
    let project = Project::new();
    story(&project);
    with_tasks(&project);
    project.ok("checkpoint create --name one");
    project.ok("compensation add @ --step queue --exec -- true");
    project.ok("run rollback @ --to-phase strategized");
    project.ok("rewind to T1 --yes");
    let log = project.cli.home().join("sql.log");
    let db = project.database();
    let mut explained = 0;
    for line in &LINES[1..] {
        std::fs::write(&log, "").expect("an empty log");
        let outcome = CliOutcome::of(asking(&project, line.split(' ')).env("IC_TEST_SQL_LOG", &log));
        assert_eq!(outcome.code, Some(0));
        for sql in std::fs::read_to_string(&log).expect("the log").lines() {
            if sql.starts_with("BEGIN DEFERRED") {
                continue;
            }
            assert!(sql.starts_with("SELECT"), "{line}: {sql}");
            explained += 1;
            for step in plan(&db, sql) {
                let scanned = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
                assert!(scanned.is_none_or(|table| !GROWING.contains(&table)), "{line}: {step}: {sql}");
                assert!(!step.contains("USE TEMP B-TREE FOR"), "{line}: {step}: {sql}");
            }
        }
    }
    assert!(explained > 20, "{explained} statements");
}
