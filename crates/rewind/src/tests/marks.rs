//! Marks lie behind every row that was there, in each scope by itself, whatever kind of number orders it.

use ic_base::Code;

use super::fixture::{NOW, TestApp, anchor};
use crate::{Anchor, Archive, Rewind, RewindTarget, SqlScalar, TableConfig, TaskRef};

/// Tasks and notes of projects, with orders that may be any number.
fn projects(sql: &str) -> TestApp {
    let tables = "CREATE TABLE tasks (id TEXT PRIMARY KEY, project, at NOT NULL); \
                  CREATE TABLE notes (id INTEGER PRIMARY KEY, project, at NOT NULL);";
    let app = TestApp::new(tables, |path| RewindTarget {
        database: path.to_owned(),
        anchor: Anchor { scope: vec!["project".to_owned()], ..anchor("tasks", "id", "at") },
        tables: vec![TableConfig::by_column("notes", "at"), TableConfig::by_column("tasks", "at")],
        audit: None,
        profile: None,
    });
    app.sql(sql);
    app
}

/// The order of the mark of a project; none if it has none.
fn order(app: &TestApp, project: &str) -> Option<SqlScalar> {
    let mark = app.engine().mark().unwrap();
    let of = |scope: &[(String, SqlScalar)]| scope[0].1 == SqlScalar::from(project);
    mark.scopes.into_iter().find(|one| of(&one.scope)).map(|one| one.order)
}

#[test]
fn every_scope_has_a_mark_behind_its_newest_row() {
    let mut app = projects(
        "INSERT INTO tasks VALUES ('A', 'a', 10), ('B', 'b', 30); \
         INSERT INTO notes VALUES (1, 'a', 20), (2, 'b', 20), (3, 'notes only', 5)",
    );
    assert_eq!(order(&app, "a"), Some(SqlScalar::Integer(20)), "a note is newer than the task");
    assert_eq!(order(&app, "b"), Some(SqlScalar::Integer(30)), "an older note moves nothing");
    assert_eq!(order(&app, "notes only"), Some(SqlScalar::Integer(5)));
    assert_eq!(order(&app, "unknown"), None);

    let (mark, before) = (app.engine().mark().unwrap(), app.full_dump());
    app.sql("INSERT INTO notes VALUES (4, 'a', 21), (5, 'b', 31), (6, 'notes only', 6); INSERT INTO tasks VALUES ('N', 'notes only', 7)");
    for (n, project) in ["a", "b", "notes only"].into_iter().enumerate() {
        let id = format!("mark-{n}");
        let mut archive = Archive::at(app.file(&id));
        let scope = [("project".to_owned(), SqlScalar::from(project))];
        let rewind = Rewind { id: &id, now: NOW };
        let result = app.engine().rollback_to_mark(&mark, &scope, &rewind, &mut archive).unwrap();
        assert_eq!(result.deleted_row_counts.total(), if n == 2 { 2 } else { 1 }, "{project}");
    }
    assert_eq!(app.full_dump(), before);
    // A scope without a mark had nothing.
    app.sql("INSERT INTO notes VALUES (7, 'new', 1)");
    let scope = [("project".to_owned(), SqlScalar::from("new"))];
    assert_eq!(app.engine().get_mark_snapshot(&mark, &scope).unwrap().affected_row_counts.total(), 1);
    app.rewind(TaskRef::new("A").in_scope("project", "a")).unwrap();
}

#[test]
fn a_mark_made_with_other_scope_columns_is_refused() {
    let mut app = projects("ALTER TABLE tasks ADD COLUMN team; ALTER TABLE notes ADD COLUMN team;");
    app.sql("INSERT INTO tasks VALUES ('A', 'a', 10, 't'); INSERT INTO notes VALUES (1, 'a', 20, 't')");
    let of = |name: &str, value: &str| (name.to_owned(), SqlScalar::from(value));
    let both = [of("project", "a"), of("team", "t")];
    let before = app.full_dump();
    for (then, now) in [(&[][..], &["project"][..]), (&["project"], &[]), (&["team"], &["project"])] {
        app.target.anchor.scope = then.iter().map(|name| (*name).to_owned()).collect();
        let mark = app.engine().mark().unwrap();
        app.target.anchor.scope = now.iter().map(|name| (*name).to_owned()).collect();
        let scope: Vec<_> = both.iter().filter(|(name, _)| now.contains(&name.as_str())).cloned().collect();
        let refused = app.engine().get_mark_snapshot(&mark, &scope).unwrap_err();
        assert_eq!(refused.code(), Code::NoCheckpoint, "{then:?}, {now:?}: {refused}");
        let mut archive = Archive::at(app.file("mark"));
        let rewind = Rewind { id: "mark", now: NOW };
        let refused = app.engine().rollback_to_mark(&mark, &scope, &rewind, &mut archive).unwrap_err();
        assert_eq!(refused.code(), Code::NoCheckpoint, "{then:?}, {now:?}: {refused}");
        assert_eq!(app.full_dump(), before);
    }
    // The same columns in another order are the same scopes.
    app.target.anchor.scope = vec!["project".to_owned(), "team".to_owned()];
    let mark = app.engine().mark().unwrap();
    app.target.anchor.scope.reverse();
    assert_eq!(app.engine().get_mark_snapshot(&mark, &both).unwrap().affected_row_counts.total(), 0);
}

#[test]
fn one_engine_rewinds_scopes_one_after_the_other() {
    let app = projects("INSERT INTO tasks VALUES ('A', 'a', 10), ('B', 'b', 10)");
    // A row without its parent makes the check of references look into the archive.
    app.sql(
        "CREATE TABLE files (task REFERENCES tasks(id)); PRAGMA foreign_keys=OFF; INSERT INTO files VALUES ('gone')",
    );
    let (mark, before) = (app.engine().mark().unwrap(), app.full_dump());
    app.sql("INSERT INTO tasks VALUES ('A2', 'a', 20), ('B2', 'b', 20)");
    let mut engine = app.engine();
    for project in ["a", "b"] {
        let mut archive = Archive::at(app.file(project));
        let scope = [("project".to_owned(), SqlScalar::from(project))];
        let rewind = Rewind { id: project, now: NOW };
        let result = engine.rollback_to_mark(&mark, &scope, &rewind, &mut archive).unwrap();
        assert_eq!(result.deleted_row_counts.total(), 1, "{project}");
    }
    assert_eq!(app.full_dump(), before);
}

#[test]
fn numbers_of_both_kinds_are_compared() {
    for (task, note, marked) in [
        ("10", "10.5", SqlScalar::Real(10.5)),
        ("10", "9.5", SqlScalar::Integer(10)),
        ("10.5", "11", SqlScalar::Integer(11)),
        ("10.5", "10", SqlScalar::Real(10.5)),
        ("10.5", "10.75", SqlScalar::Real(10.75)),
        ("10.5", "10.25", SqlScalar::Real(10.5)),
        ("'2026-01-01'", "'2026-01-02'", SqlScalar::from("2026-01-02")),
        ("'2026-01-02'", "'2026-01-01'", SqlScalar::from("2026-01-02")),
        // Of another kind: nothing that could be compared, so the rewind will name it.
        ("10", "'2026-01-01'", SqlScalar::Integer(10)),
    ] {
        let app = projects(&format!(
            "INSERT INTO tasks VALUES ('A', 'a', {task}); INSERT INTO notes VALUES (1, 'a', {note})"
        ));
        assert_eq!(order(&app, "a"), Some(marked), "{task}, {note}");
    }
    let app = projects("INSERT INTO notes VALUES (1, 'a', x'00')");
    assert_eq!(order(&app, "a"), None, "what is no order is no mark");
}

#[test]
fn a_scope_that_is_a_number_is_found_by_its_digits() {
    let mut app = projects("INSERT INTO tasks VALUES ('A', 7, 10), ('B', 7, 20), ('A2', 8, 10), ('C', 7, 30)");
    for wrong in ["07", "+7", "7.0", "9"] {
        let task = TaskRef::new("A").in_scope("project", wrong);
        assert_eq!(app.rewind(task).unwrap_err().code(), Code::UnknownTask, "{wrong}");
    }
    let (result, _) = app.rewind(TaskRef::new("A").in_scope("project", "7")).unwrap();
    assert_eq!(result.deleted_row_counts.total(), 2);
}
