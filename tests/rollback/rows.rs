//! The application's own database: tables of tasks, requirements and logs, which the layer `data` restores.

use ic_testkit::TestWorld;

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

/// What the application writes.
pub(crate) trait Rows {
    /// The same project with a state database.
    fn with_rows(self) -> TestWorld;

    /// Writes a task with two requirements, where there is a database.
    fn task(&self, task: &str);

    /// Writes a row of the log, where there is a database.
    fn log(&self, text: &str);
}

impl Rows for TestWorld {
    fn with_rows(self) -> TestWorld {
        self.write(".ic.yaml", CONFIGURATION);
        std::fs::create_dir(self.root().join("data")).expect("a directory");
        self.sql(TABLES);
        if self.root().join(".git").exists() {
            self.commit("a state database");
        }
        self
    }

    fn task(&self, task: &str) {
        if !self.database.exists() {
            return;
        }
        let (database, at) = (self.connect(), self.tick());
        let task = format!("{task} {at}");
        database.execute("INSERT INTO tasks VALUES (?1, 'a title', ?2)", (&task, at)).expect("a task");
        for body in [&b"text"[..], &[0, 255]] {
            let requirement = "INSERT INTO requirements (task_id, body) VALUES (?1, ?2)";
            database.execute(requirement, (&task, body)).expect("a requirement");
        }
    }

    fn log(&self, text: &str) {
        if self.database.exists() {
            let row = (text, self.tick());
            self.connect().execute("INSERT INTO logs VALUES ('note', ?1, ?2)", row).expect("a log");
        }
    }
}
