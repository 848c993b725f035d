//! What stands in the way of an undo, and what does not.

use ic_base::Code;

use super::fixture::{NOW, TestApp, anchor};
use crate::{Archive, ArchiveState, Follow, Rewind, RewindTarget, TableConfig, UndoError, UndoResult};

#[test]
fn rows_with_the_same_keys_stand_in_the_way() {
    for (row, named) in [
        ("INSERT INTO tasks VALUES ('T3', 'another', '', NULL, 50)", "tasks 'T3'"),
        ("INSERT INTO agent_logs VALUES (9, 'T1', 'new', '', 50)", "agent_logs 9"),
    ] {
        let mut app = TestApp::devs();
        let (_, archive) = app.rewind("T2").unwrap();
        app.sql(row);
        app.undo_is_refused(&archive, named);
    }
}

#[test]
fn what_was_written_since_stays_when_it_is_not_in_the_way() {
    let mut app = TestApp::devs();
    let before = app.dump();
    let (_, archive) = app.rewind("T2").unwrap();
    app.sql(
        "INSERT INTO tasks VALUES ('T4', '', '', NULL, 400); INSERT INTO agent_logs VALUES (NULL, 'T4', 'e', '', 400);
         CREATE INDEX later ON tasks (created_at); CREATE TABLE other (a)",
    );
    app.undo(&archive).unwrap();
    app.sql("DELETE FROM agent_logs WHERE task_id = 'T4'; DELETE FROM tasks WHERE task_id = 'T4'");
    // The new task has the hidden rowid that T3 had; a row with a key can do with another.
    assert_eq!(app.dump(), before.replace("tasks: 3|'T3'", "tasks: 4|'T3'"));
    assert_eq!(app.undo(&archive).unwrap_err().code(), Code::NothingToUndo);
}

#[test]
fn an_audit_that_was_cleared_does_not_prevent_an_undo() {
    let mut app = TestApp::devs();
    let before = app.dump();
    let (_, archive) = app.rewind("T1").unwrap();
    app.sql("DELETE FROM agent_logs WHERE event_type = 'ROLLBACK_COMPLETED'");
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    // A caller tells it apart by what it is; the code is for those who read the answer.
    let mut engine = app.try_engine().unwrap();
    let all_there = |undone: UndoResult<_>| matches!(undone, Err(UndoError::AllThere { .. }));
    assert!(all_there(engine.preview_undo(&archive)) && all_there(engine.undo(&archive, NOW)));
    assert_eq!(app.undo(&archive).unwrap_err().code(), Code::NothingToUndo);
}

#[test]
fn with_a_cleared_log_an_archive_is_the_only_copy_and_stays() {
    let mut app = TestApp::devs();
    let before = app.dump();
    let (_, mut archive) = app.rewind("T1").unwrap();
    app.sql("DELETE FROM agent_logs");
    assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Applied);
    let again = Rewind { id: "rewind-1", now: NOW };
    let error = app.engine().rollback_to_task("T1", &again, &mut archive).unwrap_err();
    assert_eq!(error.code(), Code::ArchiveInUse, "{error}");
    app.undo(&archive).unwrap();
    let tasks = |dump: &str| dump.lines().filter(|line| line.starts_with("tasks")).count();
    assert_eq!(tasks(&app.dump()), tasks(&before));
}

#[test]
fn an_archive_of_rows_that_were_changed_since_is_set_aside() {
    for change in [
        "UPDATE tasks SET title = 'changed' WHERE task_id = 'T3'",
        "UPDATE tasks SET title = 'changed'; UPDATE requirements SET body = 'changed'; \
         UPDATE langgraph_checkpoints SET payload = 'changed'",
    ] {
        let mut app = TestApp::devs();
        let (_, mut archive) = app.rewind("T1").unwrap();
        app.undo(&archive).unwrap();
        app.sql("DELETE FROM agent_logs WHERE event_type LIKE 'ROLLBACK%'");
        app.sql(change);
        assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Unused, "{change}");
        let again = Rewind { id: "rewind-1", now: NOW };
        app.engine().rollback_to_task("T1", &again, &mut archive).unwrap();
        assert_eq!(app.texts("SELECT task_id FROM tasks"), ["T1"]);
        let old = Archive::at(archive.aside(1)).manifest().unwrap();
        assert_eq!(old.tables, archive.manifest().unwrap().tables, "what made way is kept");
    }
}

#[test]
fn without_a_key_the_rowid_is_one() {
    let sql = "CREATE TABLE tasks (id TEXT, at INTEGER); INSERT INTO tasks VALUES ('T', 1), ('U', 2)";
    let mut app = plain(sql, vec![TableConfig::by_column("tasks", "at")]);
    let (_, archive) = app.rewind("T").unwrap();
    app.sql("INSERT INTO tasks VALUES ('V', 3)");
    let error = app.undo(&archive).unwrap_err();
    assert!(error.message().ends_with("tasks 2."), "{error}");
    app.sql("UPDATE tasks SET rowid = 7 WHERE id = 'V'");
    app.undo(&archive).unwrap();
    assert_eq!(app.texts("SELECT id FROM tasks ORDER BY rowid"), ["T", "U", "V"]);
}

#[test]
fn a_schema_that_changed_stands_in_the_way() {
    for (change, how) in [
        ("ALTER TABLE requirements ADD COLUMN more TEXT", "requirements was changed"),
        ("DROP TABLE langgraph_checkpoints", "langgraph_checkpoints was removed"),
        ("CREATE TRIGGER t AFTER INSERT ON tasks BEGIN SELECT 1; END", "tasks was changed"),
    ] {
        let mut app = TestApp::devs();
        let (_, archive) = app.rewind("T2").unwrap();
        app.sql(change);
        for table in &mut app.target.tables {
            table.triggers = crate::Triggers::Fire;
        }
        app.target.tables.retain(|t| !change.contains("DROP") || t.name != "langgraph_checkpoints");
        let before = app.full_dump();
        let error = app.undo(&archive).unwrap_err();
        assert_eq!(error.code(), Code::TableConflict);
        assert!(error.message().contains(how), "{error}");
        assert_eq!(app.full_dump(), before);
    }
}

#[test]
fn a_new_constraint_is_respected() {
    let mut app = TestApp::devs();
    app.sql("UPDATE tasks SET title = 'same'");
    let (_, archive) = app.rewind("T2").unwrap();
    app.sql("UPDATE tasks SET title = task_id; CREATE UNIQUE INDEX titles ON tasks (title); UPDATE tasks SET title = 'same' WHERE task_id = 'T1'");
    let before = app.full_dump();
    let error = app.undo(&archive).unwrap_err();
    assert!(error.message().contains("tasks 'T1'"), "{error}");
    app.sql("DROP INDEX titles; CREATE UNIQUE INDEX titles ON tasks (lower(title))");
    let error = app.undo(&archive).unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("UNIQUE constraint failed"), "{error}");
    assert_eq!(app.full_dump(), before);
}

#[test]
fn keys_keep_their_counts_when_tables_are_made_since() {
    let mut app = TestApp::new(
        "PRAGMA foreign_keys=OFF; CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER);
         CREATE TABLE logs (task REFERENCES tasks(id), extra REFERENCES extras(id), at INTEGER);
         INSERT INTO tasks VALUES ('T1', 1), ('T2', 2); INSERT INTO logs VALUES ('T1', 7, 2)",
        |path| RewindTarget {
            database: path.to_owned(),
            anchor: anchor("tasks", "id", "at"),
            tables: vec![TableConfig::by_column("logs", "at"), TableConfig::by_column("tasks", "at")],
            audit: None,
            profile: None,
        },
    );
    let (_, archive) = app.rewind("T1").unwrap();
    app.sql("CREATE TABLE extras (id PRIMARY KEY); PRAGMA foreign_keys=OFF; UPDATE tasks SET id = 'T0'");
    app.undo_is_refused(&archive, "tasks 'T1'");
    app.sql("UPDATE tasks SET id = 'T1'");
    app.undo(&archive).unwrap();
    assert_eq!(app.texts("SELECT extra FROM logs"), ["7"], "it had no parent in a table that was not there");
}

#[test]
fn a_parent_that_is_gone_stands_in_the_way() {
    let mut app = TestApp::devs();
    app.sql("PRAGMA foreign_keys=OFF; INSERT INTO requirements VALUES ('lost', 'never was', '', 900)");
    let with_orphan = app.dump();
    let (_, archive) = app.rewind("T1").unwrap();
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), with_orphan, "a row that had no parent comes back without one");
    let (_, archive) = app.rewind("T2").unwrap();
    app.sql("DELETE FROM tasks WHERE task_id = 'T2'");
    let before = app.full_dump();
    let error = app.undo(&archive).unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("tasks 'T2'"), "{error}");
    assert_eq!(app.full_dump(), before);
    app.sql("INSERT INTO tasks VALUES ('T2', '', '', NULL, 200)");
    app.undo(&archive).unwrap();
}

#[test]
fn the_audit_does_not_take_the_ids_of_the_rows_that_went() {
    let mut app = TestApp::devs();
    let (_, archive) = app.rewind("T1").unwrap();
    assert_eq!(app.texts("SELECT log_id FROM agent_logs ORDER BY 1"), ["1", "10"]);
    app.sql("INSERT INTO agent_logs VALUES (NULL, 'T1', 'e', '', 100)");
    app.undo(&archive).unwrap();
    let mut app = TestApp::devs();
    app.sql("INSERT INTO agent_logs VALUES (9223372036854775807, 'T1', 'e', '', 999)");
    let before = app.dump();
    let (_, archive) = app.rewind("T1").unwrap();
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
}

#[test]
fn archives_that_are_missing_foreign_newer_or_damaged_are_refused() {
    let mut app = TestApp::devs();
    let (_, archive) = app.rewind("T1").unwrap();
    let before = app.full_dump();
    let error = app.undo(&Archive::at(app.file("missing"))).unwrap_err();
    assert_eq!(error.code(), Code::PathNotFound);
    assert_eq!(app.undo(&Archive::at(app.path())).unwrap_err().code(), Code::ForeignDatabase);
    let change = |sql: &str| {
        let path = app.file("copy");
        std::fs::copy(archive.path(), &path).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        app.undo(&Archive::at(path)).unwrap_err()
    };
    assert_eq!(change("PRAGMA user_version=2").code(), Code::NewerSchema);
    assert_eq!(change("UPDATE manifest SET json = '{'").code(), Code::Corrupt);
    assert_eq!(change("UPDATE manifest SET json = x'00'").code(), Code::Corrupt);
    assert_eq!(change("DELETE FROM manifest").code(), Code::Corrupt);
    let error = change("DELETE FROM rows_0");
    assert_eq!(error.code(), Code::Corrupt);
    assert!(error.message().contains("3 rows of agent_logs were archived, and 0 are there"), "{error}");
    std::fs::write(app.file("copy"), [1; 5000]).unwrap();
    assert_eq!(app.undo(&Archive::at(app.file("copy"))).unwrap_err().code(), Code::ForeignDatabase);
    assert_eq!(app.full_dump(), before);
    archive.remove().unwrap();
    archive.remove().unwrap();
    assert!(!archive.exists().unwrap());
    assert!(Archive::at(app.path().parent().unwrap()).remove().is_err());
}

#[test]
fn tables_left_out_of_the_configuration_since_still_come_back() {
    let mut app = TestApp::devs();
    let before = app.dump();
    let (_, archive) = app.rewind("T1").unwrap();
    app.target.tables.truncate(1);
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
}

fn plain(sql: &str, tables: Vec<TableConfig>) -> TestApp {
    TestApp::new(sql, |path| RewindTarget {
        database: path.to_owned(),
        anchor: anchor("tasks", "id", "at"),
        tables,
        audit: None,
        profile: None,
    })
}

#[test]
fn without_an_audit_the_rows_tell_what_became_of_an_archive() {
    let sql =
        "CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER); INSERT INTO tasks VALUES ('T', 1), ('U', 2), ('V', 3)";
    let mut app = plain(sql, vec![TableConfig::by_column("tasks", "at")]);
    let (_, archive) = app.rewind("T").unwrap();
    let state = |app: &TestApp| app.engine().archive_state(&archive);
    assert_eq!(state(&app).unwrap(), ArchiveState::Applied);
    app.sql("INSERT INTO tasks VALUES ('U', 2)");
    assert_eq!(state(&app).unwrap_err().code(), Code::RowConflict);
    app.sql("DELETE FROM tasks WHERE id = 'U'");
    app.undo(&archive).unwrap();
    assert_eq!(state(&app).unwrap(), ArchiveState::Unused);
    app.sql("CREATE TABLE other (id, at); DROP TABLE tasks; ALTER TABLE other RENAME TO tasks; CREATE TABLE x (a)");
    assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Applied);
    app.sql("DROP TABLE tasks; CREATE VIEW tasks AS SELECT 'T' AS id, 1 AS at; CREATE TABLE logs (at)");
    app.target.tables = vec![TableConfig::by_column("logs", "at")];
    assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Applied, "the table is no more");
}

#[test]
fn a_trigger_that_came_with_the_table_may_need_its_declaration_again() {
    let sql =
        "CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER); CREATE TABLE logs (id INTEGER PRIMARY KEY, at INTEGER);
        CREATE TRIGGER t AFTER INSERT ON logs BEGIN UPDATE logs SET at = at + 1 WHERE id = new.id; END;
        INSERT INTO tasks VALUES ('T', 1); INSERT INTO logs VALUES (1, 5)";
    let mut app = plain(sql, vec![TableConfig::by_column("logs", "at").firing()]);
    let (_, archive) = app.rewind("T").unwrap();
    let error = app.undo(&archive).unwrap_err();
    assert!(error.message().contains("would not come back as they were in logs"), "{error}");
    app.target.tables = vec![TableConfig::by_column("tasks", "at")];
    assert_eq!(app.undo(&archive).unwrap_err().code(), Code::InvalidConfig);
    assert_eq!(app.texts("SELECT count(*) FROM logs"), ["0"]);
}

#[test]
fn every_encoding_and_every_kind_of_value_comes_back() {
    let sql = "PRAGMA encoding='UTF-16le'; PRAGMA foreign_keys=OFF; CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER) WITHOUT ROWID;
        CREATE TABLE v (a TEXT, b REAL, c NUMERIC, d BLOB, e INT, at INTEGER CHECK (at < 100), f AS (a || 'x') STORED);
        CREATE VIRTUAL TABLE box USING rtree(id, low, high, +at);
        CREATE TABLE deep (k INTEGER REFERENCES follow(k), v); CREATE TABLE follow (k INTEGER PRIMARY KEY, task TEXT REFERENCES tasks);
        INSERT INTO tasks VALUES ('T\u{e9}', 1), ('U', 2);
        INSERT INTO follow VALUES (1, 'T\u{e9}'), (2, 'U'), (3, NULL); INSERT INTO deep VALUES (1, 'a'), (2, 'b'), (2, 'c'), (9, 'd');
        INSERT INTO v VALUES ('5', 5, '5.0', x'', 1e300, 2), (x'c3', -0.0, 'x', 'text', 9e999, 2), (NULL, NULL, 1.5, 5.0, '', 2),
          (char(0) || 'nul', 0.1, 9223372036854775807, zeroblob(70000), -9223372036854775808, 2);
        INSERT INTO box VALUES (1, 1.1, 2.2, 1), (2, 3.3, 4.4, 2);
        INSERT INTO v (rowid, at) VALUES (-5, 3), (1000, 3)";
    let follow = |name| TableConfig::following(name, Follow::ForeignKey("parent".into()));
    let mut app = plain(
        sql,
        vec![
            TableConfig::by_column("tasks", "at"),
            follow("follow"),
            follow("deep"),
            TableConfig::by_column("v", "at"),
            TableConfig::by_column("box", "at"),
        ],
    );
    let before = app.dump();
    let snapshot = app.engine().get_snapshot("T\u{e9}").unwrap();
    let (result, archive) = app.rewind("T\u{e9}").unwrap();
    assert_eq!(snapshot.affected_row_counts, result.deleted_row_counts);
    let counts: Vec<_> = result.deleted_row_counts.iter().collect();
    assert_eq!(counts, [("deep", 2), ("follow", 1), ("tasks", 1), ("v", 6), ("box", 1)]);
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
}
