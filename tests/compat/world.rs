//! A world of a fixture: what is asked of it and done in it.

use std::path::PathBuf;

use ic_testkit::{Cli, Outcome, State, git_state, ledger, tree};
use serde_json::Value;

use crate::fixture::ends;

/// A project whose store an older version made.
pub(crate) struct World {
    pub(crate) cli: Cli,
}

impl World {
    /// The ledger's file: in a repository the store lies in git's directory.
    pub(crate) fn db(&self) -> PathBuf {
        self.cli.root().join(".git/ic/ic.db")
    }

    /// A call that must succeed; returns its JSON.
    pub(crate) fn ask(&self, words: &[&str]) -> Value {
        self.cli.json(words.iter().chain(&["--json"]))
    }

    /// A call that must end with one of these exit codes.
    pub(crate) fn call(&self, words: &[&str], exits: &[i32], when: &str) -> Outcome {
        let outcome = self.cli.run(words);
        ends(&outcome, exits, when, words);
        outcome
    }

    /// The newest of a list; `None` if there is nothing.
    pub(crate) fn newest(&self, list: &[&str]) -> Option<Value> {
        self.ask(list).as_array().expect("a list").last().cloned()
    }

    /// The run that began last.
    pub(crate) fn run(&self) -> Option<String> {
        self.newest(&["run", "list"]).map(|run| text(&run, "id"))
    }

    /// Where that run is: its status and its phase.
    pub(crate) fn stands(&self) -> Option<(String, String)> {
        self.newest(&["run", "list"]).map(|run| (text(&run, "status"), text(&run, "phase")))
    }

    /// What an effect left outside; nothing if it left nothing.
    pub(crate) fn outside(&self, name: &str) -> String {
        std::fs::read_to_string(self.cli.home().join("outside").join(name)).unwrap_or_default()
    }

    /// Everything that an operation is about. The first call brings the ledger forward, so that both sides of a comparison have
    /// the same columns.
    pub(crate) fn state(&self) -> State {
        self.cli.ok(["run", "list"]);
        State {
            tree: tree(self.cli.root()),
            git: git_state(self.cli.root()),
            rows: self.rows(),
            ledger: ledger(&self.db()),
        }
    }

    /// Every row of the application's but the audit's.
    fn rows(&self) -> String {
        let dump = ic_testkit::dump(&self.cli.root().join("data/app.db"));
        dump.lines().filter(|line| !line.contains("ROLLBACK_")).map(|line| format!("{line}\n")).collect()
    }

    /// Asserts that the ledger is sound and its events are chained.
    pub(crate) fn assert_sound(&self, when: &str) {
        assert_eq!(self.ask(&["health"])["ok"], true, "{when}");
        self.call(&["events", "verify"], &[0], when);
    }
}

/// A text of a record.
pub(crate) fn text(record: &Value, key: &str) -> String {
    record[key].as_str().unwrap_or_else(|| panic!("no {key}: {record}")).to_owned()
}
