//! A project and everything around it that work reaches: its tree, git, a run, the application's rows, and a place outside.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use crate::cli::Cli;
use crate::files::{TestDirectory, copy_over, read_in, write_in};
use crate::state::{ProjectState, git_in, git_state, ledger, tree};

/// A project whose calls know the usual programs, and what is around it.
pub struct TestWorld {
    /// The project, and the program in it.
    pub cli: Cli,
    /// The run that it is about; empty where there is none.
    pub run: String,
    /// The directory beside the project in which effects leave what they did.
    pub outside: TestDirectory,
    /// The application's database, whether or not there is one.
    pub database: PathBuf,
    clock: AtomicI64,
}

impl TestWorld {
    /// The world of a project, whose application's database is `data/app.db`.
    pub fn around(cli: Cli) -> Self {
        let cli = cli.with_env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let outside = TestDirectory::at(cli.home().join("outside"));
        let database = cli.root().join("data/app.db");
        Self { cli, run: String::new(), outside, database, clock: AtomicI64::new(1_700_000_000_000) }
    }

    /// A repository on `main` with one commit of `a`, whose ledger git's directory holds, as that of all its work trees.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn of_a_repository(binary: &str) -> Self {
        let world = Self::around(Cli::without_ledger(binary).with_checkpoints());
        world.git(&["init", "-q", "-b", "main"]);
        world.write("a", "one\n");
        world.commit("one");
        world.ic(&["init"]);
        world
    }

    /// The same world about another run.
    #[must_use]
    pub fn with_run(self, run: String) -> Self {
        Self { run, ..self }
    }

    /// The same world with the application's database in this file.
    #[must_use]
    pub fn with_database(self, database: PathBuf) -> Self {
        Self { database, ..self }
    }

    /// The project's directory.
    pub fn root(&self) -> &Path {
        self.cli.root()
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, content: &str) {
        write_in(self.root(), path, content);
    }

    /// What a file of the project holds; `None` if there is none.
    pub fn read(&self, path: &str) -> Option<String> {
        read_in(self.root(), path)
    }

    /// What a file of the project holds; nothing if there is none.
    pub fn text(&self, path: &str) -> String {
        self.read(path).unwrap_or_default()
    }

    /// Removes a file of the project.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.root().join(path)).unwrap_or_else(|e| panic!("remove {path}: {e}"));
    }

    /// Runs git in the project, as [`git_in`] does.
    pub fn git(&self, arguments: &[&str]) -> String {
        git_in(self.root(), arguments)
    }

    /// Commits everything and returns the commit.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    /// The commit that is checked out.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs a call that must succeed, as [`Cli::ok`] does.
    pub fn ic(&self, words: &[&str]) -> String {
        self.cli.ok(words)
    }

    /// Where the run is: `status@phase`.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn status(&self) -> String {
        let run = self.cli.json(["run", "status", &self.run, "--json"]);
        format!("{}@{}", text_of(&run, "status"), text_of(&run, "phase"))
    }

    /// The id of the run that was begun last.
    ///
    /// # Panics
    /// If none was.
    pub fn newest_run(&self) -> String {
        text_of(&self.cli.json(["run", "list", "--json"])[0], "id")
    }

    /// The application's database, opened by [`connect`].
    pub fn connect(&self) -> Connection {
        connect(&self.database)
    }

    /// Changes the application's database by these statements.
    ///
    /// # Panics
    /// If one fails.
    pub fn sql(&self, statements: &str) {
        self.connect().execute_batch(statements).expect("change the application's database");
    }

    /// The time of the next row that the application writes, later than that of the row before it.
    pub fn tick(&self) -> i64 {
        self.clock.fetch_add(7, Ordering::Relaxed) + 7
    }

    /// Every row of the application's but the audit's; nothing where there is no database.
    pub fn rows(&self) -> String {
        if !self.database.exists() {
            return String::new();
        }
        let dump = crate::dump(&self.database);
        dump.lines().filter(|line| !line.contains("ROLLBACK_")).map(|line| format!("{line}\n")).collect()
    }

    /// Everything that a rollback is about, but for ids, events and times.
    pub fn state(&self) -> ProjectState {
        ProjectState {
            tree: tree(self.root()),
            git: git_state(self.root()),
            rows: self.rows(),
            ledger: ledger(&self.cli.db()),
        }
    }

    /// Keeps the ledger, and what lies around the project under each of these names, for [`TestWorld::reset`].
    ///
    /// # Panics
    /// If there is no room for it.
    pub fn save(&self, names: &[&str]) {
        let saved = self.cli.home().join("saved");
        std::fs::create_dir_all(&saved).expect("a directory");
        self.cli.keep_ledger("saved");
        for name in names {
            copy_over(&self.cli.home().join(name), &saved.join(name));
        }
    }

    /// Makes the ledger, and what lies around the project under each of these names, what it was at [`TestWorld::save`].
    pub fn reset(&self, names: &[&str]) {
        self.cli.put_back_ledger("saved");
        for name in names {
            copy_over(&self.cli.home().join("saved").join(name), &self.cli.home().join(name));
        }
    }
}

/// Opens an application's database, whose writes need not outlive the machine.
///
/// # Panics
/// If it cannot be opened.
pub fn connect(path: &Path) -> Connection {
    let database = Connection::open(path).expect("open the application's database");
    database.busy_timeout(Duration::from_secs(20)).expect("a timeout");
    database.execute_batch("PRAGMA foreign_keys=ON; PRAGMA synchronous=OFF").expect("foreign keys");
    database
}

/// A text of a record.
///
/// # Panics
/// If there is none.
pub fn text_of(record: &Value, key: &str) -> String {
    record[key].as_str().unwrap_or_else(|| panic!("no {key}: {record}")).to_owned()
}
