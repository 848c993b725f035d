//! Rows that were written after the target although they bear its order, or belong to it.

use ic_base::Code;

use super::fixture::{TestApp, anchor};
use crate::{Anchor, Follow, RewindTarget, TableConfig};

/// Jobs at 10, 20, 20 and 30 with two results each, which name their job by its id, and notes of their own time.
fn jobs(results: TableConfig, notes: TableConfig) -> TestApp {
    TestApp::new(
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, team TEXT, at INTEGER NOT NULL);
         CREATE TABLE results (job INTEGER REFERENCES jobs(id), n INTEGER);
         CREATE TABLE notes (team TEXT, at INTEGER);
         INSERT INTO jobs VALUES (1, 'x', 10), (2, 'x', 20), (3, 'x', 20), (4, 'x', 30), (5, 'y', 25);
         INSERT INTO results SELECT id, 1 FROM jobs UNION ALL SELECT id, 2 FROM jobs;
         INSERT INTO notes SELECT team, at FROM jobs",
        |path| RewindTarget {
            database: path.to_owned(),
            anchor: Anchor { scope: vec!["team".to_owned()], ..anchor("jobs", "id", "at") },
            tables: vec![results, notes, TableConfig::by_column("jobs", "at")],
            audit: None,
            profile: None,
        },
    )
}

#[test]
fn what_was_written_after_the_target_goes_where_the_boundary_is_inclusive() {
    let results = || TableConfig::following("results", Follow::ForeignKey("parent".to_owned()));
    let notes = || TableConfig::by_column("notes", "at");
    for (results, notes, task, left) in [
        (results(), notes(), "2", "1 2 3 5|x10 x20 x20 y25"),
        (results().inclusive(), notes(), "2", "1 5|x10 x20 x20 y25"),
        (results().inclusive(), notes().inclusive(), "3", "1 5|x10 y25"),
        (results().inclusive(), notes().inclusive(), "4", "1 2 3 5|x10 x20 x20 y25"),
        (results().inclusive(), notes().inclusive(), "1", "5|y25"),
        (results(), notes().inclusive(), "5", "1 2 3 4 5|x10 x20 x20 x30"),
    ] {
        let mut app = jobs(results, notes);
        let before = app.dump();
        let snapshot = app.engine().get_snapshot(task).unwrap();
        let (result, archive) = app.rewind(task).unwrap();
        assert_eq!(snapshot.affected_row_counts, result.deleted_row_counts, "{task}");
        let found = app.texts(
            "SELECT (SELECT group_concat(job, ' ') FROM (SELECT DISTINCT job FROM results ORDER BY job)) || '|' || \
             (SELECT group_concat(team || at, ' ') FROM (SELECT * FROM notes ORDER BY team, at))",
        );
        assert_eq!(found, [left], "{task}");
        app.undo(&archive).unwrap();
        assert_eq!(app.dump(), before);
    }
}

/// Tasks, events and lines of events at 10, 20 and 30, where the boundary of the events is inclusive.
fn lines(on: &[(&str, &str)], is_inclusive: bool) -> TestApp {
    let on = on.iter().map(|(own, up)| ((*own).to_owned(), (*up).to_owned())).collect();
    let lines = TableConfig::following("lines", Follow::Columns { table: "events".to_owned(), on });
    TestApp::new(
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, at INTEGER NOT NULL);
         CREATE TABLE events (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, UNIQUE (n, at));
         CREATE TABLE lines (event INTEGER, at INTEGER);
         INSERT INTO tasks VALUES (1, 10), (2, 20), (3, 30);
         INSERT INTO events SELECT * FROM tasks; INSERT INTO lines SELECT * FROM tasks",
        |path| RewindTarget {
            database: path.to_owned(),
            anchor: anchor("tasks", "id", "at"),
            tables: vec![
                if is_inclusive { lines.inclusive() } else { lines },
                TableConfig::by_column("events", "at").inclusive(),
                TableConfig::by_column("tasks", "at"),
            ],
            audit: None,
            profile: None,
        },
    )
}

#[test]
fn rows_follow_a_parent_whose_own_boundary_is_inclusive() {
    let left = |mut app: TestApp| {
        let before = app.dump();
        let (_, archive) = app.rewind("2").unwrap();
        let left = app.texts(
            "SELECT (SELECT group_concat(n) FROM events) || '|' || coalesce(group_concat(event), '') FROM lines",
        );
        app.undo(&archive).unwrap();
        assert_eq!(app.dump(), before);
        left
    };
    let (by_key, by_copies) = ([("event", "n")], [("event", "n"), ("at", "at")]);
    assert_eq!(left(lines(&by_key, false)), ["1|1"]);
    assert_eq!(left(lines(&by_copies, false)), ["1|1"], "a copy of the order is compared as the parent's");
    assert_eq!(left(lines(&by_key, true)), ["1|"], "the event at the bound goes, so the one before is the last");
}

#[test]
fn an_inclusive_boundary_needs_something_to_stand_at() {
    let mut app = jobs(
        TableConfig::following("results", Follow::ForeignKey("parent".to_owned())),
        TableConfig::by_column("notes", "at"),
    );
    app.target.tables[2] = TableConfig::by_column("jobs", "at").inclusive();
    let error = app.rewind("1").unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.message().contains("the target task would be removed too"), "{error}");
    app.target.tables[2] = TableConfig::by_column("jobs", "at");
    app.sql("CREATE TABLE lines (result INTEGER, n INTEGER); CREATE UNIQUE INDEX u ON results (job, n)");
    let on = vec![("result".to_owned(), "job".to_owned()), ("n".to_owned(), "n".to_owned())];
    let follow = Follow::Columns { table: "results".to_owned(), on };
    app.target.tables.push(TableConfig::following("lines", follow).inclusive());
    let error = app.rewind("1").unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.message().contains("results has no order of its own"), "{error}");
}
