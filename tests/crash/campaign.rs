//! A ledger to start from, copied for every crash.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use ic_testkit::Cli;

/// What a verb can refer to.
pub(crate) struct Ledger {
    pub(crate) cli: Cli,
    pub(crate) run: String,
    pub(crate) pending: String,
    pub(crate) running: String,
    pub(crate) agent: String,
}

impl Ledger {
    /// A run that was advanced twice, with 10 artifacts, 3 dispatches and 3 agents that a rollback to `a` undoes.
    pub(crate) fn new() -> Self {
        let cli = Cli::new(env!("CARGO_BIN_EXE_ic"));
        // One transaction a verb: content has a database, and crashes, of its own.
        std::fs::write(cli.root().join(".ic.yaml"), "rollback: {enabled: false}\n").expect("its configuration");
        let gates = r#"{"c→d": [{"check": "artifact_exists", "phase": "d"}]}"#;
        let create = ["run", "create", "--goal", "crash", "--phases", "a,b,c,d,e", "--scope-id", "s"];
        let run = cli.ok(create.iter().chain(&["--gates", gates]));
        cli.ok(["run", "advance", &run]);
        cli.ok(["run", "advance", &run]);
        for i in 0..10 {
            cli.ok(["run", "artifact", "add", &run, "--path", &format!("file-{i}")]);
        }
        let dispatches: Vec<String> =
            (0..3).map(|i| cli.ok(["dispatch", "create", &run, "--name", &format!("work {i}")])).collect();
        cli.ok(["dispatch", "start", &dispatches[1]]);
        cli.ok(["dispatch", "complete", &dispatches[2], "--verdict", "pass"]);
        let agents: Vec<String> = (0..3).map(|_| cli.ok(["run", "agent", "add", &run, "--type", "codex"])).collect();
        cli.ok(["run", "agent", "update", &agents[2], "--status", "completed"]);
        cli.ok(["run", "skip", &run, "d", "--reason", "late"]);
        cli.ok(["events", "tail", "--cursor", "reader", "--limit", "3"]);
        let (pending, running) = (dispatches[0].clone(), dispatches[1].clone());
        let ledger = Self { cli, run, pending, running, agent: agents[0].clone() };
        ledger.save();
        ledger
    }

    /// A call whose clock stands still and whose ids repeat: two runs of a verb leave the same rows.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.cli.command(arguments);
        // A moment in 2023.
        command.env("IC_TEST_CLOCK", "1700000000000").env("IC_TEST_IDS", "12345678");
        command
    }

    /// Saves a copy of the ledger, for [`Ledger::reset`].
    pub(crate) fn save(&self) {
        let saved = self.cli.home().join("saved");
        if saved.exists() {
            std::fs::remove_dir_all(&saved).expect("forget an earlier state");
        }
        copy(&self.cli.root().join(".ic"), &saved);
        self.cli.keep_ledger("saved");
    }

    /// Puts the ledger back to what [`Ledger::save`] kept.
    pub(crate) fn reset(&self) {
        let store = self.cli.root().join(".ic");
        std::fs::remove_dir_all(&store).expect("remove the store");
        copy(&self.cli.home().join("saved"), &store);
        self.cli.put_back_ledger("saved");
    }
}

/// Asserts that the program itself finds nothing wrong. After a crash, call it before anything else opens the ledger: the first
/// opening recovers the log, and the program itself shall be the one that does it.
pub(crate) fn assert_sound(cli: &Cli) {
    assert_eq!(cli.json(["health"])["ok"], true);
    cli.ok(["events", "verify"]);
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("make a directory");
    for entry in std::fs::read_dir(from).expect("read a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).expect("copy a file");
        }
    }
}
