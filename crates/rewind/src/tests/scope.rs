//! Scopes that are interleaved in time, followers, marks, and identifiers of every kind.

use ic_base::Code;

use super::fixture::{NOW, TestApp};
use crate::{
    Anchor, Archive, ArchiveState, Audit, Follow, Order, Profile, Rewind, RewindTarget, SqlScalar, StateMark,
    TableConfig, TaskRef, Triggers,
};

/// The tables as `langgraph-checkpoint-sqlite` makes them.
const LANGGRAPH: &str = "\
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
";

fn id(n: usize) -> String {
    format!("1ef4f797-8335-6428-8001-8a1503f9b8{n:02x}")
}

/// Two threads whose checkpoints take turns, one with a subgraph; and a write that waits for a checkpoint of its own.
fn langgraph() -> TestApp {
    let app = TestApp::new(LANGGRAPH, |path| RewindTarget::of_profile(Profile::Langgraph, path));
    for n in 0..12 {
        let (thread, ns) = [("a", ""), ("b", ""), ("a", "sub:1")][n % 3];
        let id = id(n);
        app.sql(&format!(
            "INSERT INTO checkpoints VALUES ('{thread}', '{ns}', '{id}', NULL, 'msgpack', x'0{}ff', '{{}}');
             INSERT INTO writes VALUES ('{thread}', '{ns}', '{id}', 't', 0, 'messages', 'msgpack', x'00'),
             ('{thread}', '{ns}', '{id}', 't', 1, 'messages', NULL, NULL);",
            n % 10
        ));
    }
    app.sql(&format!("INSERT INTO writes VALUES ('a', '', '{}', 'late', 0, 'x', NULL, NULL)", id(90)));
    app
}

#[test]
fn the_writes_of_the_target_go_as_the_guide_says() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/REWIND.md");
    let guide = std::fs::read_to_string(guide).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut app = langgraph();
    let of_target = format!("SELECT count(*) FROM writes WHERE checkpoint_id = '{}'", id(3));
    assert_eq!(app.texts(&of_target), ["2"]);
    app.rewind(id(3).as_str()).unwrap();
    assert_eq!(app.texts(&of_target), ["0"]);
    assert_eq!(app.texts(&of_target.replace("writes", "checkpoints")), ["1"], "the target itself stays");
    assert!(guide.contains("The writes of the target itself go too"), "the guide promises something else");
    assert!(!guide.contains("saved for the target itself stay"));
}

#[test]
fn only_the_targets_thread_is_cut() {
    let mut app = langgraph();
    let before = app.dump();
    let snapshot = app.engine().get_snapshot(id(3).as_str()).unwrap();
    let (result, archive) = app.rewind(id(3).as_str()).unwrap();
    assert_eq!(snapshot.affected_row_counts, result.deleted_row_counts);
    assert_eq!(result.deleted_row_counts.iter().collect::<Vec<_>>(), [("writes", 14), ("checkpoints", 5)]);
    let count = |table: &str| {
        app.texts(&format!(
            "SELECT thread_id || checkpoint_ns || ' ' || count(*) FROM {table} WHERE task_id <> 'late' GROUP BY thread_id, checkpoint_ns"
        ))
    };
    app.sql("ALTER TABLE checkpoints ADD COLUMN task_id DEFAULT ''");
    assert_eq!(count("checkpoints"), ["a 2", "asub:1 1", "b 4"]);
    assert_eq!(count("writes"), ["a 2", "b 8"], "those of the last ones that stay were written after them");
    app.sql("ALTER TABLE checkpoints DROP COLUMN task_id");
    assert_eq!(app.texts("SELECT count(*) FROM writes WHERE task_id = 'late'"), ["1"], "it had no parent that went");
    assert_eq!(app.engine().archive_state(&archive).unwrap(), ArchiveState::Applied);
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    assert_eq!(
        app.engine().archive_state(&archive).unwrap(),
        ArchiveState::Unused,
        "no audit tells that it was undone"
    );
    assert_eq!(app.undo(&archive).unwrap_err().code(), Code::NothingToUndo);
}

#[test]
fn a_key_in_several_threads_needs_its_scope() {
    let mut app = langgraph();
    app.sql(&format!("INSERT INTO checkpoints VALUES ('c', '', '{}', NULL, NULL, NULL, NULL)", id(3)));
    let error = app.rewind(id(3).as_str()).unwrap_err();
    assert_eq!(error.code(), Code::AmbiguousId);
    let task = TaskRef::new(id(3)).in_scope("THREAD_ID", "a");
    let (result, _) = app.rewind(task).unwrap();
    assert_eq!(result.deleted_row_counts.get("checkpoints"), Some(5));
    let error = app.engine().task(TaskRef::new(id(3)).in_scope("user", "x")).unwrap_err();
    assert_eq!(error.code(), Code::InvalidValue);
    let task = app.engine().task(TaskRef::new(id(3)).in_scope("thread_id", "c")).unwrap();
    assert_eq!(task.scope, [("thread_id".to_owned(), "c".into())]);
}

#[test]
fn another_thread_may_have_ids_that_do_not_compare() {
    let mut app = langgraph();
    app.sql("INSERT INTO checkpoints VALUES ('z', '', 'not an id', NULL, NULL, NULL, NULL)");
    app.rewind(id(3).as_str()).unwrap();
    app.sql("INSERT INTO checkpoints VALUES ('a', '', 'not an id', NULL, NULL, NULL, NULL)");
    let error = app.rewind(id(0).as_str()).unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("not an id"), "{error}");
    assert!(app.engine().get_snapshot(id(0).as_str()).is_err());
}

#[test]
fn a_mark_is_gone_back_to_without_a_task() {
    let app = langgraph();
    let mark = app.engine().mark().unwrap();
    assert_eq!(mark.scopes.len(), 2);
    let kept: StateMark = serde_json::from_str(&serde_json::to_string(&mark).unwrap()).unwrap();
    assert_eq!(kept, mark);
    // What waits at a mark was written after its checkpoint, as at any other target.
    app.sql(&format!("DELETE FROM writes WHERE checkpoint_id IN ('{}', '{}', '{}')", id(9), id(10), id(11)));
    let before = app.dump();
    app.sql(&format!("INSERT INTO checkpoints VALUES ('a', '', '{}', NULL, NULL, NULL, NULL)", id(40)));
    app.sql(&format!("INSERT INTO checkpoints VALUES ('new', '', '{}', NULL, NULL, NULL, NULL)", id(41)));
    let scope = |thread: &str| [("thread_id".to_owned(), thread.into())];
    for (n, thread) in ["a", "new", "b"].into_iter().enumerate() {
        let mut engine = app.engine();
        let snapshot = engine.get_mark_snapshot(&kept, &scope(thread)).unwrap();
        let name = format!("m{n}");
        let mut archive = Archive::at(app.file(&name));
        let rewind = Rewind { id: &name, now: NOW };
        let result = engine.rollback_to_mark(&kept, &scope(thread), &rewind, &mut archive).unwrap();
        assert_eq!(result.deleted_row_counts.get("checkpoints"), Some(u64::from(thread != "b")));
        assert_eq!(snapshot.affected_row_counts, result.deleted_row_counts);
        assert_eq!(result.task_id.is_none(), thread == "new");
        assert_eq!(archive.manifest().unwrap().order == SqlScalar::Null, thread == "new");
    }
    assert_eq!(app.dump(), before);
    let unscoped = StateMark { scopes: vec![crate::ScopeMark { scope: vec![], order: "x".into(), key: "x".into() }] };
    let refused = app.engine().get_mark_snapshot(&unscoped, &scope("a")).unwrap_err();
    assert_eq!(refused.code(), Code::NoCheckpoint, "a mark of another configuration says nothing about a scope");
    for wrong in [
        vec![],
        vec![("thread".to_owned(), "a".into())],
        [scope("a").to_vec(), vec![("x".to_owned(), SqlScalar::Null)]].concat(),
    ] {
        let error = app.engine().get_mark_snapshot(&kept, &wrong).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
    }
}

#[test]
fn a_mark_of_an_empty_database_takes_everything_and_undo_brings_it_back() {
    let app = TestApp::devs();
    app.sql("DELETE FROM requirements; DELETE FROM agent_logs; DELETE FROM langgraph_checkpoints; DELETE FROM tasks");
    let mark = app.engine().mark().unwrap();
    assert_eq!(mark.scopes, []);
    app.sql("INSERT INTO tasks VALUES ('T1', '', '', NULL, 7); INSERT INTO agent_logs VALUES (NULL, 'T1', 'e', '', 8)");
    let before = app.dump();
    let mut archive = Archive::at(app.file("m"));
    let result = app.engine().rollback_to_mark(&mark, &[], &Rewind { id: "m", now: NOW }, &mut archive).unwrap();
    assert_eq!(result.deleted_row_counts.total(), 2);
    assert_eq!(app.dump(), "");
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    let error = app.engine().get_mark_snapshot(&mark, &[("x".to_owned(), SqlScalar::Null)]).unwrap_err();
    assert_eq!(error.get_hint(), Some("give none"));
    let mark = app.engine().mark().unwrap();
    assert_eq!((mark.scopes[0].order.clone(), mark.scopes[0].key.clone()), (SqlScalar::Integer(8), "T1".into()));
}

#[test]
fn a_mark_of_what_cannot_be_compared_is_refused() {
    let app = TestApp::new("CREATE TABLE tasks (id, at); INSERT INTO tasks VALUES (1, x'00')", |path| {
        odd(path, "tasks", "id", "at")
    });
    assert_eq!(app.engine().mark().unwrap_err().code(), Code::NoOrder);
    app.sql("DELETE FROM tasks; INSERT INTO tasks VALUES (1, 5)");
    let mut mark = app.engine().mark().unwrap();
    app.sql("INSERT INTO tasks VALUES (2, NULL)");
    mark.scopes.clear();
    let error = app.engine().get_mark_snapshot(&mark, &[]).unwrap_err();
    assert!(error.message().contains("no place in time"), "{error}");
}

fn odd(path: &std::path::Path, table: &str, key: &str, order: &str) -> RewindTarget {
    RewindTarget {
        database: path.to_owned(),
        anchor: Anchor {
            table: table.to_owned(),
            key: key.to_owned(),
            order: order.to_owned(),
            commit: None,
            scope: vec![],
        },
        tables: vec![TableConfig::by_column(table, order)],
        audit: None,
        profile: None,
    }
}

#[test]
fn identifiers_may_have_quotes_spaces_and_other_letters() {
    let sql = r#"
        CREATE TABLE "ta""sk's; --" ("the key" TEXT PRIMARY KEY, "or'der ""by""" INTEGER, "select" TEXT, "thread id" TEXT);
        CREATE TABLE "日 誌" ("from" TEXT REFERENCES "ta""sk's; --"("the key"), "where" BLOB);
        CREATE TABLE "Audit Log" ("id" TEXT PRIMARY KEY, "Event" TEXT, "Pay load" TEXT, "task" TEXT, "when" INTEGER);
        INSERT INTO "ta""sk's; --" VALUES ('a''b', 1, NULL, 'x y'), ('c', 2, NULL, 'x y'), ('d', 3, NULL, 'other'), ('e', 4, NULL, NULL),
          ('f', 5, NULL, NULL);
        INSERT INTO "日 誌" VALUES ('a''b', x'00'), ('c', x'01'), (NULL, x'02'), ('e', NULL), ('f', NULL);
    "#;
    let mut app = TestApp::new(sql, |path| RewindTarget {
        anchor: Anchor {
            scope: vec!["thread ID".into()],
            ..odd(path, "TA\"SK'S; --", "THE KEY", "or'der \"by\"").anchor
        },
        tables: vec![
            TableConfig::by_column("ta\"sk's; --", "or'der \"by\""),
            TableConfig::following("日 誌", Follow::ForeignKey("parent".into())),
        ],
        audit: Some(Audit {
            table: "audit log".into(),
            event: "event".into(),
            payload: "pay load".into(),
            order: Some("WHEN".into()),
            task: Some("task".into()),
            id: Some("ID".into()),
            triggers: Triggers::Refuse,
        }),
        ..odd(path, "", "", "")
    });
    let before = app.dump();
    let (result, archive) = app.rewind("a'b").unwrap();
    assert_eq!(result.deleted_row_counts.iter().collect::<Vec<_>>(), [("日 誌", 1), ("ta\"sk's; --", 1)]);
    assert_eq!(
        app.texts(r#"SELECT id || '|' || "Event" || '|' || task || '|' || "when" FROM "Audit Log""#),
        ["rewind-1-rollback_completed|ROLLBACK_COMPLETED|a'b|1"]
    );
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    let (result, _) = app.rewind("e").unwrap();
    assert_eq!(result.deleted_row_counts.total(), 2, "NULL is a scope too");
}

#[test]
fn rows_may_follow_by_their_rowid_and_by_the_names_of_parents() {
    let sql = "CREATE TABLE tasks (id INTEGER PRIMARY KEY, up INTEGER REFERENCES tasks, at INTEGER);
        CREATE TABLE notes (n INTEGER PRIMARY KEY, up INTEGER REFERENCES notes, task INTEGER REFERENCES tasks, t TEXT);
        CREATE VIRTUAL TABLE texts USING fts5(body);
        CREATE TABLE log (k TEXT PRIMARY KEY, event_type, payload) WITHOUT ROWID;
        INSERT INTO tasks VALUES (1, NULL, 1), (2, 1, 2); INSERT INTO notes VALUES (5, NULL, 1, 'a'), (6, 5, 2, 'b');
        INSERT INTO texts (rowid, body) VALUES (1, 'one'), (2, 'two'), (3, 'three')";
    let mut app = TestApp::new(sql, |path| odd(path, "tasks", "id", "at"));
    let on = vec![("rowid".to_owned(), "id".to_owned())];
    app.target.tables.extend([
        TableConfig::following("notes", Follow::ForeignKey("parent".into())),
        TableConfig::following("texts", Follow::Columns { table: "tasks".into(), on: on.clone() }),
    ]);
    app.target.audit = serde_json::from_str(r#"{"table": "log", "id": "k"}"#).unwrap();
    let before = app.dump();
    let (result, archive) = app.rewind("1").unwrap();
    assert_eq!(result.deleted_row_counts.iter().collect::<Vec<_>>(), [("notes", 1), ("texts", 1), ("tasks", 1)]);
    assert_eq!(app.texts("SELECT body FROM texts WHERE texts MATCH 'one OR two OR three'"), ["one", "three"]);
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    assert_eq!(app.texts("SELECT event_type FROM log ORDER BY 1"), ["ROLLBACK_COMPLETED", "ROLLBACK_UNDONE"]);
    app.sql("CREATE TABLE bare (a PRIMARY KEY) WITHOUT ROWID");
    app.target.tables.push(TableConfig::following("bare", Follow::Columns { table: "tasks".into(), on }));
    assert_eq!(app.try_engine().err().unwrap().code(), Code::InvalidConfig);
}

#[test]
fn keys_may_be_computed() {
    let sql = "CREATE TABLE tasks (id INTEGER PRIMARY KEY, name AS ('T' || id) STORED UNIQUE, at INTEGER);
        CREATE TABLE logs (n INTEGER PRIMARY KEY, about TEXT,
          task AS (substr(about, 1, 2)) STORED REFERENCES tasks(name), at INTEGER);
        INSERT INTO tasks (id, at) VALUES (1, 1), (2, 2);
        INSERT INTO logs (about, at) VALUES ('T1 began', 1), ('T2 began', 3)";
    let mut app = TestApp::new(sql, |path| odd(path, "tasks", "id", "at"));
    app.target.tables.push(TableConfig::by_column("logs", "at"));
    let before = app.dump();
    let (_, archive) = app.rewind("1").unwrap();
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
    app.sql("INSERT INTO logs (about, at) VALUES ('T2 early', 1)");
    let error = app.rewind("1").unwrap_err();
    assert!(error.message().ends_with("logs 3."), "{error}");
}

#[test]
fn keys_may_be_numbers_and_blobs() {
    let sql = "CREATE TABLE tasks (id PRIMARY KEY, at REAL NOT NULL);
        INSERT INTO tasks VALUES (7, 1.5), (x'00ff', 2.5), ('8', 3), (8, 4)";
    let mut app = TestApp::new(sql, |path| odd(path, "tasks", "id", "at"));
    assert_eq!(app.engine().task("8").unwrap().created_at, SqlScalar::Real(3.0), "a text before a number");
    let (result, _) = app.rewind("x'00ff'").unwrap();
    assert_eq!(result.deleted_row_counts.total(), 2);
    assert_eq!(result.task_id.as_deref(), Some("x'00ff'"));
    let (result, _) = app.rewind("7").unwrap();
    assert_eq!(result.deleted_row_counts.total(), 1);
    app.sql("CREATE TABLE twice (id, at); INSERT INTO twice VALUES (1, 1), (1, 2)");
    let mut twice = app.target.clone();
    twice.anchor.table = "twice".into();
    let engine = crate::RelationalRollbackEngine::open(&twice, crate::EngineOptions::default()).unwrap();
    let error = engine.task("1").unwrap_err();
    assert_eq!(error.code(), Code::AmbiguousId);
    assert!(error.get_hint().unwrap().contains("unique"));
    for unknown in ["x'0'g", "x'zz'", "", "9"] {
        assert_eq!(app.rewind(unknown).unwrap_err().code(), Code::UnknownTask);
    }
}

#[test]
fn configurations_are_read_and_written() {
    let text = r#"{"database": "s.db", "profile": "devs"}"#;
    let target: RewindTarget = serde_json::from_str(text).unwrap();
    assert_eq!(target, RewindTarget::of_profile(Profile::Devs, "s.db".as_ref()));
    let again: RewindTarget = serde_json::from_str(&serde_json::to_string(&target).unwrap()).unwrap();
    assert_eq!(again, target);
    let langgraph = RewindTarget::of_profile(Profile::Langgraph, "s.db".as_ref());
    let again: RewindTarget = serde_json::from_str(&serde_json::to_string(&langgraph).unwrap()).unwrap();
    assert_eq!(again, langgraph);
    let text = r#"{"database": "s.db", "anchor": {"table": "t", "key": "k", "order": "o"},
        "tables": [{"name": "t", "order": "o", "triggers": "fire"}, {"name": "u", "follow": "parent"}],
        "audit": {"table": "a"}}"#;
    let target: RewindTarget = serde_json::from_str(text).unwrap();
    assert_eq!(target.tables[0], TableConfig::by_column("t", "o").firing());
    assert_eq!(target.tables[1].order, Order::FollowParent(Follow::ForeignKey("parent".into())));
    assert_eq!(target.audit.unwrap().event, "event_type");
    for (text, why) in [
        (r#"{"database": "s.db"}"#, "no anchor"),
        (r#"{"database": "s.db", "anchor": {"table": "t", "key": "k", "order": "o"}}"#, "no table"),
        (r#"{"database": "s.db", "profile": "devs", "tables": [{"name": "t"}]}"#, "either an order"),
        (
            r#"{"database": "s.db", "profile": "devs", "tables": [{"name": "t", "order": "o", "follow": "parent"}]}"#,
            "either an order",
        ),
        (r#"{"database": "s.db", "profile": "other"}"#, "unknown variant"),
        (r#"{"database": "s.db", "profile": "devs", "anker": 1}"#, "unknown field"),
    ] {
        let error = serde_json::from_str::<RewindTarget>(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
