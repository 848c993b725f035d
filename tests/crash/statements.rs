//! Every writing verb, with what it can come to.

use crate::campaign::Ledger;
use crate::everywhere::{Case, case, crash_everywhere};

fn crash_all(ledger: &Ledger, cases: &[Case<'_>]) {
    for case in cases {
        crash_everywhere(ledger, case);
    }
}

#[test]
fn verbs_of_runs() {
    let ledger = Ledger::new();
    let run = ledger.run.as_str();
    let gates = r#"{"x→y": [{"check": "artifact_exists"}]}"#;
    crash_all(
        &ledger,
        &[
            case(&["run", "create", "--goal", "another", "--complexity", "3", "--metadata", "{\"k\":1}"]),
            case(&["run", "create", "--goal", "gated", "--phases", "x,y", "--gates", gates]),
            case(&["run", "set", run, "--auto-advance", "false", "--metadata-merge", "{\"k\":1}"]),
            case(&["run", "set", run, "--complexity", "5"]),
            case(&["run", "cancel", run, "--reason", "no"]),
        ],
    );
    ledger.reset();
    ledger.cli.ok(["run", "cancel", run]);
    ledger.save();
    crash_everywhere(&ledger, &case(&["run", "reopen", run, "--reason", "after all"]));
}

#[test]
fn rollbacks() {
    let ledger = Ledger::new();
    let run = ledger.run.as_str();
    let all = r#""counts":{"phases":2,"dispatches":3,"artifacts":10,"agents":3,"skips":1}"#;
    let target = r#""counts":{"phases":3,"dispatches":3,"artifacts":10,"agents":3,"skips":1}"#;
    crash_all(
        &ledger,
        &[
            case(&["run", "rollback", run, "--to-phase", "a", "--reason", "crash"]).shows(all),
            case(&["run", "rollback", run, "--to-phase", "b"]),
            case(&["run", "rollback", run, "--to-phase", "a", "--include-target"]).shows(target),
            case(&["run", "rollback", run, "--to-phase", "c", "--include-target"]),
        ],
    );
    // Again over one that was done: marks and skips of both rollbacks side by side.
    ledger.reset();
    ledger.cli.ok(["run", "rollback", run, "--to-phase", "b"]);
    ledger.cli.ok(["run", "artifact", "add", run, "--path", "redone"]);
    ledger.save();
    crash_everywhere(&ledger, &case(&["run", "rollback", run, "--to-phase", "a"]));
}

#[test]
fn verbs_of_work() {
    let ledger = Ledger::new();
    let (run, pending, running) = (ledger.run.as_str(), ledger.pending.as_str(), ledger.running.as_str());
    let (newest, oldest) = ("a".repeat(40), "b".repeat(40));
    let log = format!("{newest}\n\nsrc/a.rs\nsrc/b.rs\n\n{oldest}\n\nsrc/c.rs\n");
    let lines = "{\"commit\":\"aaaaaaa1\",\"files\":[\"x\",\"y\"]}\n{\"commit\":\"bbbbbbb2\",\"files\":[]}\n";
    std::fs::write(ledger.cli.root().join("file"), "content").expect("a file to be hashed");
    crash_all(
        &ledger,
        &[
            case(&["run", "artifact", "add", run, "--path", "file"]),
            case(&["run", "artifact", "add", run, "--path", "gone", "--dispatch", running]),
            case(&["run", "agent", "add", run, "--type", "claude", "--dispatch", running]),
            case(&["run", "agent", "update", &ledger.agent, "--status", "failed"]),
            case(&["dispatch", "create", run, "--phase", "b"]),
            case(&["dispatch", "start", pending, "--pid", "1"]),
            case(&["dispatch", "complete", running, "--verdict", "fail", "--summary", "done"]),
            case(&["dispatch", "fail", running, "--error", "broken"]),
            case(&["dispatch", "cancel", pending]),
            case(&["dispatch", "record", running, "--commit", "abcdef1", "--commit", "abcdef2", "--file", "x"]),
            case(&["dispatch", "record", running, "--stdin"]).reads(&log),
            case(&["dispatch", "record", running, "--stdin"]).reads(lines),
            case(&["dispatch", "tokens", running, "--in", "1", "--out", "2"]),
        ],
    );
}

#[test]
fn late_work() {
    let ledger = Ledger::new();
    let running = ledger.running.as_str();
    ledger.cli.ok(["run", "rollback", &ledger.run, "--to-phase", "a"]);
    ledger.save();
    crash_all(
        &ledger,
        &[
            case(&["dispatch", "record", running, "--commit", "abcdef1"]).shows("\"late\":true"),
            case(&["dispatch", "tokens", running, "--in", "1", "--out", "2"]),
        ],
    );
}

#[test]
fn verbs_of_events() {
    let ledger = Ledger::new();
    crash_all(
        &ledger,
        &[
            case(&["events", "cursor", "reset", "reader"]),
            case(&["events", "tail", "--cursor", "reader", "--limit", "2"]),
            case(&["events", "tail", &ledger.run, "--cursor", "another"]),
            case(&["events", "redact", "1", "--reason", "secret"]),
        ],
    );
}

#[test]
fn blocking_passing_and_pausing() {
    let ledger = Ledger::new();
    let run = ledger.run.as_str();
    let (block, over) = ("\"event_kind\":\"block\"", "\"event_kind\":\"override\"");
    // With the skip that leads to the end, and without it.
    crash_everywhere(&ledger, &case(&["run", "advance", run]).exits(1).shows(block));
    ledger.reset();
    ledger.cli.ok(["run", "rollback", run, "--to-phase", "c", "--include-target"]);
    ledger.save();
    crash_all(
        &ledger,
        &[
            case(&["run", "advance", run]).exits(1).shows(block),
            case(&["run", "advance", run, "--priority", "2"]).shows("\"gate_result\":\"fail\""),
            case(&["run", "advance", run, "--expect-phase", "c@1", "--disable-gates", "--reason", "spike"]),
            case(&["gate", "override", run, "--reason", "by hand"]).shows(over),
            case(&["run", "skip", run, "d", "--reason", "no need"]),
        ],
    );
    ledger.reset();
    std::fs::write(ledger.cli.root().join("x"), "x").expect("what the gate counts");
    ledger.cli.ok(["run", "artifact", "add", run, "--path", "x", "--phase", "d"]);
    ledger.save();
    crash_everywhere(&ledger, &case(&["run", "advance", run]).shows("\"gate_result\":\"pass\""));
    ledger.reset();
    ledger.cli.ok(["run", "set", run, "--auto-advance", "false"]);
    ledger.save();
    crash_everywhere(&ledger, &case(&["run", "advance", run]).exits(1).shows("\"event_kind\":\"pause\""));
}

#[test]
fn completing_and_coming_back() {
    let ledger = Ledger::new();
    let run = ledger.run.as_str();
    let last = "\"to_phase\":\"e\"";
    crash_all(
        &ledger,
        &[
            case(&["run", "advance", run, "--disable-gates", "--reason", "done"]).shows(last),
            case(&["gate", "override", run, "--reason", "the end"]).shows(last),
        ],
    );
    assert_eq!(ledger.cli.json(["run", "status", run])["status"], "completed");
    ledger.reset();
    ledger.cli.ok(["gate", "override", run, "--reason", "the end"]);
    ledger.save();
    crash_everywhere(&ledger, &case(&["run", "rollback", run, "--to-phase", "b"]));
    ledger.reset();
    ledger.cli.ok(["run", "rollback", run, "--to-phase", "b"]);
    assert_eq!(ledger.cli.json(["run", "status", run])["status"], "active");
}
