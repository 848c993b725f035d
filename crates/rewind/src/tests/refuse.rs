//! What is refused, in which words, with nothing changed.

use ic_base::Code;

use super::fixture::{TestApp, anchor};
use crate::{Audit, Follow, RewindTarget, TableConfig, Triggers};

/// `tasks` and `logs`, both ordered by `at`, with a task `T` at `at`.
fn app(columns: &str, at: &str, logs: &[&str]) -> TestApp {
    let rows: String = logs.iter().map(|value| format!("INSERT INTO logs (at) VALUES ({value});")).collect();
    TestApp::new(
        &format!(
            "CREATE TABLE tasks (id TEXT PRIMARY KEY, at {columns}); CREATE TABLE logs (id INTEGER PRIMARY KEY, at {columns});
             INSERT INTO tasks VALUES ('T', {at}); {rows}"
        ),
        simple,
    )
}

fn simple(path: &std::path::Path) -> RewindTarget {
    RewindTarget {
        database: path.to_owned(),
        anchor: anchor("tasks", "id", "at"),
        tables: vec![TableConfig::by_column("tasks", "at"), TableConfig::by_column("logs", "at")],
        audit: None,
        profile: None,
    }
}

/// Whether the rewind to `T` is refused for its rows, by the preview too; with the message.
fn refusal(app: TestApp) -> Option<String> {
    refused_with(app, Code::RowConflict)
}

fn refused_with(mut app: TestApp, code: Code) -> Option<String> {
    let before = app.full_dump();
    let preview = app.engine().get_snapshot("T");
    let result = app.rewind("T");
    if result.is_err() {
        assert_eq!(app.full_dump(), before);
        assert!(!app.file("rewind-1").exists());
    }
    if let Ok((result, _)) = &result {
        assert_eq!(preview.unwrap().affected_row_counts, result.deleted_row_counts);
    }
    result.err().map(|error| {
        assert_eq!(error.code(), code, "{error}");
        error.message().to_owned()
    })
}

#[test]
fn orders_that_compare_are_taken() {
    for (columns, at, logs) in [
        ("INTEGER NOT NULL", "100", &["99", "100", "101"][..]),
        ("INTEGER", "1771606515", &["1771606516", "1771606514.5"]),
        ("", "1771606515007", &["1771606515008.25", "7"]),
        ("REAL", "2461092.5", &["2461092.6"]),
        ("TEXT", "'2026-02-20T16:55:15.000Z'", &["'2026-02-20T16:55:15.001Z'", "'2025-12-31T00:00:00.000Z'"]),
        ("TEXT COLLATE NOCASE", "'step-007'", &["'step-008'"]),
        ("TEXT", "'01ARZ3NDEKTSV4RRFFQ69G5FAV'", &["'01BX5ZZKBKACTAV9WEVGEMMVRZ'"]),
        ("TEXT", "'[0]*?1'", &["'[1]*?0'"]),
        ("INTEGER", "1771606515007", &["1771606515000", "1771606515006"]),
        ("INTEGER", "1771606515007", &[]),
        ("TEXT", "'2026-02-20T16:55:15.00000Z'", &["'2026-02-20T16:55:16.00000Z'"]),
        ("TEXT", "'0000000000000000000000001I'", &["'0000000000000000000000002I'"]),
    ] {
        assert_eq!(refusal(app(columns, at, logs)), None, "{at}");
    }
}

#[test]
fn orders_that_do_not_compare_are_refused_and_the_rows_named() {
    let iso = "'2026-02-20T16:55:15.000Z'";
    for (columns, at, logs, named) in [
        ("INTEGER", "100", &["NULL"][..], "logs 1 (at NULL)"),
        ("INTEGER", "100", &["50", "'yesterday'"], "logs 2 (at yesterday)"),
        ("", "100", &["x'00ff'"], "logs 1 (at x'00ff')"),
        ("", "100", &[iso], "logs 1"),
        ("", iso, &["100"], "logs 1 (at 100)"),
        ("", iso, &["x'00'"], "logs 1"),
        ("", iso, &["NULL"], "logs 1"),
        ("TEXT", iso, &["'2026-02-20T16:55:15Z'"], "logs 1"),
        ("TEXT", iso, &["'2026-02-20T16:55:15.5Z'"], "logs 1"),
        ("TEXT", iso, &["'2026-02-20 16:55:15.000'"], "logs 1"),
        ("TEXT", "'2026-02-20T16:55:15+01:00'", &["'2026-02-20T16:55:15+02:00'"], "logs 1"),
        ("TEXT", "'step-9'", &["'step-10'"], "logs 1"),
        ("INTEGER", "1771606515", &["1771606515007"], "logs 1 (at 1771606515007)"),
        ("INTEGER", "1771606515007", &["1771606999"], "logs 1 (at 1771606999)"),
        ("INTEGER NOT NULL", "1771606515007", &["1771606999"], "logs 1 (at 1771606999)"),
        ("TEXT", iso, &["1", "2", "3", "4", "5", "6", "7"], "…"),
    ] {
        let message = refusal(app(columns, at, logs)).unwrap_or_else(|| panic!("{at} {logs:?} is not refused"));
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn a_target_without_a_place_in_time_is_refused() {
    for at in ["NULL", "x'00'", "9e999", "'20/02/2026'", "'someday'"] {
        let message = refused_with(app("", at, &[]), Code::NoOrder).unwrap();
        assert!(message.contains("The task T has") || message.contains("do not sort by time"), "{message}");
    }
}

#[test]
fn a_preview_of_a_large_database_counts_and_the_whole_one_looks_at_every_row() {
    let mut app = TestApp::devs();
    app.sql("INSERT INTO requirements VALUES ('R9', 'T3', 'early', 50)");
    app.sql("CREATE TABLE large (bytes); INSERT INTO large VALUES (zeroblob(17 * 1024 * 1024))");
    assert_eq!(app.engine().get_snapshot("T1").unwrap().affected_row_counts.total(), 8);
    let whole = app.engine().get_whole_snapshot("T1").unwrap_err();
    let real = app.rewind("T1").unwrap_err();
    assert_eq!((whole.code(), whole.message()), (Code::RowConflict, real.message()));
    assert!(real.message().contains("requirements 'R9'"), "{real}");
    app.sql("DROP TABLE large; VACUUM");
    assert_eq!(app.engine().get_snapshot("T1").unwrap_err().message(), real.message());
}

#[test]
fn in_a_large_database_several_connections_find_the_same_as_one() {
    let early = [
        "INSERT INTO requirements VALUES ('R9', 'T3', 'early', 50);",
        "INSERT INTO agent_logs VALUES (77, 'T3', 'note', '{}', 50);",
        "INSERT INTO langgraph_checkpoints VALUES ('L9', 'T2', NULL, 50);",
    ];
    for chosen in 1..8 {
        let rows = |n: &usize| chosen & (1 << n) != 0;
        let app = TestApp::devs();
        app.sql(&(0..3).filter(rows).map(|n| early[n]).collect::<String>());
        let alone = app.engine().get_whole_snapshot("T1").unwrap_err();
        app.sql("CREATE TABLE large (bytes); INSERT INTO large VALUES (zeroblob(17 * 1024 * 1024))");
        let together = app.engine().get_whole_snapshot("T1").unwrap_err();
        assert_eq!((together.message(), together.details()), (alone.message(), alone.details()), "{chosen}");
    }
}

#[test]
fn rows_that_would_lose_their_parents_are_named() {
    let setup = "CREATE TABLE tasks (id TEXT PRIMARY KEY, up TEXT REFERENCES tasks ON DELETE CASCADE, at INTEGER);
        CREATE TABLE logs (id INTEGER PRIMARY KEY, at INTEGER);
        CREATE TABLE outside (a, task TEXT REFERENCES tasks(id) ON DELETE CASCADE, PRIMARY KEY (a, task)) WITHOUT ROWID;
        CREATE TABLE broken (task REFERENCES missing(id), log REFERENCES logs(at), both REFERENCES logs(absent));
        INSERT INTO tasks VALUES ('T', NULL, 10), ('U', NULL, 20);";
    let mut app = TestApp::new(setup, simple);
    app.sql(
        "PRAGMA foreign_keys=OFF; INSERT INTO outside VALUES (1, 'U'), (2, 'T'), (3, 'never was');
        INSERT INTO broken VALUES (1, 2, 3)",
    );
    let before = app.dump();
    let error = app.rewind("T").unwrap_err();
    assert_eq!(error.message(), "These rows would stay, but refer to rows of tasks that would go: outside (1, 'U').");
    assert_eq!(error.details()["rows"], serde_json::json!(["outside (1, 'U')"]));
    assert_eq!(app.dump(), before);
    let foreseen = app.engine().get_snapshot("T").unwrap_err();
    assert_eq!((foreseen.message(), foreseen.details()), (error.message(), error.details()));
    app.sql("DELETE FROM outside WHERE a = 1; INSERT INTO tasks VALUES ('old', 'U', 5)");
    let error = app.rewind("T").unwrap_err();
    assert!(error.message().ends_with("tasks 'old'."), "{error}");
    app.sql("DELETE FROM tasks WHERE id = 'old'");
    app.rewind("T").unwrap();
}

const ODD: &str = "\
CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER, user TEXT);
CREATE TABLE logs (id INTEGER PRIMARY KEY, at INTEGER);
CREATE TABLE child (task TEXT REFERENCES tasks, log INTEGER REFERENCES logs, code TEXT);
CREATE VIEW shown AS SELECT * FROM logs;
CREATE VIEW wrong AS SELECT * FROM nowhere;
CREATE TABLE names (rowid TEXT, _rowid_ TEXT, oid TEXT, at INTEGER);
CREATE VIRTUAL TABLE docs USING fts5(body, at UNINDEXED);
CREATE VIRTUAL TABLE \"external using\" USING fts5(body, content = 'logs', content_rowid='id');
CREATE VIRTUAL TABLE [words] USING fts5vocab('docs', 'row');
INSERT INTO tasks VALUES ('T', 1, 'u');
";

fn child(follow: Follow) -> TableConfig {
    TableConfig::following("child", follow)
}

fn on(table: &str, child: &str, parent: &str) -> Follow {
    Follow::Columns { table: table.into(), on: vec![(child.into(), parent.into())] }
}

/// Why the target is refused once it is changed; `None` if it is not.
fn refused(app: &TestApp, change: impl FnOnce(&mut RewindTarget)) -> Option<String> {
    let mut target = app.target.clone();
    change(&mut target);
    let opened = crate::RelationalRollbackEngine::open(&target, crate::EngineOptions::default());
    opened.err().map(|error| {
        assert_eq!(error.code(), Code::InvalidConfig, "{error}");
        error.message().to_owned()
    })
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let column = TableConfig::by_column;
    let parent = || Follow::ForeignKey("parent".into());
    let cases: Vec<(Vec<TableConfig>, &str)> = vec![
        (vec![column("nowhere", "at")], "no table nowhere"),
        (vec![column("logs", "created")], "no column created; it has id, at"),
        (vec![column("logs", "at"), column("LOGS", "at")], "stands twice"),
        (vec![column("shown", "at")], "is a view"),
        (vec![column("names", "at")], "has no name left"),
        (vec![column("docs_content", "id")], "part of a virtual table, docs"),
        (vec![column("words", "term")], "cannot be copied exactly"),
        (vec![column("external using", "body")], "index without content"),
        (vec![child(parent())], "no foreign keys"),
        (vec![child(parent()), column("logs", "at"), column("tasks", "at")], "several foreign keys"),
        (vec![child(Follow::ForeignKey("names".into())), column("logs", "at")], "no foreign keys"),
        (vec![child(on("tasks", "task", "id"))], "follows tasks, which is not cut"),
        (vec![child(on("tasks", "task", "user")), column("tasks", "at")], "not unique"),
        (vec![child(on("tasks", "task", "x")), column("tasks", "at")], "no column x"),
        (vec![child(on("tasks", "x", "id")), column("tasks", "at")], "no column x"),
        (vec![child(Follow::Columns { table: "tasks".into(), on: vec![] }), column("tasks", "at")], "by no column"),
        (vec![child(on("nowhere", "task", "id"))], "no table nowhere"),
        (
            vec![
                TableConfig::following("tasks", on("logs", "user", "id")),
                TableConfig::following("logs", on("tasks", "at", "id")),
            ],
            "in a circle: tasks, logs",
        ),
    ];
    let app = TestApp::new(ODD, simple);
    for (tables, why) in cases {
        let message = refused(&app, |target| target.tables = tables).unwrap_or_else(|| panic!("accepted: {why}"));
        assert!(message.contains(why), "{message}");
    }
    let by_name = vec![child(Follow::ForeignKey("logs".into())), column("logs", "at")];
    assert_eq!(refused(&app, |target| target.tables = by_name), None);
}

#[test]
fn anchors_and_audits_that_do_not_fit_are_refused() {
    let app = TestApp::new(ODD, simple);
    let says = |why: &str, change: &dyn Fn(&mut RewindTarget)| {
        let message = refused(&app, change).unwrap();
        assert!(message.contains(why), "{message}");
    };
    says("cannot be the anchor", &|t| t.anchor.table = "docs".into());
    says("no column x", &|t| t.anchor.key = "x".into());
    says("no column user, so that its rows", &|t| t.anchor.scope = vec!["user".into()]);
    let audit = |table: &str| Audit {
        table: table.into(),
        event: "id".into(),
        payload: "at".into(),
        order: None,
        task: None,
        id: None,
        triggers: Triggers::Refuse,
    };
    says("cannot be the audit", &|t| t.audit = Some(audit("docs")));
    says("no column x", &|t| t.audit = Some(Audit { order: Some("x".into()), ..audit("logs") }));
    assert_eq!(refused(&app, |t| t.anchor.table = "shown".into()), None, "an anchor may be a view");
}

#[test]
fn tables_with_triggers_must_be_declared() {
    let mut app = app("INTEGER", "1", &["2"]);
    app.sql(
        "CREATE TABLE gone (id); CREATE TRIGGER keep AFTER DELETE ON logs BEGIN INSERT INTO gone VALUES (old.id); END",
    );
    let error = app.rewind("T").unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.message().contains("keep"), "{error}");
    app.target.tables[1].triggers = Triggers::Fire;
    app.rewind("T").unwrap();
    assert_eq!(app.texts("SELECT id FROM gone"), ["1"]);
}

#[test]
fn triggers_may_not_take_rows_of_their_own() {
    let mut other = app("INTEGER", "5", &["1", "9"]);
    other.target.tables = vec![TableConfig::by_column("logs", "at").firing(), TableConfig::by_column("tasks", "at")];
    other.sql("INSERT INTO tasks VALUES ('old', 1); CREATE TRIGGER greedy AFTER DELETE ON logs BEGIN DELETE FROM tasks WHERE id = 'old'; END");
    let before = other.full_dump();
    let error = other.rewind("T").unwrap_err();
    assert!(error.message().contains("Triggers changed the number of rows in tasks"), "{error}");
    assert_eq!(other.full_dump(), before);
    other.sql("DROP TRIGGER greedy; CREATE TRIGGER keeps BEFORE DELETE ON logs BEGIN SELECT raise(IGNORE); END");
    let error = other.rewind("T").unwrap_err();
    assert!(error.message().contains("1 rows were archived but 0 deleted in logs"), "{error}");
    assert_eq!(other.full_dump(), before);
}

#[test]
fn what_the_schema_needs_and_is_not_here_is_said() {
    let mut app = app("INTEGER", "1", &["2"]);
    app.sql("CREATE TRIGGER calls AFTER DELETE ON logs BEGIN SELECT my_function(old.id); END");
    app.target.tables[1].triggers = Triggers::Fire;
    let before = app.full_dump();
    let error = app.rewind("T").unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.message().contains("no such function: my_function"), "{error}");
    assert_eq!(app.full_dump(), before);
}

#[test]
fn an_audit_that_demands_more_is_refused() {
    let mut app = TestApp::new(
        "CREATE TABLE tasks (id TEXT PRIMARY KEY, at INTEGER); CREATE TABLE logs (id INTEGER PRIMARY KEY, at INTEGER);
         CREATE TABLE audit (event_type TEXT, payload TEXT, who TEXT NOT NULL); INSERT INTO tasks VALUES ('T', 1), ('U', 2)",
        simple,
    );
    app.target.audit = serde_json::from_str(r#"{"table": "audit"}"#).unwrap();
    let before = app.full_dump();
    let error = app.rewind("T").unwrap_err();
    assert_eq!(error.code(), Code::RowConflict);
    assert!(error.message().contains("audit.who"), "{error}");
    assert_eq!(app.full_dump(), before);
    assert!(!app.file("rewind-1").exists());
    app.sql("CREATE TRIGGER t AFTER INSERT ON audit BEGIN SELECT 1; END");
    assert_eq!(app.rewind("T").unwrap_err().code(), Code::InvalidConfig);
}

#[test]
fn a_table_of_a_module_that_is_not_loaded_is_left_alone() {
    let mut app = app("INTEGER", "1", &["2"]);
    app.plant("words", "CREATE VIRTUAL TABLE words USING spellfix1", "words_vocab");
    app.rewind("T").unwrap();
    app.cuts_none_of(
        "T",
        [("words", "spellfix1, which is not loaded here"), ("words_vocab", "part of a virtual table, words;")],
    );
}
