//! A ledger that was restored from a `.dump`: it has the tables, and not the marks of the file.

use rusqlite::Connection;

use crate::support::{Project, story};

/// Rebuilds the ledger from its schema and rows alone, as `sqlite3 .dump | sqlite3` does.
fn restore(project: &Project) {
    let original = project.cli.db();
    let copy = project.root().join("restored.db");
    {
        let from = Connection::open(&original).expect("open the ledger");
        let to = Connection::open(&copy).expect("make the copy");
        let objects = |kind: &str| -> Vec<(String, String)> {
            from.prepare("SELECT name, sql FROM sqlite_schema WHERE type = ?1 AND sql IS NOT NULL")
                .and_then(|mut s| s.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
                .expect("the schema")
        };
        to.execute("ATTACH ?1 AS original", [original.to_str()]).expect("attach");
        for (name, sql) in objects("table") {
            to.execute_batch(&sql).expect("a table");
            to.execute_batch(&format!("INSERT INTO main.\"{name}\" SELECT * FROM original.\"{name}\"")).expect("rows");
        }
        for kind in ["index", "trigger", "view"] {
            for (_, sql) in objects(kind) {
                to.execute_batch(&sql).expect("the rest of the schema");
            }
        }
        to.execute_batch("DETACH original").expect("detach");
    }
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", original.display()));
    }
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&copy, private).expect("make it private");
    std::fs::rename(copy, original).expect("put it in place");
}

fn marks(project: &Project) -> (i64, i64, String) {
    let db = project.database();
    let read = |pragma: &str| db.query_row(pragma, [], |row| row.get(0)).expect("a pragma");
    let mode = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode");
    (read("PRAGMA application_id"), read("PRAGMA user_version"), mode)
}

#[test]
fn a_restored_dump_is_taken_up_and_its_marks_mended() {
    let project = Project::new();
    let story = story(&project);
    let (before, whole) = (marks(&project), project.dump());
    restore(&project);
    assert_eq!(marks(&project), (0, 0, "delete".to_owned()));
    assert_eq!(project.dump(), whole);

    assert_eq!(project.json("run status @")["id"], story.run.as_str());
    assert_eq!(marks(&project), before, "mended by the first call");
    assert_eq!(project.dump(), whole, "and nothing else");
    assert_eq!(project.json("events verify")["ok"], true);
    assert_eq!(project.json("health")["ok"], true);
    let rollback = project.json("run rollback @ --to-phase planned");
    assert_eq!(rollback["counts"]["dispatches"], 1);
}

#[test]
fn its_first_call_may_be_a_write_or_init() {
    for line in ["run advance @ --priority 4", "init"] {
        let project = Project::new();
        story(&project);
        let before = marks(&project);
        restore(&project);
        assert_eq!(project.run(line).code, Some(0), "{line}");
        assert_eq!(marks(&project), before, "{line}");
        assert_eq!(project.json("events verify")["ok"], true);
    }
}

#[test]
fn other_databases_are_left_alone() {
    for (sql, code) in [
        ("CREATE TABLE t(x); PRAGMA user_version = 3;", "foreign_database"),
        ("CREATE TABLE t(x);", "foreign_database"),
        ("CREATE TABLE events(x); PRAGMA application_id = 7;", "foreign_database"),
        ("CREATE TABLE t(x); PRAGMA application_id = 1768115271; PRAGMA user_version = 1000;", "newer_schema"),
    ] {
        let project = Project::without_ledger();
        let path = project.root().join("app.db");
        Connection::open(&path).and_then(|db| db.execute_batch(sql)).expect("make a database");
        let bytes = std::fs::read(&path).expect("read it");
        for line in ["run list", "run create --goal g", "init", "health", "events verify"] {
            let outcome = project.run(&format!("{line} --db app.db"));
            assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), code), "{line} over {sql}");
            assert_eq!(std::fs::read(&path).expect("read it"), bytes, "{line} over {sql}");
        }
    }
}

#[test]
fn files_that_are_no_database_are_named_as_such() {
    let project = Project::without_ledger();
    project.write("text.db", &"hello, world\n".repeat(400));
    assert_eq!(project.run("run list --db text.db").error(), "foreign_database");
    project.write("empty.db", "");
    assert_eq!(project.run("run list --db empty.db").error(), "no_ledger");
    assert_eq!(project.run("run list --db .").error(), "no_ledger");
    assert_eq!(project.run("run list --db nowhere/ic.db").error(), "no_ledger");
    let made = project.run("init --db empty.db --json").json();
    assert_eq!(made["created"], true, "an empty file is one that a crash left");
}
