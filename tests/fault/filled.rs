//! A ledger with something in it.

use ic_testkit::Cli;

/// A run with a dispatch, an agent, an artifact and a skip, at its second phase.
pub(crate) struct Filled {
    pub(crate) cli: Cli,
    pub(crate) run: String,
    pub(crate) dispatch: String,
    pub(crate) agent: String,
}

impl Filled {
    pub(crate) fn new() -> Self {
        Self::around(Cli::new(env!("CARGO_BIN_EXE_ic")))
    }

    /// Fills the ledger that `cli` already has.
    pub(crate) fn around(cli: Cli) -> Self {
        let run = cli.ok(["run", "create", "--goal", "faults", "--phases", "a,b,c,d,e"]);
        cli.ok(["run", "advance", &run]);
        cli.ok(["run", "skip", &run, "d", "--reason", "no"]);
        cli.ok(["run", "artifact", "add", &run, "--path", "x"]);
        let dispatch = cli.ok(["dispatch", "create", &run]);
        let agent = cli.ok(["run", "agent", "add", &run, "--type", "codex"]);
        Self { cli, run, dispatch, agent }
    }
}
