//! A run that its workflow moves: who else may move it, and what is said of steps that are left behind.

use ic_testkit::{TestWorld, wait_for};

use crate::calls::Calls as _;
use crate::flow::Flow as _;
use crate::project::{plain, with_checkpoints};

/// Three steps in three phases, of which the second fails until there is `OUT/ok`.
fn three() -> TestWorld {
    let world = with_checkpoints();
    world.steps(&[
        "{id: plan, phase: planned, compensate: skip, run: 'echo p > plan'}",
        "{id: code, phase: built, compensate: skip, run: 'echo c > code; echo $IC_IDEMPOTENCY_KEY >> OUT/keys; test -e OUT/ok'}",
        "{id: test, phase: tested, compensate: skip, run: 'echo t > test'}",
    ]);
    world
}

#[test]
fn a_run_that_a_process_executes_is_moved_by_it_alone() {
    let world = plain();
    world.steps(&[
        "{id: a, phase: one, compensate: skip, run: 'touch OUT/begun; while ! test -e OUT/ok; do sleep 0.01; done'}",
        "{id: b, phase: two, compensate: skip, run: 'touch b'}",
    ]);
    let child = world.start("workflow run flow.yaml");
    wait_for("the step runs", || world.outside.has("begun"));
    let run = world.newest_run();
    let before = world.cli.dump();
    assert_eq!(world.refused(&format!("run advance {run}")), "work_running");
    assert_eq!(world.refused(&format!("gate override {run} --reason now")), "work_running");
    assert_eq!(world.cli.dump(), before);
    world.outside.put("ok", "");
    let outcome = ic_testkit::CliOutcome::at_end_of(child);
    assert_eq!((outcome.code, outcome.json()["status"].as_str()), (Some(0), Some("completed")), "{outcome:?}");
}

#[test]
fn completing_a_run_by_hand_names_the_steps_that_are_left() {
    let world = three();
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    // One phase further is no end: the workflow can be resumed from there.
    let moved = world.report(&format!("run advance {run}"), 0);
    assert!(moved["warnings"].is_null(), "{moved}");
    let done = world.report(&format!("run advance {run}"), 0);
    assert_eq!(done["warnings"][0]["code"], "steps_left", "{done}");
    let said = done["warnings"][0]["message"].as_str().expect("a message");
    assert!(said.contains("(code, test)"), "{said}");
    assert_eq!(world.refused(&format!("workflow resume {run}")), "run_not_active");
    // The way that is named.
    world.report(&format!("undo step:code --run {run} --yes"), 0);
    world.outside.put("ok", "");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
}

#[test]
fn what_ended_without_a_step_is_unfinished() {
    let world = three();
    world.report("workflow run flow.yaml --on-failure continue", 1);
    let run = world.newest_run();
    let status = world.report(&format!("status {run}"), 0);
    assert_eq!(status["unfinished"][0]["kind"], "workflow", "{status}");
    assert!(
        status["unfinished"][0]["message"].as_str().is_some_and(|said| said.contains("ended without the step code")),
        "{status}"
    );
    assert_eq!(status["next"], format!("ic workflow resume {}", &run[run.len() - 8..]).as_str());
    world.outside.put("ok", "");
    world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(world.report(&format!("status {run}"), 0)["unfinished"], serde_json::json!([]));
}

/// It is the attempt that it was: its point, its key and the tree from before it stay those of the step.
#[test]
fn a_failed_step_that_was_undone_and_redone_is_tried_again_as_if_it_had_not_been() {
    let world = three();
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    world.report(&format!("undo --run {run} --yes"), 0);
    assert_eq!(world.text("code"), "");
    world.report(&format!("redo --run {run} --yes"), 0);
    assert_eq!(world.text("code"), "c\n");
    world.outside.put("ok", "");
    let report = world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(report["steps"][1]["attempts"], 2, "{report}");
    let log = world.report(&format!("log {run}"), 0).to_string();
    assert!(log.contains("\"step:code#2\"") && log.contains("\"step:code\""), "{log}");
    let keys = world.outside.text("keys");
    let keys: Vec<&str> = keys.lines().collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "an attempt that failed is made again with its key: {keys:?}");
    // Before the step is before its first attempt.
    let before = report["steps"][1]["checkpoint_id"].as_str().expect("a checkpoint").to_owned();
    world.report(&format!("workflow rollback {run} --id {before} --yes"), 0);
    assert_eq!((world.text("code"), world.text("plan")), (String::new(), "p\n".to_owned()));
    // What was undone for good is begun with a key of its own.
    world.report(&format!("workflow resume {run}"), 0);
    let keys = world.outside.text("keys");
    assert_ne!(keys.lines().next(), keys.lines().last(), "{keys}");
}

#[test]
fn an_undone_step_is_told_from_one_that_stands() {
    let world = three();
    world.outside.put("ok", "");
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.report(&format!("workflow rollback {run} --latest --yes"), 0);
    let undone = |report: &serde_json::Value| -> Vec<bool> {
        let steps = report["steps"].as_array().expect("steps");
        steps.iter().map(|step| step["undone"].as_bool().expect("a boolean")).collect()
    };
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!(undone(&shown), [false, false, true], "{shown}");
    let text = world.call(&format!("workflow show {run} --format text")).stdout;
    let line = |step: &str| text.lines().find(|line| line.starts_with(step)).unwrap_or_default().to_owned();
    assert!(line("test").ends_with("undone") && !line("code").contains("undone"), "{text}");
    world.report(&format!("redo --run {run} --yes"), 0);
    assert_eq!(undone(&world.report(&format!("workflow show {run}"), 0)), [false, false, false]);
    world.report(&format!("undo created --run {run} --yes"), 0);
    assert_eq!(undone(&world.report(&format!("workflow show {run}"), 0)), [true, true, true]);
    world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(undone(&world.report(&format!("workflow show {run}"), 0)), [false, false, false]);
}

#[test]
fn a_phase_with_steps_to_run_is_not_skipped() {
    let world = three();
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    let before = world.cli.dump();
    let refused = world.call(&format!("run skip {run} tested --reason no --format json"));
    assert_eq!(refused.error(), "invalid_value");
    assert!(refused.stderr.contains("(test)"), "{refused:?}");
    assert_eq!(world.cli.dump(), before);
    // One that is on record anyway.
    world.cli.sql(
        "INSERT INTO run_skips (seq, run_id, phase, reason, created_at) SELECT max(seq), run_id, 'tested', 'no', 1 FROM events",
    );
    world.outside.put("ok", "");
    assert_eq!(world.report(&format!("workflow resume {run}"), 0)["status"], "completed");
    assert_eq!(world.text("test"), "t\n");
}

/// What an undo of a second attempt leaves standing is still named as it was.
#[test]
fn the_first_point_of_a_step_keeps_its_name_when_a_later_attempt_is_undone() {
    let world = three();
    world.report("workflow run flow.yaml --on-failure stop", 1);
    let run = world.newest_run();
    world.write("mend", "by hand\n");
    world.outside.put("ok", "");
    world.report(&format!("workflow resume {run}"), 0);
    world.report(&format!("undo step:code#2 --run {run} --yes"), 0);
    assert_eq!((world.text("code"), world.text("mend")), ("c\n".to_owned(), "by hand\n".to_owned()));
    world.report(&format!("workflow resume {run}"), 0);
    let log = world.report(&format!("log {run}"), 0);
    let standing = |reference: &str| {
        let entries = log.as_array().expect("a list").iter();
        entries.filter(|one| one["reference"] == reference && one["rolled_back_by"].is_null()).count()
    };
    assert_eq!((standing("step:code"), standing("step:code#2")), (1, 1), "{log}");
    // It is before the first attempt.
    world.report(&format!("undo step:code --run {run} --force-files --yes"), 0);
    assert_eq!(
        (world.text("code"), world.text("mend"), world.text("plan")),
        (String::new(), String::new(), "p\n".to_owned())
    );
}

/// A rollback that stopped at an effect: nothing of the files is undone yet, and no effect from before it.
#[test]
fn while_a_rollback_is_stopped_nothing_is_called_undone() {
    let world = with_checkpoints();
    world.steps(&[
        "{id: first, phase: one, run: 'echo a > a', compensate: {shell: 'echo first >> OUT/undone'}}",
        "{id: second, phase: two, run: 'echo b > b', compensate: {shell: 'test -e OUT/ok && echo second >> OUT/undone'}}",
        "{id: third, run: 'echo c > c', compensate: {shell: 'echo third >> OUT/undone'}}",
    ]);
    world.report("workflow run flow.yaml", 0);
    let run = world.newest_run();
    world.report(&format!("workflow rollback {run} --yes"), 4);
    assert_eq!((world.outside.text("undone"), world.text("a")), ("third\n".to_owned(), "a\n".to_owned()));
    let text = |words: &str| world.call(&format!("{words} {run} --format text")).stdout;
    let facts = |step: &str| {
        let log = text("log --all");
        let line = log
            .lines()
            .find(|line| line.contains(&format!("step  {step} ")) && !line.contains('←'))
            .unwrap_or_default()
            .to_owned();
        assert!(!line.is_empty(), "{log}");
        line
    };
    for step in ["first", "second", "third"] {
        assert!(facts(step).ends_with("being undone"), "{}", facts(step));
    }
    let shown = world.report(&format!("workflow show {run}"), 0);
    let said = |shown: &serde_json::Value| -> Vec<String> {
        let steps = shown["steps"].as_array().expect("steps");
        steps.iter().map(|step| format!("{} {}", step["status"].as_str().expect("a word"), step["undone"])).collect()
    };
    assert_eq!(said(&shown), ["succeeded false", "succeeded false", "rolled_back false"], "{shown}");
    assert!(!text("workflow show").contains("undone"), "{}", text("workflow show"));
    world.outside.put("ok", "");
    world.report(&format!("rollback resume {run} --yes"), 0);
    assert_eq!((world.outside.text("undone"), world.text("a")), ("third\nsecond\nfirst\n".to_owned(), String::new()));
    for step in ["first", "second", "third"] {
        assert!(facts(step).ends_with("undone"), "{}", facts(step));
    }
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!(said(&shown), ["rolled_back true"; 3], "{shown}");
}
