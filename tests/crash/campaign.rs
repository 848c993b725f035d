//! A ledger to start from, copied for every crash.

use std::path::Path;

use ic_testkit::Cli;

/// A moment in 2023: with it and the same ids, two runs of a verb leave the same bytes.
pub(crate) const CLOCK: &str = "1700000000000";

/// What a verb can refer to.
pub(crate) struct Ledger {
    pub(crate) cli: Cli,
    pub(crate) run: String,
    pub(crate) pending: String,
    pub(crate) running: String,
    pub(crate) agent: String,
}

impl Ledger {
    /// A run that was advanced twice, with 10 artifacts, 3 dispatches and 3 agents that a rollback to `a` takes back.
    pub(crate) fn new() -> Self {
        let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
        let gates = r#"{"c→d": [{"check": "artifact_exists", "phase": "d"}]}"#;
        let run = cli.ok([
            "run",
            "create",
            "--goal",
            "crash",
            "--phases",
            "a,b,c,d,e",
            "--gates",
            gates,
            "--scope-id",
            "s",
        ]);
        cli.ok(["run", "skip", &run, "d", "--reason", "early"]);
        cli.ok(["run", "advance", &run]);
        cli.ok(["run", "advance", &run]);
        for i in 0..10 {
            cli.ok(["run", "artifact", "add", &run, "--path", &format!("file-{i}")]);
        }
        let dispatches: Vec<String> =
            (0..3).map(|i| cli.ok(["dispatch", "create", &run, "--name", &format!("work {i}")])).collect();
        cli.ok(["dispatch", "start", &dispatches[1]]);
        cli.ok(["dispatch", "complete", &dispatches[2], "--verdict", "pass"]);
        let agents: Vec<String> =
            (0..3).map(|_| cli.ok(["run", "agent", "add", &run, "--type", "codex"])).collect();
        cli.ok(["run", "agent", "update", &agents[2], "--status", "completed"]);
        cli.ok(["events", "tail", "--cursor", "reader", "--limit", "3"]);
        Self {
            cli,
            run,
            pending: dispatches[0].clone(),
            running: dispatches[1].clone(),
            agent: agents[0].clone(),
        }
    }

    /// Puts the ledger back to what [`Ledger::save`] kept.
    pub(crate) fn reset(&self) {
        let store = self.cli.root().join(".ic");
        std::fs::remove_dir_all(&store).expect("remove the store");
        copy(&self.cli.home().join("saved"), &store);
    }

    /// Keeps the ledger as it is now.
    pub(crate) fn save(&self) {
        copy(&self.cli.root().join(".ic"), &self.cli.home().join("saved"));
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("make a directory");
    for entry in std::fs::read_dir(from).expect("read a directory") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copy a file");
    }
}

/// Whether the campaign is to run at length.
pub(crate) fn long() -> bool {
    std::env::var_os("IC_TEST_LONG").is_some()
}
