//! First configurations for databases that are not known.

use ic_base::Code;

use super::fixture::TestApp;
use crate::{Profile, RewindTarget, TableConfig, Triggers, inspect};

fn inspected(sql: &str) -> (TestApp, crate::Inspection) {
    let mut app = TestApp::new(sql, |path| RewindTarget::of_profile(Profile::Devs, path));
    let inspection = inspect(app.path()).unwrap();
    if let Some(target) = &inspection.target {
        app.target = target.clone();
    }
    (app, inspection)
}

#[test]
fn known_layouts_are_recognised() {
    let app = TestApp::devs();
    assert_eq!(inspect(app.path()).unwrap().target.unwrap(), app.target);
    app.sql("CREATE TRIGGER t AFTER INSERT ON agent_logs BEGIN SELECT 1; END");
    let inspection = inspect(app.path()).unwrap();
    let target = inspection.target.unwrap();
    assert_eq!(target.audit.unwrap().triggers, Triggers::Fire);
    assert_eq!(inspection.notes.len(), 1);
    assert_eq!(inspect(&app.file("missing")).unwrap_err().code(), Code::InvalidConfig);
}

#[test]
fn a_first_configuration_works() {
    let (mut app, inspection) = inspected(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
         CREATE TABLE jobs (id INTEGER PRIMARY KEY, slug TEXT UNIQUE, git_commit TEXT, finished_at TEXT, created TEXT);
         CREATE TABLE events (id INTEGER PRIMARY KEY, job INTEGER REFERENCES jobs, timestamp TEXT);
         CREATE TABLE parts (event INTEGER REFERENCES events, n INT, PRIMARY KEY (event, n)) WITHOUT ROWID;
         CREATE TABLE scores (part INT, at_time REAL, started_at BLOB);
         CREATE TABLE empty (created_at TEXT);
         CREATE TABLE dual (job INTEGER REFERENCES jobs, other INTEGER REFERENCES events);
         CREATE VIEW recent AS SELECT created AS created_at FROM jobs;
         CREATE TRIGGER t AFTER DELETE ON events BEGIN SELECT 1; END;
         INSERT INTO jobs VALUES (1, 'a', 'c0ffee', NULL, '2026-01-01 10:00:00'), (2, 'b', NULL, NULL, '2026-01-02 10:00:00');
         INSERT INTO events VALUES (1, 1, '2026-01-01 10:00:00'), (2, 2, '2026-01-03 10:00:00');
         INSERT INTO parts VALUES (1, 1), (2, 1); INSERT INTO scores VALUES (1, 0.5, x'00')",
    );
    let target = inspection.target.clone().unwrap();
    assert_eq!((target.anchor.table.as_str(), target.anchor.key.as_str()), ("jobs", "id"));
    assert_eq!((target.anchor.order.as_str(), target.anchor.commit.as_deref()), ("created", Some("git_commit")));
    let names: Vec<&str> = target.tables.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["jobs", "events", "empty", "parts"]);
    assert_eq!(target.tables[1], TableConfig::by_column("events", "timestamp").firing());
    assert!(inspection.notes.iter().any(|note| note.contains("users is left out")), "{:?}", inspection.notes);
    let events = inspection.tables.iter().find(|t| t.info.name == "events").unwrap();
    assert_eq!(events.order_candidates, ["timestamp"]);
    assert!(serde_json::to_string(&inspection).unwrap().contains("\"order_candidates\":[\"timestamp\"]"));
    let before = app.dump();
    let (result, archive) = app.rewind("1").unwrap();
    assert_eq!(result.deleted_row_counts.total(), 3);
    app.undo(&archive).unwrap();
    assert_eq!(app.dump(), before);
}

#[test]
fn vectors_and_words_follow_what_their_names_say() {
    let (mut app, inspection) = inspected(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, created_at INTEGER NOT NULL);
         CREATE TABLE topics (slug TEXT PRIMARY KEY, created_at INTEGER NOT NULL);
         CREATE VIRTUAL TABLE note_vectors USING vec0(place float[2]);
         CREATE VIRTUAL TABLE embeddings USING vec0(note_id integer primary key, place float[2]);
         CREATE VIRTUAL TABLE by_topic USING vec0(slug text primary key, place float[2]);
         CREATE VIRTUAL TABLE notes_fts USING fts5(body);
         CREATE VIRTUAL TABLE notes_index USING fts5(body, content='notes', content_rowid='id');
         CREATE VIRTUAL TABLE places USING vec0(place float[2]);
         CREATE VIRTUAL TABLE plural USING vec0(notes_id integer primary key, place float[2]);
         CREATE TABLE entries (id INTEGER PRIMARY KEY, created_at INTEGER NOT NULL);
         CREATE TABLE pairs (a INTEGER, b INTEGER, created_at INTEGER NOT NULL, PRIMARY KEY (a, b));
         CREATE VIRTUAL TABLE entry_words USING fts5(body);
         INSERT INTO entries VALUES (1, 10), (2, 20); INSERT INTO entry_words (rowid, body) VALUES (1, 'a'), (2, 'b');
         INSERT INTO plural SELECT 3 - i, '[1, 1]' FROM (SELECT 1 AS i UNION SELECT 2);
         INSERT INTO notes VALUES (1, 'one', 10), (2, 'two', 20); INSERT INTO topics VALUES ('a', 10), ('b', 20);
         INSERT INTO note_vectors (rowid, place) VALUES (1, '[1, 0]'), (2, '[2, 0]');
         INSERT INTO embeddings SELECT id, '[1, 1]' FROM notes; INSERT INTO by_topic SELECT slug, '[1, 1]' FROM topics;
         INSERT INTO notes_fts (rowid, body) SELECT id, body FROM notes",
    );
    let target = inspection.target.unwrap();
    let names: Vec<&str> = target.tables.iter().map(|t| t.name.as_str()).collect();
    let tables = ["notes", "topics", "entries", "pairs"];
    let virtuals = ["note_vectors", "embeddings", "by_topic", "notes_fts", "plural", "entry_words"];
    assert_eq!(names, [&tables[..], &virtuals].concat());
    let notes = inspection.notes.join("\n");
    assert!(notes.contains("embeddings (vec0) is taken to belong to notes, by note_id = id"), "{notes}");
    assert!(notes.contains("places (vec0) is left out"), "{notes}");
    assert!(!notes.contains("chunks") && !notes.contains("notes_index"), "{notes}");
    let (result, archive) = app.rewind("1").unwrap();
    let gone: Vec<(&str, u64)> = result.deleted_row_counts.iter().filter(|(name, _)| *name != "pairs").collect();
    assert!(gone.len() == 9 && gone.iter().all(|(_, rows)| *rows == 1), "{gone:?}");
    app.undo(&archive).unwrap();
    assert_eq!(
        app.texts("SELECT max(note_id) || min(note_id) FROM embeddings WHERE place MATCH '[1, 1]' AND k = 9"),
        ["21"]
    );
}

#[test]
fn the_anchor_is_what_most_keys_point_at() {
    let (_, inspection) = inspected(
        "CREATE TABLE a (x INTEGER, seq INTEGER, PRIMARY KEY (x, seq)); CREATE TABLE b (name TEXT UNIQUE NOT NULL, x, y, seq INTEGER, PRIMARY KEY (x, y));
         CREATE TABLE c (b TEXT REFERENCES b(name)); INSERT INTO b VALUES ('n', 1, 1, 5), ('m', 1, 2, 1800000000); INSERT INTO a VALUES (1, 2)",
    );
    let target = inspection.target.unwrap();
    assert_eq!((target.anchor.table.as_str(), target.anchor.key.as_str()), ("b", "name"));
    let (_, inspection) = inspected("CREATE TABLE a (x INTEGER, y TEXT, ts INTEGER, PRIMARY KEY (x, y))");
    assert_eq!(inspection.target.unwrap().anchor.key, "y");
    let (_, inspection) = inspected(
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, at_ts, created_at); CREATE TABLE b (ts TEXT); \
         CREATE TABLE c (ts INTEGER); INSERT INTO b VALUES ('2026-01-01'); INSERT INTO c VALUES (5)",
    );
    assert_eq!(inspection.target.unwrap().tables.len(), 3, "any format fits a table without rows");
    let (_, inspection) = inspected("CREATE TABLE a (x INTEGER, ts INTEGER)");
    assert_eq!(inspection.target.unwrap().anchor.key, "x");
}

#[test]
fn a_database_without_times_has_no_configuration() {
    for sql in [
        "CREATE TABLE a (x)",
        "CREATE TABLE a (created_at); INSERT INTO a VALUES (NULL)",
        "CREATE TABLE a (created_at); INSERT INTO a VALUES ('today')",
        "CREATE TABLE a (created_at); INSERT INTO a VALUES (x'00'), (1)",
        "CREATE TABLE a (created_at); INSERT INTO a VALUES (1700000000), (1700000000000)",
        "CREATE TABLE a (rowid, oid, _rowid_, created_at); INSERT INTO a VALUES (1, 1, 1, 1)",
        "",
    ] {
        let (_, inspection) = inspected(sql);
        assert_eq!(inspection.target, None, "{sql}");
    }
}
