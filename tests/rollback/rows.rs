//! The application's own database: tables of tasks, requirements and logs, which the layer `data` takes back.

use std::sync::atomic::Ordering;

use rusqlite::Connection;

use crate::world::World;

const TABLES: &str = "
    CREATE TABLE tasks (task_id TEXT PRIMARY KEY, title TEXT, created_at INTEGER NOT NULL);
    CREATE TABLE requirements (req_id INTEGER PRIMARY KEY, task_id TEXT REFERENCES tasks (task_id), body BLOB);
    CREATE TABLE logs (event_type TEXT, payload TEXT, created_at INTEGER NOT NULL);
";

const CONFIGURATION: &str = "rewind:
  database: data/app.db
  anchor: {table: tasks, key: task_id, order: created_at}
  tables:
    - {name: tasks, order: created_at}
    - {name: requirements, follow: parent}
    - {name: logs, order: created_at}
  audit: {table: logs, order: created_at}
";

impl World {
    /// The same project with a state database.
    pub(crate) fn with_rows(self) -> Self {
        self.write(".ic.yaml", CONFIGURATION);
        std::fs::create_dir(self.cli.root().join("data")).expect("a directory");
        self.database().execute_batch(TABLES).expect("make the tables");
        if self.cli.root().join(".git").exists() {
            self.commit("a state database");
        }
        self
    }

    pub(crate) fn database(&self) -> Connection {
        let database = Connection::open(self.cli.root().join("data/app.db")).expect("the database");
        database.busy_timeout(std::time::Duration::from_secs(20)).expect("a timeout");
        database
    }

    fn has_database(&self) -> bool {
        self.cli.root().join("data/app.db").exists()
    }

    fn tick(&self) -> i64 {
        self.clock.fetch_add(7, Ordering::Relaxed) + 7
    }

    /// Writes a task with two requirements, where there is a database.
    pub(crate) fn task(&self, task: &str) {
        if self.has_database() {
            let (database, at) = (self.database(), self.tick());
            database
                .execute("INSERT INTO tasks VALUES (?1, 'a title', ?2)", (format!("{task} {at}"), at))
                .expect("a task");
            for body in [&b"text"[..], &[0, 255]] {
                database
                    .execute(
                        "INSERT INTO requirements (task_id, body) VALUES (?1, ?2)",
                        (format!("{task} {at}"), body),
                    )
                    .expect("a requirement");
            }
        }
    }

    /// Writes a row of the log, where there is a database.
    pub(crate) fn log(&self, text: &str) {
        if self.has_database() {
            let row = (text, self.tick());
            self.database().execute("INSERT INTO logs VALUES ('note', ?1, ?2)", row).expect("a log");
        }
    }

    /// Every row of the application's but the audit's; nothing where there is no database.
    pub(crate) fn rows(&self) -> String {
        if !self.has_database() {
            return String::new();
        }
        let dump = ic_testkit::dump(&self.cli.root().join("data/app.db"));
        dump.lines().filter(|line| !line.contains("ROLLBACK_")).map(|line| format!("{line}\n")).collect()
    }
}
