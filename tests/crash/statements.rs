//! Abort before every statement of every writing verb.

use ic_testkit::{Cli, Outcome};

use crate::campaign::{CLOCK, Ledger};

/// More statements than any verb has: a loop that gets there never ended.
const TOO_MANY: i64 = 2_000;

/// Aborts `verb` before its first, second, ... statement, until it gets through.
fn crash_everywhere(ledger: &Ledger, verb: &[&str]) {
    ledger.reset();
    let before = ledger.cli.dump();
    let (clean, exit) = clean_run(ledger, verb);
    for n in 1..TOO_MANY {
        ledger.reset();
        let outcome = call(&ledger.cli, verb, Some(n));
        if outcome.code.is_some() {
            assert_eq!(outcome.code, exit, "{verb:?} before {n}: {outcome:?}");
            assert_eq!(ledger.cli.dump(), clean, "{verb:?}: no crash left another result");
            assert!(n > 1, "{verb:?} was never crashed");
            return;
        }
        let after = ledger.cli.dump();
        if after == before {
            let again = call(&ledger.cli, verb, None);
            assert_eq!(again.code, exit, "{verb:?} again after a crash before {n}: {again:?}");
            assert_eq!(ledger.cli.dump(), clean, "{verb:?} again after a crash before {n}");
        } else {
            assert_eq!(after, clean, "{verb:?} crashed before statement {n} and is neither old nor new");
        }
        ledger.cli.ok(["events", "verify"]);
    }
    panic!("{verb:?} has more than {TOO_MANY} statements");
}

fn clean_run(ledger: &Ledger, verb: &[&str]) -> (String, Option<i32>) {
    let outcome = call(&ledger.cli, verb, None);
    assert!(matches!(outcome.code, Some(0 | 1)), "{verb:?}: {outcome:?}");
    (ledger.cli.dump(), outcome.code)
}

fn call(cli: &Cli, verb: &[&str], abort_before: Option<i64>) -> Outcome {
    let mut command = cli.command(verb);
    command.env("IC_TEST_CLOCK", CLOCK).env("IC_TEST_IDS", "12345678");
    if let Some(n) = abort_before {
        command.env("IC_TEST_ABORT_BEFORE", n.to_string());
    }
    let output = command.output().expect("start ic");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn verbs_of_runs() {
    let ledger = Ledger::new();
    ledger.save();
    let run = ledger.run.as_str();
    for verb in [
        &["run", "create", "--goal", "another", "--complexity", "3"][..],
        &["run", "advance", run, "--priority", "2"],
        &["run", "advance", run, "--disable-gates", "--reason", "spike"],
        &["run", "advance", run],
        &["gate", "override", run, "--reason", "by hand"],
        &["run", "set", run, "--auto-advance", "false", "--metadata-merge", "{\"k\":1}"],
        &["run", "cancel", run, "--reason", "no"],
    ] {
        crash_everywhere(&ledger, verb);
    }
}

#[test]
fn rollbacks() {
    let ledger = Ledger::new();
    ledger.save();
    let run = ledger.run.as_str();
    for verb in [
        &["run", "rollback", run, "--to-phase", "a", "--reason", "crash"][..],
        &["run", "rollback", run, "--to-phase", "b"],
        &["run", "rollback", run, "--to-phase", "a", "--include-target"],
        &["run", "rollback", run, "--to-phase", "c", "--include-target"],
    ] {
        crash_everywhere(&ledger, verb);
    }
}

#[test]
fn verbs_of_work() {
    let ledger = Ledger::new();
    ledger.save();
    let (run, pending, running) = (ledger.run.as_str(), ledger.pending.as_str(), ledger.running.as_str());
    for verb in [
        &["run", "artifact", "add", run, "--path", "new"][..],
        &["run", "agent", "add", run, "--type", "claude", "--dispatch", running],
        &["run", "agent", "update", &ledger.agent, "--status", "failed"],
        &["dispatch", "create", run, "--phase", "b"],
        &["dispatch", "start", pending, "--pid", "7"],
        &["dispatch", "complete", running, "--verdict", "fail", "--summary", "done"],
        &["dispatch", "fail", running, "--error", "broken"],
        &["dispatch", "cancel", pending],
        &["dispatch", "record", running, "--commit", "abcdef1", "--commit", "abcdef2", "--file", "x"],
        &["dispatch", "tokens", running, "--in", "1", "--out", "2"],
    ] {
        crash_everywhere(&ledger, verb);
    }
}

#[test]
fn verbs_of_events() {
    let ledger = Ledger::new();
    ledger.save();
    for verb in [
        &["events", "cursor", "reset", "reader"][..],
        &["events", "tail", "--cursor", "reader", "--limit", "2"],
        &["events", "redact", "2", "--reason", "secret"],
    ] {
        crash_everywhere(&ledger, verb);
    }
}

#[test]
fn skipping_completing_and_pausing() {
    let ledger = Ledger::new();
    let run = ledger.run.as_str();
    ledger.save();
    ledger.cli.ok(["run", "rollback", run, "--to-phase", "a", "--include-target"]);
    std::fs::remove_dir_all(ledger.cli.home().join("saved")).expect("forget the first ledger");
    ledger.save();
    crash_everywhere(&ledger, &["run", "skip", run, "c", "--reason", "no need"]);
    for _ in 0..2 {
        ledger.cli.ok(["gate", "override", run, "--reason", "on"]);
    }
    std::fs::remove_dir_all(ledger.cli.home().join("saved")).expect("forget the second ledger");
    ledger.save();
    crash_everywhere(&ledger, &["gate", "override", run, "--reason", "the end"]);
    ledger.reset();
    ledger.cli.ok(["run", "set", run, "--auto-advance", "false"]);
    std::fs::remove_dir_all(ledger.cli.home().join("saved")).expect("forget the third ledger");
    ledger.save();
    crash_everywhere(&ledger, &["run", "advance", run]);
}
