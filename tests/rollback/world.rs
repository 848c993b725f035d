//! A run that did something in every layer, and what its project looks like before and after.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicI64;

pub(crate) use ic_testkit::State;
use ic_testkit::{Cli, git_in, git_state, ledger, tree};
use rusqlite::Connection;
use serde_json::Value;

/// A project with one run whose work reaches every layer.
pub(crate) struct World {
    pub(crate) cli: Cli,
    pub(crate) run: String,
    /// The time of the application's next row.
    pub(crate) clock: AtomicI64,
}

impl World {
    /// A git repository with a ledger and a run in phase `a` that did nothing yet.
    pub(crate) fn new() -> Self {
        let world = Self::without_git();
        world.git(&["init", "-q"]);
        world.write(".gitignore", ".ic/\ndata/\n");
        world.write("README", "base\n");
        world.commit("base");
        world
    }

    /// A plain directory with a ledger and a run.
    pub(crate) fn without_git() -> Self {
        let path = std::env::var_os("PATH").expect("a PATH");
        let cli = Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
        std::fs::create_dir(cli.home().join("keys")).expect("a directory for keys");
        Self { cli, run: String::new(), clock: AtomicI64::new(1_700_000_000_000) }
    }

    /// Begins the run; whatever stands in the tree is what it starts with.
    pub(crate) fn begun(mut self) -> Self {
        self.run = self.cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c,d,e,f"]);
        self
    }

    /// The run at `d`: work in `a` that stays, work in `b`, `c` and `d` in every layer that a rollback to `a` takes back.
    pub(crate) fn story() -> Self {
        Self::new().begun().told()
    }

    /// The same with rows of a state database.
    pub(crate) fn story_with_rows() -> Self {
        Self::new().with_rows().begun().told()
    }

    fn told(self) -> Self {
        let world = self;
        world.task("planned");
        world.log("a note after the task");
        world.write("kept/plan.md", "plan\n");
        world.ic(&["run", "artifact", "add", &world.run, "--path", "kept/plan.md"]);
        world.commit("plan");
        world.effect("reserve", &[]);
        world.advance();
        world.write("src/a.rs", "one\n");
        world.write("src/b.rs", "two\n");
        let sha = world.commit("work");
        let done = world.cli.ok(["dispatch", "create", &world.run, "--name", "done"]);
        world.ic(&["dispatch", "start", &done]);
        world
            .ic(&["dispatch", "record", &done, "--commit", &sha, "--file", "src/a.rs", "--file", "src/b.rs"]);
        world.ic(&["dispatch", "complete", &done, "--verdict", "pass"]);
        world.ic(&["run", "artifact", "add", &world.run, "--path", "src/a.rs"]);
        world.effect("book", &[]);
        world.task("built");
        world.log("built it");
        world.advance();
        world.write("README", "changed\n");
        world.remove("src/b.rs");
        world.commit("more");
        world.effect("pay", &[]);
        world.task("paid");
        world.ic(&["run", "skip", &world.run, "e", "--reason", "late"]);
        world.advance();
        world.write("src/a.rs", "not committed\n");
        world.write("notes/todo", "not tracked\n");
        world.git(&["add", "src/a.rs"]);
        world.ic(&["run", "agent", "add", &world.run, "--type", "codex"]);
        world.ic(&["dispatch", "create", &world.run, "--name", "pending"]);
        world.effect("mail", &[]);
        world.log("mailed it");
        world
    }

    /// Declares an effect whose undo writes its name to the log once for each idempotency key.
    pub(crate) fn effect(&self, step: &str, before: &[&str]) {
        let home = self.cli.home().display().to_string();
        let mut lines: Vec<String> = before.iter().map(|line| (*line).to_owned()).collect();
        lines.push(format!("echo {step} >> {home}/calls"));
        lines.push(format!(
            "if mkdir {home}/keys/$IC_IDEMPOTENCY_KEY 2>/dev/null; then echo {step} >> {home}/effects; fi"
        ));
        self.ic(&["compensation", "add", &self.run, "--step", step, "--shell", &lines.join("\n")]);
    }

    /// What was undone, in that order, each idempotency key once.
    pub(crate) fn effects(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.cli.home().join("effects")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    pub(crate) fn ic(&self, words: &[&str]) -> String {
        self.cli.ok(words)
    }

    pub(crate) fn advance(&self) {
        let report = self.cli.json(["run", "advance", &self.run, "--json"]);
        assert!(report["checkpoint_id"].is_string(), "{report}");
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git_in(self.cli.root(), arguments)
    }

    /// Commits everything and returns the commit.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.cli.root().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.cli.root().join(path)).expect("remove a file");
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.cli.root().join(path)).ok()
    }

    /// The words of a rollback of everything.
    pub(crate) fn all<'a>(&'a self, to: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["run", "rollback", &self.run, "--to-phase", to, "--layer=all", "--json"];
        words.extend(more);
        words
    }

    /// Rolls everything back, which must wholly succeed.
    pub(crate) fn roll_back(&self, to: &str, more: &[&str]) -> Value {
        let mut words = self.all(to, more);
        words.push("--yes");
        let report = self.cli.json(words);
        assert_eq!(report["status"], "rolled_back", "{report}");
        report
    }

    pub(crate) fn status(&self) -> String {
        let status = self.cli.json(["run", "status", &self.run, "--json"]);
        format!(
            "{}@{}",
            status["status"].as_str().expect("a status"),
            status["phase"].as_str().expect("a phase")
        )
    }

    /// Everything that a rollback is about, but for ids, events and times.
    pub(crate) fn state(&self) -> State {
        State {
            tree: tree(self.cli.root()),
            git: git_state(self.cli.root()),
            rows: self.rows(),
            ledger: ledger(&self.cli.db()),
        }
    }

    /// Keeps the whole project and what its effects left.
    pub(crate) fn save(&self) {
        let saved = self.cli.home().join("saved");
        let _ = std::fs::remove_dir_all(&saved);
        std::fs::create_dir(&saved).expect("a directory");
        for name in ["project", "keys", "effects", "calls"] {
            self.copy(&self.cli.home().join(name), &saved.join(name));
        }
    }

    /// Puts the project back to what [`World::save`] kept.
    pub(crate) fn reset(&self) {
        for name in ["project", "keys", "effects", "calls"] {
            let path = self.cli.home().join(name);
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
            self.copy(&self.cli.home().join("saved").join(name), &path);
        }
    }

    fn copy(&self, from: &Path, to: &Path) {
        if from.exists() {
            let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("start cp");
            assert!(status.success(), "copy {}", self.cli.home().display());
        }
    }
}

/// The only value of a query over the ledger.
pub(crate) fn asked(cli: &Cli, sql: &str) -> i64 {
    let connection = Connection::open(cli.db()).expect("open the ledger");
    connection.query_row(sql, [], |row| row.get(0)).expect("an answer")
}
