//! Several projects in one database, whose tasks take turns: each is rewound alone.

use ic_testkit::{Cli, connect};
use serde_json::{Value, json};

use crate::project::BINARY;

const CONFIG: &str = "\
rollback: {checkpointing: {auto: false}}
rewind:
  database: app.db
  anchor: {table: tasks, key: id, order: at, scope: [project]}
  tables:
    - {name: tasks, order: at}
    - {name: notes, order: at}
    - {name: lines, follow: notes}
  audit: {table: audit, event: what, payload: said, order: at}
";

/// Two projects with three tasks each, which take turns, two of them at the very same time; what belongs to them likewise.
fn projects() -> Cli {
    let cli = Cli::new(BINARY);
    std::fs::write(cli.root().join(".ic.yaml"), CONFIG).expect("a configuration");
    connect(&cli.root().join("app.db"))
        .execute_batch(
            "CREATE TABLE tasks (id TEXT, project TEXT, at INTEGER NOT NULL, PRIMARY KEY (project, id));
             CREATE TABLE notes (n INTEGER PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL);
             CREATE TABLE lines (note INTEGER NOT NULL REFERENCES notes(n) ON DELETE CASCADE, said TEXT);
             CREATE TABLE audit (what TEXT, said TEXT, at INTEGER);
             INSERT INTO tasks VALUES ('T1', 'x', 10), ('T1', 'y', 11), ('T2', 'x', 20), ('T2', 'y', 20), ('X3', 'x', 30), ('Y3', 'y', 31);
             INSERT INTO notes VALUES (1, 'x', 10), (2, 'y', 12), (3, 'x', 13), (4, 'y', 20), (5, 'x', 21), (6, 'y', 22), (7, 'x', 29);
             INSERT INTO lines SELECT n, 'line ' || n FROM notes",
        )
        .expect("fill it");
    cli
}

fn rows(cli: &Cli) -> Vec<String> {
    let dump = ic_testkit::dump(&cli.root().join("app.db"));
    dump.lines().filter(|line| !line.starts_with("audit")).map(str::to_owned).collect()
}

/// The rows that the projects have: tasks, and lines by way of their notes.
fn left(cli: &Cli, project: &str) -> Vec<String> {
    let db = connect(&cli.root().join("app.db"));
    let mut statement = db
        .prepare(
            "SELECT id FROM tasks WHERE project = ?1 UNION ALL \
             SELECT said FROM lines JOIN notes ON n = note WHERE project = ?1 ORDER BY 1",
        )
        .expect("a query");
    let found = statement.query_map([project], |row| row.get(0)).expect("rows");
    found.map(|row| row.expect("a row")).collect()
}

fn id(done: &Value) -> &str {
    done["id"].as_str().expect("an id")
}

#[test]
fn each_project_goes_back_alone() {
    let cli = projects();
    let before = rows(&cli);
    let refused = cli.refused(["rewind", "to", "T1", "--dry-run"]);
    assert_eq!(refused, (Some(3), "ambiguous_id".to_owned()));
    assert_eq!(cli.refused(["rewind", "to", "X3", "--scope", "project=y", "--yes"]).1, "unknown_task");
    assert_eq!(cli.refused(["rewind", "to", "T1", "--scope", "team=y", "--yes"]).1, "invalid_value");
    assert_eq!(rows(&cli), before);

    let preview = cli.json(["rewind", "to", "T1", "--scope", "project=x", "--dry-run"]);
    let x = cli.json(["rewind", "to", "T1", "--scope", "project=x", "--yes"]);
    assert_eq!(preview["affected_row_counts"], json!({"lines": 3, "tasks": 2, "notes": 3}));
    assert_eq!(x["deleted_row_counts"], preview["affected_row_counts"]);
    assert_eq!(left(&cli, "x"), ["T1", "line 1"]);
    assert_eq!(left(&cli, "y"), ["T1", "T2", "Y3", "line 2", "line 4", "line 6"], "untouched");
    let y = cli.json(["rewind", "to", "T2", "--scope", "project=y", "--yes"]);
    assert_eq!(left(&cli, "y"), ["T1", "T2", "line 2", "line 4"], "what has the same time stays");

    // Each is undone alone, in any order: they have no row in common.
    cli.json(["undo", id(&x), "--yes"]);
    assert_eq!(left(&cli, "x").len(), 7);
    assert_eq!(left(&cli, "y").len(), 4);
    cli.json(["undo", id(&y), "--yes"]);
    assert_eq!(rows(&cli), before);
    cli.ok(["events", "verify"]);
}

#[test]
fn a_project_that_goes_on_meanwhile_is_no_hindrance() {
    let cli = projects();
    let x = cli.json(["rewind", "to", "T1", "--scope", "project=x", "--yes"]);
    let db = connect(&cli.root().join("app.db"));
    db.execute_batch("INSERT INTO notes VALUES (8, 'y', 40); INSERT INTO tasks VALUES ('Y4', 'y', 40)").expect("go on");
    cli.json(["undo", id(&x), "--yes"]);
    assert_eq!(left(&cli, "x"), ["T1", "T2", "X3", "line 1", "line 3", "line 5", "line 7"]);
    assert_eq!(left(&cli, "y").len(), 7);
    // A key that the other project took since is in the way, and named.
    let y = cli.json(["rewind", "to", "T1", "--scope", "project=y", "--yes"]);
    db.execute_batch("INSERT INTO notes VALUES (6, 'x', 50)").expect("take a key");
    let refused = cli.run(["undo", id(&y), "--yes"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "row_conflict"), "{refused:?}");
    assert!(refused.stderr.contains("notes 6"), "{refused:?}");
}

#[test]
fn a_scope_may_be_a_number_whose_column_has_no_type() {
    let cli = projects();
    connect(&cli.root().join("app.db"))
        .execute_batch(
            "DROP TABLE lines; DROP TABLE notes; DROP TABLE tasks; CREATE TABLE tasks (id, project, at); \
             INSERT INTO tasks VALUES (1, 7, 10), (1, 8, 10), (2, 7, 20), (2, 8, 20)",
        )
        .expect("fill it");
    std::fs::write(
        cli.root().join(".ic.yaml"),
        "rewind: {database: app.db, anchor: {table: tasks, key: id, order: at, scope: [project]}, tables: [{name: tasks, order: at}]}\n",
    )
    .expect("a configuration");
    assert_eq!(cli.refused(["rewind", "to", "01", "--scope", "project=7", "--yes"]).1, "unknown_task");
    assert_eq!(cli.refused(["rewind", "to", "1", "--scope", "project=07", "--yes"]).1, "unknown_task");
    let done = cli.json(["rewind", "to", "1", "--scope", "project=7", "--yes"]);
    assert_eq!(done["deleted_row_counts"], json!({"tasks": 1}));
    assert_eq!(rows(&cli), ["tasks|1|7|10", "tasks|1|8|10", "tasks|2|8|20"]);
}
