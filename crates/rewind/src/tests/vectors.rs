//! Tables of vectors (`vec0`): cut with the rows that they belong to, and found by the same searches when they are back.

use ic_base::Code;

use super::fixture::{TestApp, anchor};
use crate::{Audit, Follow, RewindTarget, TableConfig};

/// Notes at 1 to 9 in two projects; a table of vectors of every kind of column, one with a text for its key, and one without any.
fn notes() -> TestApp {
    let app = TestApp::new(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT UNIQUE, project TEXT, at INTEGER NOT NULL);
         CREATE VIRTUAL TABLE vectors USING vec0(note_id integer primary key, place float[3], small int8[8], bits bit[8],
           project text partition key, kind text, size integer, share float, good boolean, +said text, +raw blob);
         CREATE VIRTUAL TABLE \"by name\" USING vec0(name text primary key, place float[3] distance_metric=cosine);
         CREATE VIRTUAL TABLE plain USING vec0(place float[3])",
        target,
    );
    for n in 1..=9 {
        let (name, project) = (format!("note-{n}"), if n % 2 == 0 { "x" } else { "y" });
        app.sql(&format!(
            "INSERT INTO notes VALUES ({n}, '{name}', '{project}', {n});
             INSERT INTO vectors VALUES ({n}, '[{n}, 0.5, -{n}]', vec_int8('[{n},2,3,4,5,6,7,-8]'), vec_bit(x'{n:02x}'), '{project}',
               'a kind that is longer than twelve bytes {n}', {n}, {n}.0, {}, CASE {n} WHEN 3 THEN NULL ELSE 'said {n}' END, x'{n:02x}ff00');
             INSERT INTO \"by name\" VALUES ('{name}', '[{n}, 1, 0]');
             INSERT INTO plain (rowid, place) VALUES ({n}, '[0, {n}, 1]')",
            n % 2
        ));
    }
    app
}

fn target(path: &std::path::Path) -> RewindTarget {
    let follow =
        |own: &str, up: &str| Follow::Columns { table: "notes".to_owned(), on: vec![(own.to_owned(), up.to_owned())] };
    RewindTarget {
        database: path.to_owned(),
        anchor: anchor("notes", "id", "at"),
        tables: vec![
            TableConfig::by_column("notes", "at"),
            TableConfig::following("vectors", follow("note_id", "id")),
            TableConfig::following("by name", follow("name", "name")),
            TableConfig::following("plain", follow("rowid", "id")),
        ],
        audit: None,
        profile: None,
    }
}

/// What searches find, with distances.
fn searches(app: &TestApp) -> Vec<String> {
    [
        "SELECT note_id || ' ' || distance || ' ' || coalesce(said, '-') FROM vectors WHERE place MATCH '[5, 0, 0]' AND k = 20",
        "SELECT note_id || ' ' || distance FROM vectors WHERE small MATCH vec_int8('[5,2,3,4,5,6,7,-8]') AND k = 4",
        "SELECT note_id || ' ' || distance FROM vectors WHERE bits MATCH vec_bit(x'07') AND k = 20",
        "SELECT note_id || ' ' || distance FROM vectors WHERE place MATCH '[5, 0, 0]' AND k = 3 AND project = 'x' AND size > 3 AND good = 0",
        "SELECT name || ' ' || distance FROM \"by name\" WHERE place MATCH '[2, 1, 0]' AND k = 5",
        "SELECT rowid || ' ' || distance FROM plain WHERE place MATCH '[0, 4, 1]' AND k = 5",
    ]
    .iter()
    .map(|sql| app.texts(sql).join(", "))
    .collect()
}

/// All rows, but those of the tables in which the module keeps them: it puts them where there is room.
fn rows(app: &TestApp) -> String {
    let dump = app.full_dump();
    dump.lines().filter(|line| !line.contains("_vector_chunks")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn vectors_go_with_their_rows_and_are_found_again_after_an_undo() {
    let mut app = notes();
    let (before, found) = (rows(&app), searches(&app));
    let snapshot = app.engine().get_snapshot("4").unwrap();
    let (result, archive) = app.rewind("4").unwrap();
    assert_eq!(snapshot.affected_row_counts, result.deleted_row_counts);
    let counts: Vec<_> = result.deleted_row_counts.iter().collect();
    assert_eq!(counts, [("vectors", 5), ("by name", 5), ("plain", 5), ("notes", 5)]);
    let left = searches(&app);
    assert_eq!(left[0].matches("said").count(), 3, "{left:?}");
    assert!(left.iter().zip(&found).all(|(left, found)| left != found), "{left:?}");
    assert_eq!(app.texts("SELECT count(*) FROM plain"), ["4"]);

    app.undo(&archive).unwrap();
    assert_eq!(rows(&app), before);
    assert_eq!(searches(&app), found);
    assert_eq!(app.undo(&archive).unwrap_err().code(), Code::NothingToUndo);
    // Twice over the same places.
    app.rewind("1").unwrap();
    assert_eq!(searches(&app)[0].split(", ").count(), 1);
}

#[test]
fn vectors_that_were_written_since_stand_in_the_way() {
    for (sql, name) in [
        ("INSERT INTO plain (rowid, place) VALUES (7, '[1, 1, 1]')", "plain 7"),
        ("INSERT INTO \"by name\" VALUES ('note-6', '[1, 1, 1]')", "by name 'note-6'"),
        (
            "INSERT INTO vectors VALUES (9, '[1,1,1]', vec_int8('[1,2,3,4,5,6,7,8]'), vec_bit(x'00'), 'x', 'k', 1, 1.0, 1, NULL, NULL)",
            "vectors 9",
        ),
    ] {
        let mut app = notes();
        let (_, archive) = app.rewind("4").unwrap();
        app.sql(sql);
        app.undo_is_refused(&archive, name);
    }
}

#[test]
fn vectors_with_a_time_of_their_own_need_no_parent() {
    let mut app = notes();
    app.target.tables = vec![TableConfig::by_column("vectors", "size"), TableConfig::by_column("notes", "at")];
    let found = searches(&app);
    let (result, archive) = app.rewind("8").unwrap();
    assert_eq!(result.deleted_row_counts.iter().collect::<Vec<_>>(), [("vectors", 1), ("notes", 1)]);
    app.undo(&archive).unwrap();
    assert_eq!(searches(&app), found);
}

#[test]
fn what_the_module_keeps_its_vectors_in_is_not_cut_directly() {
    let mut app = notes();
    for table in ["plain_rowids", "plain_vector_chunks00", "plain_chunks", "vectors_metadatachunks00"] {
        app.target.tables = vec![TableConfig::by_column(table, "rowid"), TableConfig::by_column("notes", "at")];
        let error = app.rewind("4").unwrap_err();
        assert_eq!(error.code(), Code::InvalidConfig);
        assert!(error.message().contains("part of a virtual table"), "{error}");
    }
    app.target.tables = vec![TableConfig::by_column("notes", "at")];
    app.target.audit = Some(Audit {
        table: "plain".to_owned(),
        event: "place".to_owned(),
        payload: "place".to_owned(),
        order: None,
        task: None,
        id: None,
        triggers: crate::Triggers::Refuse,
    });
    assert_eq!(app.rewind("4").unwrap_err().code(), Code::InvalidConfig);
}

#[test]
fn a_failure_leaves_the_vectors_where_they_were() {
    let mut app = notes();
    app.sql("DROP TABLE vectors");
    app.target.tables.remove(1);
    let search =
        |app: &TestApp| app.texts("SELECT rowid || ' ' || distance FROM plain WHERE place MATCH '[0, 4, 1]' AND k = 9");
    let (before, found) = (rows(&app), search(&app));
    let mut archive = crate::Archive::at(app.file("rewind"));
    let rewind = crate::Rewind { id: "rewind", now: super::fixture::NOW };
    let mut failures = 0;
    for n in 1.. {
        let mut engine = app.engine();
        crate::faults::fail_before(n);
        let done = engine.rollback_to_task("4", &rewind, &mut archive);
        let statements = crate::faults::log().len() as u64;
        crate::faults::fail_before(0);
        if done.is_ok() {
            // What is not asked of a table that plays no part may fail.
            app.undo(&archive).unwrap();
            archive.remove().unwrap();
        } else {
            failures += 1;
        }
        assert_eq!((rows(&app), search(&app)), (before.clone(), found.clone()), "before statement {n}");
        if statements < n {
            break;
        }
    }
    assert!(failures > 40, "{failures}");
}
