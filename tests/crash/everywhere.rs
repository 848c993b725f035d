//! Aborting one call before each of its statements.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use crate::campaign::{Ledger, assert_sound};

/// A writing call and what it must do when nothing crashes.
pub(crate) struct Case<'a> {
    arguments: Vec<&'a str>,
    input: &'a str,
    exit: i32,
    shows: &'a str,
}

/// A call that succeeds.
pub(crate) fn case<'a>(arguments: &[&'a str]) -> Case<'a> {
    Case { arguments: arguments.to_vec(), input: "", exit: 0, shows: "" }
}

impl<'a> Case<'a> {
    /// It ends with this exit code.
    pub(crate) fn exits(self, exit: i32) -> Self {
        Self { exit, ..self }
    }

    /// It prints this, which says that it is the case that was meant.
    pub(crate) fn shows(self, shows: &'a str) -> Self {
        Self { shows, ..self }
    }

    /// It is given this on standard input.
    pub(crate) fn reads(self, input: &'a str) -> Self {
        Self { input, ..self }
    }

    fn call(&self, ledger: &Ledger, abort_before: Option<usize>) -> Output {
        let home = ledger.cli.home();
        std::fs::write(home.join("input"), self.input).expect("the input");
        std::fs::write(home.join("log"), "").expect("an empty log");
        let mut command = ledger.command(&self.arguments);
        command.stdin(File::open(home.join("input")).expect("the input"));
        command.env("IC_TEST_SQL_LOG", home.join("log"));
        if let Some(n) = abort_before {
            command.env("IC_TEST_ABORT_BEFORE", n.to_string());
        }
        command.output().expect("start ic")
    }

    /// Calls it without a crash and returns what it leaves.
    fn call_through(&self, ledger: &Ledger, when: &str) -> String {
        let output = self.call(ledger, None);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(self.exit), "{:?} {when}: {stdout}{stderr}", self.arguments);
        assert!(stdout.contains(self.shows), "{:?} {when}: {stdout}", self.arguments);
        ledger.cli.dump()
    }
}

/// The statements of the last call that were begun.
fn statements(ledger: &Ledger) -> Vec<String> {
    let log = std::fs::read_to_string(ledger.cli.home().join("log")).expect("the log");
    log.lines().map(str::to_owned).collect()
}

/// Aborts the call before its first, second, ... statement and once more after its last.
///
/// Before COMMIT the ledger is as it was, and the same call then does what it does without a crash; after it, the ledger
/// is as the call leaves it.
pub(crate) fn crash_everywhere(ledger: &Ledger, case: &Case<'_>) {
    const SIGABRT: i32 = 6;
    let what = &case.arguments;
    ledger.reset();
    let before = ledger.cli.dump();
    let clean = case.call_through(ledger, "without a crash");
    assert_ne!(before, clean, "{what:?} writes nothing");
    let all = statements(ledger);
    assert_eq!(all.iter().filter(|s| *s == "COMMIT").count(), 1, "{what:?} is not one transaction: {all:#?}");
    for n in 1..=all.len() {
        ledger.reset();
        let output = case.call(ledger, Some(n));
        assert_eq!(output.status.signal(), Some(SIGABRT), "{what:?} before {n}: {output:?}");
        let begun = statements(ledger);
        assert_eq!(begun, all[..n - 1], "{what:?} before {n}");
        let committed = begun.iter().any(|s| s == "COMMIT");
        assert_sound(&ledger.cli);
        let found = ledger.cli.dump();
        if committed {
            assert_eq!(found, clean, "{what:?}: what was committed before {n} is not all there");
        } else {
            assert_eq!(found, before, "{what:?}: something stays of a crash before {n}: {}", all[n - 1]);
            let again = case.call_through(ledger, &format!("again after a crash before {n}"));
            assert_eq!(again, clean, "{what:?} again after a crash before {n}");
        }
    }
    ledger.reset();
    let output = case.call(ledger, Some(all.len() + 1));
    assert_eq!(output.status.code(), Some(case.exit), "{what:?} has statements that no crash met");
}
