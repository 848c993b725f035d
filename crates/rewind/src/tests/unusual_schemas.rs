//! What strangers' databases hold and ask for.

use ic_base::Code;

use super::fixture::{TestApp, anchor};
use crate::{RewindTarget, TableConfig};

fn tasks(sql: &str) -> TestApp {
    let app = TestApp::new(
        "CREATE TABLE tasks (id, at INTEGER NOT NULL, said TEXT); \
         INSERT INTO tasks VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 30, 'z')",
        |path| RewindTarget {
            database: path.to_owned(),
            anchor: anchor("tasks", "id", "at"),
            tables: vec![TableConfig::by_column("tasks", "at").firing()],
            audit: None,
            profile: None,
        },
    );
    app.sql(sql);
    app
}

#[test]
fn a_function_of_the_application_is_missed_before_anything_is_begun() {
    let mut app = tasks("CREATE TRIGGER t AFTER DELETE ON tasks BEGIN SELECT embed(old.said); END");
    let before = app.full_dump();
    for error in [app.engine().get_snapshot("1").unwrap_err(), app.rewind("1").unwrap_err()] {
        assert_eq!(error.code(), Code::InvalidConfig);
        assert!(error.message().contains("no such function: embed"), "{error}");
        assert!(!error.message().contains("DELETE"), "our statement is of no use: {error}");
    }
    assert_eq!(app.full_dump(), before);
}

#[test]
fn a_number_is_named_as_it_is_shown() {
    let mut app = tasks("");
    for id in ["01", "+1", " 1", "1.0", "1e0"] {
        assert_eq!(app.rewind(id).unwrap_err().code(), Code::UnknownTask, "{id}");
    }
    app.rewind("1").unwrap();
}

#[test]
fn a_trigger_or_a_constraint_that_stands_against_it_is_named() {
    let mut app = tasks("CREATE TRIGGER t BEFORE DELETE ON tasks BEGIN SELECT raise(ABORT, 'tasks are forever'); END");
    let error = app.rewind("1").unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("tasks are forever") && error.get_hint().is_some(), "{error}");

    let mut app = tasks("CREATE UNIQUE INDEX said ON tasks (lower(said)) WHERE at > 15");
    let (_, archive) = app.rewind("1").unwrap();
    app.sql("INSERT INTO tasks (rowid, id, at, said) VALUES (9, 9, 90, 'Y')");
    let before = app.full_dump();
    let error = app.undo(&archive).unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("index 'said'") && error.get_hint().is_some(), "{error}");
    assert_eq!(app.full_dump(), before);
}

#[test]
fn vectors_of_another_version_are_left_alone() {
    let mut app = tasks("");
    app.plant("vec", "CREATE VIRTUAL TABLE vec USING vec0(place quux[4] by magic)", "vec_vector_chunks00");
    app.rewind("2").unwrap();
    app.cuts_none_of(
        "1",
        [("vec", "in a form that is not known here"), ("vec_vector_chunks00", "part of a virtual table")],
    );
}
