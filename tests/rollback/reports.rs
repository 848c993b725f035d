//! What a rollback tells: of files, why work was cancelled, how much it took; and of what fails inside it, each thing once.

use ic_testkit::TestWorld;
use serde_json::{Value, json};

use crate::project::{Work as _, in_git};

fn events(world: &TestWorld, kind: &str) -> Vec<Value> {
    let lines = world.ic(&["events", "tail", "--all", "--format", "jsonl"]);
    let all = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    all.filter(|event| event["kind"] == kind).collect()
}

/// A run at `b` with an unfinished dispatch that recorded a file, and an artifact.
fn at_work() -> TestWorld {
    let world = in_git().begun();
    world.advance();
    world.write("src/auth.js", "1");
    let dispatch = world.ic(&["dispatch", "create", &world.run, "--name", "code"]).trim().to_owned();
    world.ic(&["dispatch", "record", &dispatch, "--file", "src/auth.js", "--file", "odd name.txt"]);
    world
}

#[test]
fn the_text_of_the_code_layer_names_each_file_with_its_dispatch() {
    let world = at_work();
    let report: Value =
        serde_json::from_str(&world.ic(&["run", "rollback", &world.run, "--layer=code", "--json"])).expect("JSON");
    let entry = &report["entries"][0];
    assert_eq!(entry["file_paths"], json!(["src/auth.js", "odd name.txt"]), "{report}");
    let text = world.ic(&["run", "rollback", &world.run, "--layer=code", "--format", "text"]);
    let id = entry["dispatch_id"].as_str().expect("an id");
    for path in ["src/auth.js", "odd name.txt"] {
        let line = text.lines().find(|line| line.contains(path)).unwrap_or_else(|| panic!("{path}: {text}"));
        assert!(line.contains(&id[id.len() - 8..]) && line.contains("  b  "), "{text}");
    }
}

#[test]
fn each_rollback_counts_and_says_why_work_was_called_off() {
    let keys = |event: &Value| -> Vec<String> {
        event["payload"]["counts"].as_object().expect("counts").keys().cloned().collect()
    };
    let mut known: Option<(Vec<String>, Value)> = None;
    for layers in ["workflow", "workflow,effects", "workflow,files", "all"] {
        let world = at_work();
        let layer = format!("--layer={layers}");
        let call = ["run", "rollback", &world.run, "--to-phase", "a", &layer, "--reason", "wrong way", "--yes"];
        let outcome = world.cli.run(call);
        assert_eq!(outcome.code, Some(0), "{layers}: {outcome:?}");
        let cancelled = events(&world, "dispatch_cancelled");
        assert_eq!(cancelled.len(), 1, "{layers}");
        assert_eq!(cancelled[0]["reason"], "wrong way", "{layers}: {cancelled:?}");
        let rollback = events(&world, "rollback").pop().expect("a rollback");
        let counts = (keys(&rollback), rollback["payload"]["counts"].clone());
        assert_eq!((&counts.1["phases"], &counts.1["dispatches"]), (&json!(1), &json!(1)), "{layers}: {rollback}");
        assert_eq!(*known.get_or_insert_with(|| counts.clone()), counts, "{layers}");
    }
}

/// A run at `b` whose effect fails with an error of `ic` that is longer than a line.
fn failing() -> (TestWorld, String) {
    let world = at_work();
    let line = format!("{} checkpoint cat 7f3a9c21 {}", env!("CARGO_BIN_EXE_ic"), "n".repeat(400));
    world.ic(&["compensation", "add", &world.run, "--step", "server", "--shell", &line]);
    (world, "checkpoint_not_found: There is no checkpoint 7f3a9c21.".to_owned())
}

#[test]
fn the_error_of_a_nested_call_is_told_once_and_never_as_cut_json() {
    for call in [
        ["compensation", "run", "RUN", "--yes"].as_slice(),
        &["run", "rollback", "RUN", "--to-phase", "a", "--layer=all", "--yes"],
    ] {
        for format in ["text", "json"] {
            let (world, told) = failing();
            let words: Vec<&str> =
                call.iter().map(|word| if *word == "RUN" { world.run.as_str() } else { word }).collect();
            let outcome = world.cli.run([words.as_slice(), &["--format", format]].concat());
            assert_eq!(outcome.code, Some(4), "{outcome:?}");
            let screen = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(!screen.contains("{\\\"error") && !screen.contains("{\"error"), "{screen}");
            let times = screen.matches(&told).count();
            if format == "text" {
                assert_eq!(times, 1, "{screen}");
            } else {
                assert!(times >= 1, "{screen}");
                assert!(screen.contains("(hint: see: ic checkpoint list)"), "{screen}");
            }
        }
    }
}
