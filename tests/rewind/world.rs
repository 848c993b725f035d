//! A project with an application's database.

use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::Cli;
use rusqlite::Connection;
use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ic");

/// A project of the profile `devs` with three tasks at 100, 200 and 300 and what belongs to them.
pub(crate) struct World {
    pub(crate) cli: Cli,
    pub(crate) database: PathBuf,
}

impl World {
    /// Without git: the ledger lies in `.ic`.
    pub(crate) fn devs() -> Self {
        let cli = Cli::new(BINARY);
        cli.ok(["rewind", "init", "--profile", "devs"]);
        let database = cli.db().with_file_name("state.db");
        let world = Self { cli, database };
        world.fill([None, None, None]);
        world
    }

    /// In a git repository with one commit a task; `a.txt` has the task's name. Returns the commits.
    pub(crate) fn devs_in_git() -> (Self, [String; 3]) {
        let cli = Cli::without_ledger(BINARY);
        git(cli.root(), &["init", "-q", "-b", "main"]);
        cli.ok(["init"]);
        cli.ok(["rewind", "init", "--profile", "devs"]);
        let database = cli.root().join(".git/ic/state.db");
        let world = Self { cli, database };
        let commits = ["T1", "T2", "T3"].map(|task| {
            world.write("a.txt", task);
            git(world.root(), &["add", "."]);
            git(world.root(), &["commit", "-q", "-m", task]);
            world.head()
        });
        world.fill([Some(&commits[0]), Some(&commits[1]), Some(&commits[2])]);
        (world, commits)
    }

    fn fill(&self, commits: [Option<&str>; 3]) {
        let db = self.connect();
        for (n, commit) in commits.into_iter().enumerate() {
            let (n, at) = (n + 1, format!("{}00", n + 1));
            db.execute(
                "INSERT INTO tasks VALUES (?1, ?2, 'done', ?3, ?4)",
                (format!("T{n}"), format!("task {n}"), commit, at),
            )
            .expect("a task");
        }
        db.execute_batch(
            "INSERT INTO requirements VALUES ('R1', 'T1', 'a', 100), ('R2', 'T2', 'b', 210), ('R3', 'T3', 'c', 300);
             INSERT INTO agent_logs VALUES (1, 'T1', 'note', '{}', 90), (2, 'T1', 'note', '{}', 150),
               (5, 'T2', 'note', 'x', 250), (9, 'T3', NULL, NULL, 310);
             INSERT INTO langgraph_checkpoints VALUES ('L1', 'T1', x'00ff', 100), ('L2', 'T2', NULL, 201)",
        )
        .expect("fill it");
    }

    pub(crate) fn root(&self) -> &Path {
        self.cli.root()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("its directory");
        std::fs::write(path, content).expect("a file");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub(crate) fn connect(&self) -> Connection {
        connect(&self.database)
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.connect().execute_batch(sql).expect("change the database");
    }

    /// Every row of the ledger.
    pub(crate) fn ledger(&self) -> String {
        ic_testkit::dump(&self.database.with_file_name("ic.db"))
    }

    /// Every row of the application's but the audit's.
    pub(crate) fn rows(&self) -> String {
        let dump = ic_testkit::dump(&self.database);
        dump.lines().filter(|line| !line.contains("ROLLBACK_")).map(|line| format!("{line}\n")).collect()
    }

    /// The events of the audit rows, in their order.
    pub(crate) fn audits(&self) -> Vec<String> {
        let db = self.connect();
        let mut statement = db
            .prepare("SELECT event_type FROM agent_logs WHERE event_type LIKE 'ROLLBACK%' ORDER BY log_id")
            .expect("the audit");
        let rows = statement.query_map([], |row| row.get(0)).expect("the audit");
        rows.map(|row| row.expect("a text")).collect()
    }

    pub(crate) fn status(&self) -> Value {
        self.cli.json(["rewind", "status"])
    }

    pub(crate) fn head(&self) -> String {
        git(self.root(), &["rev-parse", "HEAD"])
    }

    /// Adds a command for vectors to the configuration: a line of `sh`.
    pub(crate) fn with_vectors(&self, line: &str) {
        let mut config = self.read(".ic.yaml");
        config.push_str(&format!("  vectors:\n    exec: [sh, -c, {}]\n", serde_json::json!(line)));
        self.write(".ic.yaml", &config);
    }
}

pub(crate) fn connect(path: &Path) -> Connection {
    let db = Connection::open(path).expect("open the database");
    db.busy_timeout(std::time::Duration::from_secs(10)).expect("a timeout");
    db.execute_batch("PRAGMA foreign_keys=ON; PRAGMA synchronous=OFF").expect("foreign keys");
    db
}

/// Runs git and returns what it prints.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]);
    let output = command.args(arguments).output().expect("run git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
