//! Tables of vectors (`vec0`) of an application go with the rows that they belong to, and are searched again after an undo.

use ic_testkit::{Cli, connect};
use rusqlite::Connection;
use serde_json::json;

use crate::project::BINARY;

fn application(cli: &Cli) -> Connection {
    let db = connect(&cli.root().join("memory.db"));
    ic_rewind::vec0::register(&db).expect("tables of vectors");
    db
}

/// Every memory with its distance to a place, nearest first.
fn nearest(db: &Connection) -> Vec<(i64, f64)> {
    let mut statement = db
        .prepare("SELECT rowid, distance FROM memory_vectors WHERE place MATCH '[3, 3, 3, 3]' AND k = 100")
        .expect("a search");
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("a search");
    found.map(|row| row.expect("a row")).collect()
}

#[test]
fn a_memory_with_vectors_goes_back_and_forth() {
    let cli = Cli::new(BINARY);
    let db = application(&cli);
    db.execute_batch(
        "PRAGMA journal_mode=WAL;
         CREATE TABLE memories (id INTEGER PRIMARY KEY, said TEXT, created_at TEXT NOT NULL);
         CREATE VIRTUAL TABLE memory_vectors USING vec0(place float[4]);
         CREATE VIRTUAL TABLE memories_fts USING fts5(said)",
    )
    .expect("its tables");
    for n in 1..=40 {
        let at = format!("2026-02-20T10:00:{n:02}Z");
        db.execute("INSERT INTO memories VALUES (?1, 'memory ' || ?1, ?2)", (n, at)).expect("a memory");
        let place = format!("[{n}, {n}, 0, -{n}]");
        db.execute("INSERT INTO memory_vectors (rowid, place) VALUES (?1, ?2)", (n, place)).expect("a place");
        db.execute("INSERT INTO memories_fts (rowid, said) VALUES (?1, 'memory ' || ?1)", [n]).expect("words");
    }
    let found = nearest(&db);
    let written = cli.json(["rewind", "inspect", "memory.db", "--write"]);
    let notes = written["notes"].to_string();
    assert!(notes.contains("memory_vectors (vec0) is taken to belong to memories, by rowid = id"), "{notes}");

    // The application holds its connection all the time.
    let done = cli.json(["rewind", "to", "10", "--yes"]);
    assert_eq!(done["deleted_row_counts"], json!({"memory_vectors": 30, "memories_fts": 30, "memories": 30}));
    assert_eq!((&done["status"], &done["stage"]), (&json!("done"), &json!("vector_done")));
    let left = nearest(&db);
    assert_eq!(left.len(), 10);
    assert!(left.iter().all(|(id, _)| *id <= 10));
    let words = |word: &str| -> i64 {
        db.query_row("SELECT count(*) FROM memories_fts WHERE memories_fts MATCH ?1", [word], |row| row.get(0))
            .expect("a search")
    };
    assert_eq!((words("memory"), words("17")), (10, 0));

    cli.json(["undo", done["id"].as_str().expect("an id"), "--yes"]);
    assert_eq!(nearest(&db), found, "the same neighbours at the same distances");
    assert_eq!((words("memory"), words("17")), (40, 1));
    let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(check, "ok");
}
