//! A project whose clock stands still and whose ids count up.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use ic_testkit::{Cli, CliOutcome, write_in};
use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ic");
/// 2026-02-20T16:55:15.000Z.
const CLOCK: &str = "1771606515000";
/// The first id ends in 0a000001.
const FIRST_ID: u64 = 0x0a00_0000;

pub(crate) struct Project {
    pub(crate) cli: Cli,
    calls: Cell<u64>,
}

/// Words as a shell would split them; `'...'` keeps spaces.
pub(crate) fn args(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

impl Project {
    /// A project with a new ledger.
    pub(crate) fn new() -> Self {
        let project = Self::without_ledger();
        project.ok("init");
        project
    }

    pub(crate) fn without_ledger() -> Self {
        Self { cli: Cli::without_ledger(BINARY), calls: Cell::new(0) }
    }

    pub(crate) fn root(&self) -> &Path {
        self.cli.root()
    }

    /// A call that has not been started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let arguments: Vec<S> = arguments.into_iter().collect();
        // A call that makes several ids must not meet those of the next one.
        let mut words = arguments.iter().filter_map(|word| word.as_ref().to_str()).peekable();
        while words.next_if_eq(&"-C").is_some() {
            words.next();
        }
        let step = match words.next() {
            Some("workflow") => 64,
            Some("checkpoint" | "rewind" | "undo" | "redo" | "restore") => 16,
            _ => 1,
        };
        self.calls.set(self.calls.get() + step);
        let is_hook = arguments.first().is_some_and(|word| word.as_ref() == "hook");
        // A server has a clock of its own, and health compares the two.
        let compares_clocks =
            ic_testkit::server::is_in_use() && arguments.first().is_some_and(|word| word.as_ref() == "health");
        let mut command = self.cli.command(arguments);
        command.env("IC_TEST_IDS", (FIRST_ID + self.calls.get()).to_string());
        if !compares_clocks {
            command.env("IC_TEST_CLOCK", CLOCK).env("IC_TEST_ACTOR", "ann@laptop:/home/ann/shop");
        }
        if is_hook {
            self.calls.set(self.calls.get() + 15);
        }
        command
    }

    /// Runs a call that is written as one line.
    pub(crate) fn run(&self, line: &str) -> CliOutcome {
        self.run_words(args(line))
    }

    pub(crate) fn run_words<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> CliOutcome {
        CliOutcome::of(&mut self.command(arguments))
    }

    /// Runs a call with one more variable in its environment.
    pub(crate) fn run_with(&self, name: &str, value: impl AsRef<OsStr>, line: &str) -> CliOutcome {
        CliOutcome::of(self.command(args(line)).env(name, value))
    }

    /// Runs a call with this standard input.
    pub(crate) fn run_with_input(&self, line: &str, input: &[u8]) -> CliOutcome {
        let path = self.cli.home().join("input");
        std::fs::write(&path, input).expect("the input");
        let file = std::fs::File::open(path).expect("the input");
        CliOutcome::of(self.command(args(line)).stdin(Stdio::from(file)))
    }

    /// Runs a call that must succeed and returns its output without the newline at its end.
    pub(crate) fn ok(&self, line: &str) -> String {
        let outcome = self.run(line);
        assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
        outcome.stdout.trim_end_matches('\n').to_owned()
    }

    /// Runs a call that must succeed with `--json`.
    pub(crate) fn json(&self, line: &str) -> Value {
        let words: Vec<String> = args(line).into_iter().chain(["--json".to_owned()]).collect();
        let outcome = self.run_words(&words);
        assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
        outcome.json()
    }

    /// Runs a call that must be refused, and must change nothing.
    pub(crate) fn refused(&self, line: &str) -> (i32, String) {
        self.refused_words(args(line))
    }

    pub(crate) fn refused_words<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> (i32, String) {
        let arguments: Vec<OsString> = arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
        let before = self.dump();
        let outcome = self.run_words(&arguments);
        assert_eq!(self.dump(), before, "{arguments:?} was refused and changed the ledger");
        assert_eq!(outcome.stdout, "", "{arguments:?} was refused and printed something");
        let error = outcome.error();
        (outcome.code.unwrap_or_else(|| panic!("{arguments:?}: {outcome:?}")), error)
    }

    /// The content of the ledger as text; empty without one.
    pub(crate) fn dump(&self) -> String {
        let is_there = ic_testkit::server::is_in_use() || self.cli.db().exists();
        if is_there { self.cli.dump() } else { String::new() }
    }

    /// A connection to the ledger, past the program.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.cli.db()).expect("open the ledger")
    }

    /// A file of the project.
    pub(crate) fn write(&self, path: impl AsRef<Path>, content: &str) {
        write_in(self.root(), path, content);
    }

    /// Text without what differs from machine to machine.
    pub(crate) fn plain(&self, text: &str) -> String {
        text.replace(&self.root().to_string_lossy().into_owned(), "/home/ann/shop")
            .replace(&self.cli.home().to_string_lossy().into_owned(), "/home/ann")
            .replace(env!("CARGO_BIN_EXE_ic"), "/usr/local/bin/ic")
    }
}
