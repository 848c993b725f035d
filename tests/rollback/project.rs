//! A world whose run did something in every layer, and what is done with it.

use ic_testkit::{Cli, CliOutcome, TestWorld};
use serde_json::Value;

/// What lies around the project that an effect of [`Work::effect`] and its undo leave, and the project itself.
pub(crate) const WHOLE: [&str; 4] = ["project", "keys", "effects", "calls"];

/// A git repository with a ledger.
pub(crate) fn in_git() -> TestWorld {
    let world = without_git();
    world.git(&["init", "-q"]);
    world.write(".gitignore", ".ic/\ndata/\n");
    world.write("README", "base\n");
    world.commit("base");
    world
}

/// A plain directory with a ledger.
pub(crate) fn without_git() -> TestWorld {
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints();
    std::fs::create_dir(cli.home().join("keys")).expect("a directory for keys");
    TestWorld::around(cli)
}

/// What a run does, and its rollback.
pub(crate) trait Work {
    /// Begins the run, in phase `a`; whatever stands in the tree is what it starts with.
    fn begun(self) -> TestWorld;

    fn advance(&self);

    /// Declares an effect whose undo writes its name to the log once for each idempotency key.
    fn effect(&self, step: &str, before: &[&str]);

    /// What was undone, in that order, each idempotency key once.
    fn effects(&self) -> Vec<String>;

    /// The words of a rollback of everything.
    fn all<'a>(&'a self, to: &'a str, more: &[&'a str]) -> Vec<&'a str>;

    /// Rolls everything back, which must wholly succeed.
    fn roll_back(&self, to: &str, more: &[&str]) -> Value;
}

impl Work for TestWorld {
    fn begun(self) -> TestWorld {
        let run = self.ic(&["run", "create", "--goal", "g", "--phases", "a,b,c,d,e,f"]);
        self.with_run(run)
    }

    fn advance(&self) {
        let report = self.cli.json(["run", "advance", &self.run, "--json"]);
        assert!(report["checkpoint_id"].is_string(), "{report}");
    }

    fn effect(&self, step: &str, before: &[&str]) {
        let home = self.cli.home().display().to_string();
        let mut lines: Vec<String> = before.iter().map(|line| (*line).to_owned()).collect();
        lines.push(format!("echo {step} >> {home}/calls"));
        lines.push(format!(
            "if mkdir {home}/keys/$IC_IDEMPOTENCY_KEY 2>/dev/null; then echo {step} >> {home}/effects; fi"
        ));
        self.ic(&["compensation", "add", &self.run, "--step", step, "--shell", &lines.join("\n")]);
    }

    fn effects(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.cli.home().join("effects")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn all<'a>(&'a self, to: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["run", "rollback", &self.run, "--to-phase", to, "--layer=all", "--json"];
        words.extend(more);
        words
    }

    fn roll_back(&self, to: &str, more: &[&str]) -> Value {
        let mut words = self.all(to, more);
        words.push("--yes");
        let report = self.cli.json(words);
        assert_eq!(report["status"], "rolled_back", "{report}");
        report
    }
}

/// The only value of a query over the ledger.
pub(crate) fn asked(cli: &Cli, sql: &str) -> i64 {
    cli.sql(sql).parse().expect("a number")
}

/// That a dry run says the refusal of the real call: in the plan that it shows (ADR 0024), or in the same error line where there is none.
pub(crate) fn assert_said_alike(preview: &CliOutcome, deed: &CliOutcome) {
    assert_eq!(preview.code, deed.code, "{preview:?}");
    if preview.stdout.is_empty() {
        assert_eq!(preview.stderr, deed.stderr);
        return;
    }
    let (plan, error): (Value, Value) = (preview.json(), serde_json::from_str(&deed.stderr).expect("an error line"));
    assert_eq!((&plan["refusal"], preview.stderr.as_str()), (&error["error"], ""), "{preview:?}");
}
