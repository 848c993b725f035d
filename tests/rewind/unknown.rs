//! A database that was never seen: what `inspect` writes works.

use ic_testkit::{Cli, connect};

use crate::project::BINARY;

#[test]
fn what_inspect_writes_works() {
    let cli = Cli::without_ledger(BINARY);
    let path = cli.root().join("data/app.sqlite3");
    std::fs::create_dir(cli.root().join("data")).expect("a directory");
    let db = connect(&path);
    db.execute_batch(
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT, created_at TEXT NOT NULL);
         CREATE TABLE job_steps (id INTEGER PRIMARY KEY, job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
           name TEXT, started_at TEXT NOT NULL);
         CREATE TABLE outputs (step_id INTEGER REFERENCES job_steps(id), line TEXT);
         CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT);
         INSERT INTO jobs VALUES (1, 'one', '2026-02-20T10:00:00.000Z'), (2, 'two', '2026-02-20T11:00:00.000Z');
         INSERT INTO job_steps VALUES (1, 1, 'a', '2026-02-20T10:00:00.000Z'), (2, 1, 'b', '2026-02-20T10:30:00.000Z'),
           (3, 2, 'c', '2026-02-20T11:00:00.000Z');
         INSERT INTO outputs VALUES (1, 'x'), (2, 'y'), (3, 'z'), (NULL, 'without an owner');
         INSERT INTO settings VALUES ('colour', 'blue')",
    )
    .expect("fill it");
    let before = ic_testkit::dump(&path);
    let text = cli.ok(["rewind", "inspect", "data/app.sqlite3", "--format", "text"]);
    assert!(text.contains("database: data/app.sqlite3") && text.contains("# settings"), "{text}");
    let looked = cli.json(["rewind", "inspect", "data/app.sqlite3", "--write"]);
    assert_eq!(looked["proposal"]["anchor"]["table"], "jobs");
    let written = std::fs::read_to_string(cli.root().join(".ic.yaml")).expect("the configuration");
    assert!(written.ends_with(&format!("{text}\n")) || written.contains(&text), "{written}\n{text}");

    cli.ok(["init"]);
    cli.ok(["config", "show"]);
    let done = cli.json(["rewind", "to", "1", "--yes"]);
    let counts = serde_json::json!({"outputs": 2, "job_steps": 2, "jobs": 1});
    assert_eq!(done["deleted_row_counts"], counts, "{done}");
    let id = done["id"].as_str().expect("an id");
    cli.json(["undo", id, "--yes"]);
    assert_eq!(ic_testkit::dump(&path), before);
}

#[test]
fn what_nothing_can_be_proposed_for_is_a_no() {
    let cli = Cli::without_ledger(BINARY);
    connect(&cli.root().join("app.db")).execute_batch("CREATE TABLE colours (name TEXT)").expect("a table");
    assert_eq!(cli.json(["rewind", "inspect", "app.db"])["proposal"], serde_json::Value::Null);
    let outcome = cli.run(["rewind", "inspect", "app.db", "--write"]);
    assert_eq!((outcome.code, &outcome.json()["config_file"]), (Some(1), &serde_json::Value::Null));
}
