//! For any rows: exactly those up to the target remain, and undo gives the identical dump; or the rewind is refused with a reason
//! that is one, and nothing was changed.

use ic_base::Code;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::fixture::{TestApp, anchor, dump};
use crate::{Audit, Follow, RewindTarget, TableConfig, Triggers};

const SCHEMA: &str = "\
CREATE TABLE tasks (task_id TEXT PRIMARY KEY, parent TEXT REFERENCES tasks(task_id) ON DELETE CASCADE, body, created_at);
CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT REFERENCES tasks ON DELETE CASCADE, body TEXT, score REAL, \
  data, created_at, length AS (length(body)), upper AS (upper(body)) STORED, UNIQUE (body, score) ON CONFLICT REPLACE);
CREATE VIRTUAL TABLE notes_fts USING fts5(body, content='notes', content_rowid='id');
CREATE TRIGGER notes_ai AFTER INSERT ON notes BEGIN INSERT INTO notes_fts(rowid, body) VALUES (new.id, new.body); END;
CREATE TRIGGER notes_ad AFTER DELETE ON notes BEGIN \
  INSERT INTO notes_fts(notes_fts, rowid, body) VALUES ('delete', old.id, old.body); END;
CREATE TABLE pairs (a TEXT COLLATE NOCASE, b, task_id TEXT REFERENCES tasks ON DELETE SET NULL, v NUMERIC, created_at, \
  PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE heap (v, rowid TEXT, created_at);
CREATE INDEX heap_v ON heap (v, created_at) WHERE v IS NOT NULL;
CREATE TABLE details (note_id INTEGER REFERENCES notes(id) ON DELETE CASCADE, k, v, PRIMARY KEY (note_id, k));
CREATE TABLE ring_a (id TEXT PRIMARY KEY, other TEXT REFERENCES ring_b(id), created_at);
CREATE TABLE ring_b (id TEXT PRIMARY KEY, other TEXT REFERENCES ring_a(id), created_at);
CREATE TABLE pair_refs (id INTEGER PRIMARY KEY DESC, a TEXT, b, created_at, FOREIGN KEY (a, b) REFERENCES pairs);
CREATE VIRTUAL TABLE docs USING fts5(body, created_at UNINDEXED);
CREATE TABLE outside (id INTEGER PRIMARY KEY, task_id TEXT REFERENCES tasks ON DELETE CASCADE);
CREATE TABLE agent_logs (log_id INTEGER PRIMARY KEY, task_id TEXT REFERENCES tasks, event_type TEXT, payload TEXT, created_at);
";

const ORDERED: [&str; 9] = ["tasks", "notes", "pairs", "heap", "ring_a", "ring_b", "pair_refs", "docs", "agent_logs"];

/// Child, its columns, parent, its columns.
const REFERENCES: [(&str, &[&str], &str, &[&str]); 8] = [
    ("tasks", &["parent"], "tasks", &["task_id"]),
    ("notes", &["task_id"], "tasks", &["task_id"]),
    ("pairs", &["task_id"], "tasks", &["task_id"]),
    ("ring_a", &["other"], "ring_b", &["id"]),
    ("ring_b", &["other"], "ring_a", &["id"]),
    ("pair_refs", &["a", "b"], "pairs", &["a", "b"]),
    ("outside", &["task_id"], "tasks", &["task_id"]),
    ("agent_logs", &["task_id"], "tasks", &["task_id"]),
];

fn app() -> TestApp {
    TestApp::new(SCHEMA, |path| RewindTarget {
        database: path.to_owned(),
        anchor: anchor("tasks", "task_id", "created_at"),
        tables: ORDERED
            .iter()
            .map(|name| match *name {
                "notes" => TableConfig::by_column(name, "created_at").firing(),
                name => TableConfig::by_column(name, "created_at"),
            })
            .chain([TableConfig::following("details", Follow::ForeignKey("parent".into()))])
            .collect(),
        audit: Some(Audit {
            table: "agent_logs".into(),
            event: "event_type".into(),
            payload: "payload".into(),
            order: Some("created_at".into()),
            task: Some("task_id".into()),
            id: None,
            triggers: Triggers::Refuse,
        }),
        profile: None,
    })
}

/// A row, whose bytes choose its table and its values.
type Seed = [u8; 8];

/// Any storage class.
fn any_value(byte: u8) -> Value {
    match byte % 7 {
        0 => Value::Null,
        1 => Value::Integer(i64::from(byte) - 128),
        2 => Value::Real(f64::from(byte) / 8.0),
        3 => Value::Text(format!("t{byte}'\"\u{e9}")),
        4 => Value::Blob(vec![byte, 0, 255]),
        5 => Value::Real(5.0),
        _ => Value::Text(byte.to_string()),
    }
}

struct Writer<'a> {
    connection: &'a Connection,
    tame: bool,
}

impl Writer<'_> {
    /// In a tame case an order is a number; a child is as old as its parent, or younger.
    fn order(&self, byte: u8, parent: Option<f64>) -> Value {
        let low = parent.unwrap_or(0.0);
        match byte {
            0..=2 if !self.tame => Value::Null,
            3 if !self.tame => Value::Text("5".into()),
            _ if byte.is_multiple_of(5) => Value::Real(low + f64::from(byte % 16) / 2.0),
            #[allow(clippy::cast_possible_truncation, reason = "orders are small")]
            _ => Value::Integer(low.ceil() as i64 + i64::from(byte % 8)),
        }
    }

    /// An existing key of `table` and its order; or nothing, or in a wild case one that does not exist.
    fn parent(&self, byte: u8, table: &str, key: &str) -> (Value, Option<f64>) {
        if byte.is_multiple_of(3) {
            return (Value::Null, None);
        }
        if byte % 16 == 1 && !self.tame {
            return (Value::Text("unknown".into()), None);
        }
        let sql = format!(
            "SELECT {key}, created_at FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?1 % max(1, (SELECT count(*) FROM {table}))"
        );
        let found =
            self.connection.query_row(&sql, [byte], |row| Ok((row.get::<_, Value>(0)?, row.get::<_, f64>(1).ok())));
        match found {
            Ok((key, order)) => (key, if self.tame { order } else { None }),
            Err(_) => (Value::Null, None),
        }
    }

    fn insert(&self, n: usize, seed: Seed) {
        let [table, order, parent, first, second, third, last, _] = seed;
        let key = Value::Text(format!("k{n}"));
        let id = Value::Integer(i64::try_from(n).unwrap() * 10 + i64::from(last % 10) - 50);
        let (one, two, three) = (any_value(first), any_value(second), any_value(third));
        let (task, low) = self.parent(parent, "tasks", "task_id");
        let at = self.order(order, low);
        let (sql, values) = match table % 11 {
            0 | 1 => ("INSERT INTO tasks VALUES (?1, ?2, ?3, ?4)", vec![key, task, one, at]),
            2 => {
                let body = Value::Text(format!("word{} w{}", first % 8, second % 4));
                (
                    "INSERT INTO notes (id, task_id, body, score, data, created_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
                    vec![id, task, body, two, three, at],
                )
            }
            3 => {
                let b = if first.is_multiple_of(2) { Value::Integer(first.into()) } else { Value::Blob(vec![first]) };
                let a = Value::Text(format!("P{}", second % 4));
                ("INSERT INTO pairs VALUES (?1, ?2, ?3, ?4, ?5)", vec![a, b, task, three, at])
            }
            4 => (
                "INSERT INTO heap (_rowid_, v, rowid, created_at) VALUES (?1, ?2, ?3, ?4)",
                vec![id, one, two, self.order(order, None)],
            ),
            5 => {
                let (note, _) = self.parent(parent, "notes", "id");
                ("INSERT INTO details VALUES (?1, ?2, ?3)", vec![note, one, two])
            }
            ring @ (6 | 7) => {
                let other = if ring == 6 { "ring_b" } else { "ring_a" };
                let (up, low) = self.parent(parent, other, "id");
                let sql = ["INSERT INTO ring_a VALUES (?1, ?2, ?3)", "INSERT INTO ring_b VALUES (?1, ?2, ?3)"];
                (sql[usize::from(ring - 6)], vec![key, up, self.order(order, low)])
            }
            8 => {
                let (a, b, low) = self.pair(parent);
                ("INSERT INTO pair_refs VALUES (?1, ?2, ?3, ?4)", vec![id, a, b, self.order(order, low)])
            }
            9 => (
                "INSERT INTO docs (rowid, body, created_at) VALUES (abs(?1), ?2, ?3)",
                vec![id, Value::Text(format!("doc {first}")), self.order(order, None)],
            ),
            _ if last.is_multiple_of(4) && !self.tame => ("INSERT INTO outside VALUES (?1, ?2)", vec![id, task]),
            _ => ("INSERT INTO agent_logs VALUES (?1, ?2, ?3, ?4, ?5)", vec![id, task, one, two, at]),
        };
        // A row that the schema refuses is not part of the case.
        let _ = self.connection.execute(sql, rusqlite::params_from_iter(values));
    }

    /// The key of a pair, perhaps in other letters, because it is not case-sensitive; and its order.
    fn pair(&self, byte: u8) -> (Value, Value, Option<f64>) {
        let found = self.connection.query_row(
            "SELECT a, b, created_at FROM pairs ORDER BY a, b \
             LIMIT 1 OFFSET ?1 % max(1, (SELECT count(*) FROM pairs))",
            [byte],
            |row| Ok((row.get::<_, Value>(0)?, row.get::<_, Value>(1)?, row.get::<_, f64>(2).ok())),
        );
        match found {
            Ok((Value::Text(a), b, low)) => {
                let a = if byte.is_multiple_of(2) { a.to_lowercase() } else { a };
                (Value::Text(a), b, low.filter(|_| self.tame))
            }
            _ => (Value::Null, Value::Null, None),
        }
    }
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// What the case is by plain SQL: whether it must be refused, and what remains otherwise.
fn expected(connection: &Connection, bound: f64) -> Option<String> {
    for table in ORDERED {
        let sql = format!("SELECT count(*) FROM {table} WHERE typeof(created_at) NOT IN ('integer', 'real')");
        if number(connection, &sql) > 0 {
            return None;
        }
    }
    for (child, from, parent, to) in REFERENCES {
        let same: Vec<String> = from.iter().zip(to).map(|(f, t)| format!("p.{t} = c.{f}")).collect();
        let stays = if child == "outside" { "TRUE".to_owned() } else { format!("c.created_at <= {bound:?}") };
        let sql = format!(
            "SELECT count(*) FROM {child} c WHERE {stays} AND EXISTS (SELECT 1 FROM {parent} p WHERE {} AND p.created_at > {bound:?})",
            same.join(" AND ")
        );
        if number(connection, &sql) > 0 {
            return None;
        }
    }
    connection.execute_batch("BEGIN").unwrap();
    let details =
        format!("DELETE FROM details WHERE EXISTS (SELECT 1 FROM notes WHERE id = note_id AND created_at > {bound:?})");
    connection.execute_batch(&details).unwrap();
    for table in ORDERED {
        connection.execute_batch(&format!("DELETE FROM {table} WHERE created_at > {bound:?}")).unwrap();
    }
    let remains = dump(connection);
    connection.execute_batch("ROLLBACK").unwrap();
    Some(remains)
}

fn check(tame: bool, wal: bool, target: u8, seeds: &[Seed]) -> Result<bool, TestCaseError> {
    let mut app = app();
    let connection = app.connect();
    connection.execute_batch("PRAGMA foreign_keys=OFF").unwrap();
    if wal {
        connection.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    }
    connection.execute_batch("BEGIN").unwrap();
    let writer = Writer { connection: &connection, tame };
    for (n, seed) in seeds.iter().enumerate() {
        writer.insert(n, *seed);
    }
    connection.execute_batch("COMMIT").unwrap();
    let task = connection.query_row(
        "SELECT task_id, created_at FROM tasks WHERE typeof(created_at) IN ('integer', 'real') ORDER BY task_id \
         LIMIT 1 OFFSET ?1 % max(1, (SELECT count(*) FROM tasks))",
        [target],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?)),
    );
    let Ok((task, bound)) = task else { return Ok(false) };
    let before = app.dump();
    let remains = expected(&connection, bound);
    let snapshot = app.engine().get_snapshot(task.as_str());
    let integrity = || connection.execute_batch("INSERT INTO notes_fts(notes_fts, rank) VALUES ('integrity-check', 1)");
    match (app.rewind(task.as_str()), remains) {
        (Ok((result, archive)), Some(remains)) => {
            prop_assert_eq!(app.dump(), remains);
            prop_assert_eq!(&snapshot.unwrap().affected_row_counts, &result.deleted_row_counts);
            prop_assert!(integrity().is_ok());
            app.undo(&archive).map_err(|e| TestCaseError::fail(format!("undo: {e}")))?;
            prop_assert_eq!(app.dump(), before);
            prop_assert!(integrity().is_ok());
            prop_assert_eq!(app.texts("PRAGMA integrity_check"), vec!["ok".to_owned()]);
            Ok(true)
        }
        (Err(error), None) => {
            prop_assert_eq!(error.code(), Code::RowConflict, "{}", error);
            prop_assert!(error.details().get("rows").is_some(), "{}", error);
            prop_assert_eq!(app.dump(), before);
            prop_assert_eq!(app.audits().len(), 0);
            Ok(false)
        }
        (Ok(_), None) => Err(TestCaseError::fail("it was to be refused")),
        (Err(error), Some(_)) => Err(TestCaseError::fail(format!("refused for nothing: {error}"))),
    }
}

#[test]
fn property_exactly_the_older_rows_remain_and_undo_is_exact() {
    let config = ProptestConfig {
        cases: ic_testkit::cases(1_000, 5_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let rewound = std::cell::Cell::new(0);
    let rows = proptest::collection::vec(any::<Seed>(), 0..50);
    runner
        .run(&(0..4u8, any::<u8>(), rows), |(kind, target, seeds)| {
            if check(kind != 0, kind == 1, target, &seeds)? {
                rewound.set(rewound.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    assert!(rewound.get() > 500, "only {} cases were rewound", rewound.get());
}
